"""Runs small enough for tests: one of every task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diffassemble.io.puzzles import write_puzzle
from diffassemble.outlines.cut import cut_shape
from diffassemble.training.config import Config
from diffassemble.training.loop import Task
from diffassemble.training.presets import PRESETS

SMALL = {"features": 8, "width": 32, "layers": 1, "heads": 2, "pose_width": 16, "time_width": 8}


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all runs of the session keep what they draw of objects."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def cache(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))


@pytest.fixture(scope="session")
def changed() -> Callable[..., Config]:
    """A preset's defaults with changes to its model, data and training."""

    def make(name: str, model: dict[str, Any], data: dict[str, Any], **training: Any) -> Config:
        run = PRESETS[name].learner.defaults
        quick = {"steps": 2, "validate_every": 2, "warmup": 2, "precision": "32-true", "checkpoint_minutes": 0.0}
        given = replace(run.training, **{**quick, **training})
        return Config(replace(run.model, **model), replace(run.data, **data), given)

    return make


@pytest.fixture(scope="session")
def tiny(picture_folders: tuple[Path, Path], changed: Callable[..., Config]) -> Callable[..., Config]:
    """A run of the task jigsaw that takes a second; keywords are changes to its training part."""

    def make(model: dict[str, Any] | None = None, **changes: Any) -> Config:
        data = {"folders": picture_folders, "held_apart": 1, "grids": (2, 3), "favourite": 2}
        training = {"steps": 6, "pieces": 18, "learning_rate": 1e-3, "validate_every": 3, **changes}
        return changed("jigsaw", {**SMALL, **(model or {})}, data, **training)

    return make


@pytest.fixture(scope="session")
def configs(
    tiny: Callable[..., Config],
    changed: Callable[..., Config],
    picture_folders: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Config]:
    """A small run of every task."""
    root = tmp_path_factory.mktemp("recorded")
    for shape in ("shards", "strips"):
        for number in range(4):
            cut = cut_shape(picture_folders[0] / f"{number}.png", shape, 4, number, size=40, erode=0)
            write_puzzle(cut, root / shape / str(number))
    pictures = {"folders": picture_folders, "held_apart": 1}
    broken = {"solids": 2, "breaks": 1, "pieces": (2, 3), "points": 64}
    sides = {"depth": 4, "length": 8, "width": 8, "blocks": 1, "embedding": 2, "widest_gap": 2}
    flat = {"width": 16, "layers": 1, "heads": 2, "join_hidden": 16, "features": 4}
    small: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
        "upright": ({"side": 32, "hidden": 4}, pictures, {"pictures": 4}),
        "edge-model": (sides, {**pictures, "grids": (2, 3), "favourite": 3}, {"pieces": 18}),
        "outlines": (flat, {"sheets": 4, "held_apart": 2, "pieces": (4, 8)}, {"pieces": 16}),
        "arcs": ({"width": 8}, {"folders": (root / "shards",), "held_apart": 1}, {"examples": 64}),
        "strips": ({"hidden": 8, "width": 4}, {"folders": (root / "strips",), "held_apart": 1}, {"together": 3}),
        "fracture-matching": (
            {"width": 16, "descriptor": 8, "verifier_width": 8},
            {"solids": 1, "breaks": 1, "pieces": (2, 2)},
            {"points": 160},
        ),
        "orientation": ({"widths": (8, 8, 8)}, broken, {"objects": 2}),
        "fragments": ({**SMALL, "join_hidden": 16}, broken, {"pieces": 6}),
        "fragments-paper-form": (SMALL, broken, {"pieces": 6}),
        "baseline-global": ({"backbone": "pointnet", "features": 8, "width": 16}, broken, {"pieces": 6}),
    }
    found = {"jigsaw": tiny(steps=2, validate_every=2)}
    found |= {name: changed(name, model, data, **training) for name, (model, data, training) in small.items()}
    assert {PRESETS[name].task for name in found} == {preset.task for preset in PRESETS.values()}
    return found


@pytest.fixture(scope="session")
def tasks(configs: dict[str, Config], caches: Path) -> dict[str, Task]:
    """The small run of every task, its data loaded once; no test may change them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(caches))
        return {name: PRESETS[name].learner(config) for name, config in configs.items()}
