"""Everything a training run depends on, as one value that is also its command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from diffassemble.datasets.config import DataConfig
from diffassemble.model.config import ModelConfig


@dataclass(frozen=True)
class TrainingConfig:
    """How long and how hard."""

    steps: int = 20000
    minutes: float = 600.0
    """stop after this long even if `steps` are not done; go on with --resume"""
    pieces: int = 288
    """pieces in a batch, over all processes; the number of puzzles follows from the grid"""
    noises: int = 2
    """noisy versions of each puzzle in a step; they share the encoder's work"""
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    learning_rate: float = 6e-4
    weight_decay: float = 0.01
    warmup: int = 300
    decay: float = 0.35
    """last share of the steps, in which the learning rate falls to zero"""
    clip: float = 1.0
    average: float = 0.999
    """decay of the moving average of the weights, which is what is kept"""
    translation_weight: float = 2.0
    rotation_weight: float = 0.5
    validate_every: int = 1000
    checkpoint_minutes: float = 4.0
    seed: int = 0
    devices: int = 1
    accelerator: str = "cpu"
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """auto: bfloat16 where the processor computes in it, else float32"""


@dataclass(frozen=True)
class Config:
    """One complete run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
