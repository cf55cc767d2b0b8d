"""Losses, configuration, and the one loop that trains everything."""

from diffassemble.datasets.config import DataConfig
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.loop import train

__all__ = ["Config", "DataConfig", "TrainingConfig", "train"]
