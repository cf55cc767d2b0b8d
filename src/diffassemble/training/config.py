"""Everything a training run depends on, as one value that is also its command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from diffassemble.datasets.config import DataConfig
from diffassemble.model.config import ModelConfig
from diffassemble.puzzle import InputError


@dataclass(frozen=True)
class TrainingConfig:
    """How long and how hard."""

    steps: int = 20000
    """batches to learn from, in all calls together"""
    minutes: float = 600.0
    """stop after this long, in one call, even if `steps` are not done; go on with --resume"""
    pieces: int = 288
    """pieces in a batch, over all processes; the number of puzzles follows from the grid"""
    noises: int = 2
    """noisy versions of each puzzle in a step; they share the encoder's work"""
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    learning_rate: float = 6e-4
    weight_decay: float = 0.01
    warmup: int = 300
    """first steps, in which the learning rate rises"""
    decay: float = 0.35
    """last share of the steps, in which the learning rate falls to zero"""
    clip: float = 1.0
    """longest gradient"""
    average: float = 0.999
    """decay of the moving average of the weights, which is what is kept"""
    translation_weight: float = 2.0
    rotation_weight: float = 0.5
    weigh_noise: bool = True
    """count errors the more the less noise there is; off in the paper"""
    validate_every: int = 1000
    """steps between two looks at the pictures held apart"""
    checkpoint_minutes: float = 4.0
    """most work that a kill may cost"""
    seed: int = 0
    devices: int = 1
    """processes that share out each batch"""
    accelerator: Literal["cpu", "cuda", "mps", "auto"] = "cpu"
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """auto: bfloat16 where the processor computes in it, else float32"""


@dataclass(frozen=True)
class Config:
    """One complete run."""

    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def read_config(path: Path) -> Config:
    """The configuration that a run wrote into its folder."""
    try:
        parts = json.loads(path.read_text())
        data: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in parts["data"].items()
        }
        data["folders"] = tuple(Path(folder) for folder in data["folders"])
        return Config(ModelConfig(**parts["model"]), DataConfig(**data), TrainingConfig(**parts["training"]))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: is not the configuration of a run of this version ({error})") from error
