"""The forward and reverse process, and the spaces poses live in."""

from diffassemble.diffusion.samplers import sample
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import SPACES, CosSin

__all__ = ["SPACES", "CosSin", "Schedule", "sample"]
