"""What a run writes about itself, it can read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.training.config import Config, JigsawRun, UprightRun, read_config


def written(config: Config, path: Path) -> Path:
    path.write_text(json.dumps(asdict(config), default=os.fspath))
    return path


def test_configurations_are_read_back(tiny: Callable[..., Config], tmp_path: Path) -> None:
    config = tiny(model={"layer": "gcn"}, steps=7, optimizer="adagrad")
    assert read_config(written(config, tmp_path / "config.json"), JigsawRun) == config


def test_configurations_of_the_upright_classifier_too(tiny_upright: Callable[..., UprightRun], tmp_path: Path) -> None:
    config = tiny_upright(pictures=9)
    assert read_config(written(config, tmp_path / "config.json"), UprightRun) == config


def test_runs_of_another_kind_are_refused(
    tiny: Callable[..., Config], tiny_upright: Callable[..., UprightRun], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="is not the configuration of a run of this preset"):
        read_config(written(tiny_upright(), tmp_path / "config.json"), JigsawRun)
    with pytest.raises(InputError, match="is not the configuration of a run of this preset"):
        read_config(written(tiny(), tmp_path / "config.json"), UprightRun)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not the configuration of a run"),
        ("[]", "is not the configuration of a run"),
        ("{}", "is not the configuration of a run"),
        ('{"model": {"colour": 3}, "data": {"folders": []}, "training": {}}', "colour"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        read_config(path, JigsawRun)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "config.json", JigsawRun)
