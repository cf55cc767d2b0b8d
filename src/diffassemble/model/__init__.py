"""The network, and where its weights live."""

from diffassemble.model.batch import PuzzleBatch, pack
from diffassemble.model.config import ModelConfig
from diffassemble.model.denoiser import Denoiser
from diffassemble.model.pretrained import Pretrained, bundled_models, find_model

__all__ = ["Denoiser", "ModelConfig", "Pretrained", "PuzzleBatch", "bundled_models", "find_model", "pack"]
