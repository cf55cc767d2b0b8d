"""Everything a training run depends on, as one value that is also its command line.

A run is a `Config` of three parts; which classes they are, the defaults of its task determine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge, Interval, Lt

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS
from diffassemble.core.settings import (
    Count,
    Fraction,
    Natural,
    Positive,
    Settings,
    Share,
    Weight,
    check_settings,
    read_settings,
)
from diffassemble.io.reading import read_json

Machines = Annotated[int, Interval(ge=1, le=LIMITS.processes)]


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How long and how hard, whatever is learnt."""

    start_from: str = ""
    """a bundled model, a folder or a hub id whose weights to begin with; empty: at random"""
    steps: Count = 20000
    """batches to learn from, in all calls together"""
    minutes: Positive = 600.0
    """stop after this long, in one call, even if `steps` are not done; go on with --resume"""
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    learning_rate: Positive = 6e-4
    weight_decay: Weight = 0.01
    warmup: Natural = 300
    """first steps, in which the learning rate rises"""
    decay: Share = 0.35
    """last share of the steps, in which the learning rate falls to zero"""
    clip: Positive = 1.0
    """largest norm of the gradient"""
    average: Fraction = 0.999
    """decay of the moving average of the weights, which is what is kept"""
    validate_every: Count = 1000
    """steps between two validations on what is held apart"""
    checkpoint_minutes: Weight = 4.0
    """minutes between checkpoints: most work that a kill may cost"""
    seed: Annotated[int, Ge(0), Lt(2**32)] = 0
    devices: Machines = 1
    """processes that share out each batch, on every machine"""
    nodes: Machines = 1
    """machines that share out each batch; torchrun starts the processes there"""
    accelerator: Literal["cpu", "cuda", "mps", "auto"] = "cpu"
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """auto: bfloat16 where the processor computes in it, and faster than in float32"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.nodes > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
            yield "nodes", "1 without torchrun, which starts the processes on several machines; see docs/TRAINING.md"
        if self.accelerator == "cuda" and self.devices > torch.cuda.device_count():
            there = torch.cuda.device_count()
            yield "devices", f"at most {there}, the CUDA devices here; or pass --training.accelerator"


@dataclass(frozen=True)
class Config:
    """One complete run."""

    model: Any
    data: Any
    training: Any


def check_config(config: Config) -> None:
    """Refuse values out of bounds and values that do not go together, by the names of their options."""
    for section in ("model", "data", "training"):
        check_settings(getattr(config, section), section)


def read_config(path: Path, defaults: Config) -> Config:
    """The configuration that a run wrote into its folder, made of the same classes as the defaults of its task."""
    parts = read_json(path, "configuration of a run", sys.float_info.max)
    try:
        return Config(**{name: read_settings(type(part), parts[name]) for name, part in vars(defaults).items()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: is not the configuration of a run of this preset and version ({error})") from error
