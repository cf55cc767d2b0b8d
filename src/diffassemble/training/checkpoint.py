"""What a killed run needs to go on as if nothing had happened."""

from __future__ import annotations

import io
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from diffassemble.puzzle import InputError

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
    content = io.BytesIO()
    torch.save(vars(checkpoint), content)
    # Always the same name: what a kill leaves half written is overwritten by the next one.
    beside = folder / f".{FILE}.part"
    try:
        with beside.open("wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, folder / FILE)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"{folder / FILE}: cannot be written ({error.strerror}); the one before is kept") from error


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """The last checkpoint of a run, if there is one; only tensors and plain values are read, never code."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        return Checkpoint(**torch.load(path, map_location="cpu", weights_only=True))
    except (pickle.UnpicklingError, RuntimeError, EOFError, TypeError, OSError) as error:
        raise InputError(f"{path}: is not a checkpoint of this program; train anew with another --out") from error
