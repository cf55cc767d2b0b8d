"""The forward and reverse process, and the spaces poses live in."""

from diffassemble.diffusion.cos_sin import CosSin
from diffassemble.diffusion.quaternion import Quaternion
from diffassemble.diffusion.samplers import sample
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.six_d import SixD
from diffassemble.diffusion.so3 import SO3
from diffassemble.diffusion.spaces import SPACES, Space

__all__ = ["SO3", "SPACES", "CosSin", "Quaternion", "Schedule", "SixD", "Space", "sample"]
