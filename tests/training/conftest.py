"""Runs small enough for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diffassemble.datasets.config import DataConfig
from diffassemble.model import ModelConfig
from diffassemble.training import Config, TrainingConfig


@pytest.fixture
def tiny(picture_folders: tuple[Path, Path]) -> Callable[..., Config]:
    """A configuration of a run that takes a second; keywords are changes to its training part."""

    def make(model: dict[str, Any] | None = None, **changes: Any) -> Config:
        training = TrainingConfig(
            steps=6,
            pieces=18,
            warmup=2,
            learning_rate=1e-3,
            validate_every=3,
            precision="32-true",
            checkpoint_minutes=0.0,
        )
        small = ModelConfig(features=8, width=32, layers=1, heads=2, pose_width=16, time_width=8)
        data = DataConfig(folders=picture_folders, held_apart=1, grids=(2, 3), favourite=2)
        return Config(replace(small, **model or {}), data, replace(training, **changes))

    return make
