"""Runs small enough for tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.fragments.model import FractureConfig
from diffassemble.fragments.orientation import OrientationConfig
from diffassemble.io.puzzles import write_puzzle
from diffassemble.network.config import ModelConfig
from diffassemble.network.upright import UprightConfig
from diffassemble.outlines.arcs import ArcConfig
from diffassemble.outlines.cut import cut_shape
from diffassemble.outlines.strip_sides import StripModelConfig
from diffassemble.squares.edges import EdgeModelConfig
from diffassemble.training.arcs import ArcDataConfig, ArcTraining
from diffassemble.training.config import Config, DataConfig, FragmentConfig, RecordedConfig
from diffassemble.training.denoising import DenoisingTraining
from diffassemble.training.edge_model import EdgeModelTraining
from diffassemble.training.fracture_matching import FractureDataConfig, FractureMatchingTraining
from diffassemble.training.fragments import FragmentTask, FragmentTraining
from diffassemble.training.loop import Task
from diffassemble.training.orientation import OrientationTraining
from diffassemble.training.outlines import OutlineTask
from diffassemble.training.strips import StripTraining
from diffassemble.training.upright import UprightData, UprightTraining
from diffassemble_research.baselines import OneShotConfig


@pytest.fixture(scope="session")
def learn() -> Callable[..., tuple[Any, list[float]]]:
    """A fresh network taught by a task for some steps, or by one step again and again; and its losses."""

    def run(task: Task, steps: int, rate: float, again: bool = False) -> tuple[Any, list[float]]:
        torch.manual_seed(0)
        model, losses = task.build(), []
        optimizer = torch.optim.AdamW(model.parameters(), rate)
        for step in range(steps):
            optimizer.zero_grad()
            loss = task.loss(model.train(), 0 if again else step, 0, 1)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return model, losses

    return run


@pytest.fixture(scope="session")
def tiny(picture_folders: tuple[Path, Path]) -> Callable[..., Config]:
    """A configuration of a run that takes a second; keywords are changes to its training part."""

    def make(model: dict[str, Any] | None = None, **changes: Any) -> Config:
        training = DenoisingTraining(steps=6, pieces=18, warmup=2, learning_rate=1e-3, validate_every=3)
        training = replace(training, precision="32-true", checkpoint_minutes=0.0)
        small = ModelConfig(features=8, width=32, layers=1, heads=2, pose_width=16, time_width=8)
        data = DataConfig(folders=picture_folders, held_apart=1, grids=(2, 3), favourite=2)
        return Config(replace(small, **model or {}), data, replace(training, **changes))

    return make


@pytest.fixture
def tiny_upright(picture_folders: tuple[Path, Path]) -> Callable[..., Config]:
    """The same for the upright classifier."""

    def make(**changes: Any) -> Config:
        training = UprightTraining(steps=6, pictures=4, warmup=2, validate_every=3, precision="32-true")
        data = UprightData(folders=picture_folders, held_apart=1)
        model = UprightConfig(side=32, hidden=4)
        return Config(model, data, replace(training, checkpoint_minutes=0.0, **changes))

    return make


@pytest.fixture
def tiny_edge_model(picture_folders: tuple[Path, Path]) -> Callable[..., Config]:
    """The same for learned edge compatibility."""

    def make(model: dict[str, Any] | None = None, **changes: Any) -> Config:
        training = EdgeModelTraining(steps=6, pieces=18, warmup=2, validate_every=3, precision="32-true")
        data = DataConfig(folders=picture_folders, held_apart=1, grids=(2, 3), favourite=3, erode=2)
        small = EdgeModelConfig(depth=4, length=8, width=8, blocks=1, embedding=2, widest_gap=2)
        return Config(replace(small, **model or {}), data, replace(training, checkpoint_minutes=0.0, **changes))

    return make


@pytest.fixture(scope="session")
def recorded(picture_folders: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder of four puzzles of pieces of a shape, whose places are known; nobody may write there."""
    root = tmp_path_factory.mktemp("recorded")

    @cache
    def make(shape: str) -> Path:
        for number in range(4):
            picture = picture_folders[0] / f"{number}.png"
            write_puzzle(cut_shape(picture, shape, 4, number, size=40, erode=0), root / shape / str(number))
        return root / shape

    return make


@pytest.fixture
def configs(
    tiny: Callable[..., Config],
    tiny_upright: Callable[..., Config],
    tiny_edge_model: Callable[..., Config],
    recorded: Callable[[str], Path],
) -> dict[str, Config]:
    """A small run of every task."""
    broken = FragmentConfig(solids=2, breaks=1, pieces=(2, 3), points=64)
    quick = {"steps": 2, "validate_every": 2, "precision": "32-true"}
    learning = FragmentTraining(pieces=6, **quick)
    small = replace(FragmentTask.defaults.model, features=8, width=32, layers=1, heads=2, pose_width=16, time_width=8)
    flat = OutlineTask.defaults
    matching = FractureDataConfig(solids=1, breaks=1, pieces=(2, 2))
    return {
        "jigsaw": tiny(steps=2),
        "upright": tiny_upright(steps=2),
        "edge-model": tiny_edge_model(steps=2),
        "fragments": Config(small, broken, learning),
        "outlines": replace(
            flat,
            model=replace(flat.model, width=16, layers=1, heads=2, join_hidden=16, features=4),
            data=replace(flat.data, sheets=4, held_apart=2, pieces=(4, 8)),
            training=replace(flat.training, pieces=16, **quick),
        ),
        "arcs": Config(
            ArcConfig(width=8),
            ArcDataConfig(folders=(recorded("shards"),), held_apart=1),
            ArcTraining(examples=64, **quick),
        ),
        "strips": Config(
            StripModelConfig(hidden=8, width=4),
            RecordedConfig(folders=(recorded("strips"),), held_apart=1),
            StripTraining(together=3, **quick),
        ),
        "baseline": Config(OneShotConfig("global", "pointnet", 8, 16), broken, learning),
        "fracture-matching": Config(FractureConfig(width=8), matching, FractureMatchingTraining(points=160, **quick)),
        "orientation": Config(OrientationConfig((8, 8, 8)), broken, OrientationTraining(objects=2, **quick)),
    }
