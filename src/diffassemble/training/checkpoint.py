"""What a killed run needs to go on as if nothing had happened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FILE = "checkpoint.pt"


@dataclass(frozen=True)
class Checkpoint:
    """State after `step` steps and `minutes` of training."""

    step: int
    minutes: float
    best: float
    weights: dict[str, Tensor]
    average: dict[str, Tensor]
    optimizer: dict[str, Any]


def write_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write beside and rename, so that a kill at any moment leaves the old or the new one, whole."""
    beside = folder / f"{FILE}.{os.getpid()}"
    torch.save(vars(checkpoint), beside)
    os.replace(beside, folder / FILE)


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The last checkpoint of a run, if there is one; only tensors and plain values are read, never code."""
    path = folder / FILE
    if not path.exists():
        return None
    return Checkpoint(**torch.load(path, map_location="cpu", weights_only=True))
