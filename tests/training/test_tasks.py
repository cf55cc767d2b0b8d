"""Everything that can be learnt is made from one configuration and goes through one loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from diffassemble.fragments.model import FractureConfig
from diffassemble.fragments.orientation import OrientationConfig
from diffassemble.network.baselines import OneShotConfig
from diffassemble.squares.critic import CriticConfig
from diffassemble.training.config import (
    BaselineRun,
    Config,
    CriticRun,
    CriticTraining,
    EdgeModelRun,
    FractureDataConfig,
    FractureMatchingRun,
    FractureMatchingTraining,
    FragmentConfig,
    FragmentRun,
    FragmentTraining,
    JigsawRun,
    OrientationRun,
    OrientationTraining,
    UprightRun,
)
from diffassemble.training.loop import Task, train
from diffassemble.training.tasks import TASKS


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def configs(
    tiny: Callable[..., JigsawRun],
    tiny_upright: Callable[..., UprightRun],
    tiny_edge_model: Callable[..., EdgeModelRun],
) -> dict[str, Config]:
    broken = FragmentConfig(solids=2, breaks=1, pieces=(2, 3), points=64)
    learning = FragmentTraining(steps=2, pieces=6, validate_every=2, precision="32-true")
    small = replace(FragmentRun().model, features=8, width=32, layers=1, heads=2, pose_width=16, time_width=8)
    matching = FractureMatchingTraining(steps=2, points=160, validate_every=2, precision="32-true")
    return {
        "jigsaw": tiny(steps=2),
        "upright": tiny_upright(steps=2),
        "edge-model": tiny_edge_model(steps=2),
        "fragments": FragmentRun(small, broken, learning),
        "baseline": BaselineRun(OneShotConfig("global", "pointnet", 8, 16), broken, learning),
        "fracture-matching": FractureMatchingRun(
            FractureConfig(width=8), FractureDataConfig(solids=1, breaks=1, pieces=(2, 2)), matching
        ),
        "orientation": OrientationRun(
            OrientationConfig((8, 8, 8)),
            broken,
            OrientationTraining(steps=2, objects=2, validate_every=2, precision="32-true"),
        ),
        "critic": CriticRun(
            CriticConfig(stem=8, widths=(8, 8, 8), hidden=8),
            tiny_upright().data,
            CriticTraining(steps=2, pictures=2, validate_every=2, precision="32-true"),
        ),
    }


@pytest.mark.parametrize("name", TASKS)
def test_tasks_go_through_the_loop(name: str, configs: dict[str, Config], tmp_path: Path) -> None:
    config = configs[name]
    task = TASKS[name](config)
    assert isinstance(task, Task)
    network = train(config, task, tmp_path, resume=False)
    again = type(network).from_pretrained(tmp_path / "last")
    assert again.config == config.model
    assert (tmp_path / "log.csv").read_text().splitlines()[1].startswith("2,")


@pytest.mark.parametrize("name", TASKS)
def test_defaults_are_of_the_same_kind_and_lack_only_pictures(name: str, configs: dict[str, Config]) -> None:
    defaults = TASKS[name].defaults
    assert type(defaults) is type(configs[name])
    assert defaults.data == replace(defaults.data, folders=())


def test_a_batch_is_told_in_its_own_words(configs: dict[str, Config]) -> None:
    assert {name: TASKS[name](config).batch for name, config in configs.items()} == {
        "jigsaw": (18, "pieces"),
        "upright": (4, "pictures"),
        "edge-model": (18, "pieces"),
        "fragments": (6, "pieces"),
        "baseline": (6, "pieces"),
        "fracture-matching": (160, "points"),
        "orientation": (2, "objects"),
        "critic": (2, "pictures"),
    }
