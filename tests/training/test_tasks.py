"""Everything that can be learnt is made from one configuration and goes through one loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diffassemble.training.config import Config
from diffassemble.training.loop import Task, train
from diffassemble.training.tasks import TASKS


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


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
