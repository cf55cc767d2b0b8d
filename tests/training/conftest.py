"""Runs small enough for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diffassemble.network.config import ModelConfig
from diffassemble.squares.edge_model import EdgeModelConfig
from diffassemble.squares.upright import UprightConfig
from diffassemble.training.config import (
    DataConfig,
    DenoisingTraining,
    EdgeModelRun,
    EdgeModelTraining,
    JigsawRun,
    PictureConfig,
    UprightRun,
    UprightTraining,
)


@pytest.fixture(scope="session")
def tiny(picture_folders: tuple[Path, Path]) -> Callable[..., JigsawRun]:
    """A configuration of a run that takes a second; keywords are changes to its training part."""

    def make(model: dict[str, Any] | None = None, **changes: Any) -> JigsawRun:
        training = DenoisingTraining(
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
        return JigsawRun(replace(small, **model or {}), data, replace(training, **changes))

    return make


@pytest.fixture
def tiny_upright(picture_folders: tuple[Path, Path]) -> Callable[..., UprightRun]:
    """The same for the upright classifier."""

    def make(**changes: Any) -> UprightRun:
        training = UprightTraining(steps=6, pictures=4, warmup=2, validate_every=3, precision="32-true")
        data = PictureConfig(folders=picture_folders, held_apart=1)
        model = UprightConfig(size=16, stem=8, widths=(16, 16))
        return UprightRun(model, data, replace(training, checkpoint_minutes=0.0, **changes))

    return make


@pytest.fixture
def tiny_edge_model(picture_folders: tuple[Path, Path]) -> Callable[..., EdgeModelRun]:
    """The same for the edge model."""

    def make(model: dict[str, Any] | None = None, **changes: Any) -> EdgeModelRun:
        training = EdgeModelTraining(steps=6, pieces=18, warmup=2, validate_every=3, precision="32-true")
        data = DataConfig(folders=picture_folders, held_apart=1, grids=(2, 3), favourite=3, erode=2)
        small = EdgeModelConfig(depth=4, length=8, width=8, blocks=1, embedding=2, widest_gap=2)
        return EdgeModelRun(replace(small, **model or {}), data, replace(training, checkpoint_minutes=0.0, **changes))

    return make
