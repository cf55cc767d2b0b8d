"""Losses, configuration, and the one loop that trains everything."""

from diffassemble.training.config import Config, JigsawRun, TrainingConfig, UprightRun
from diffassemble.training.loop import train

__all__ = ["Config", "JigsawRun", "TrainingConfig", "UprightRun", "train"]
