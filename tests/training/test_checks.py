"""Configurations that cannot work are refused by the name of their option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.presets import PRESETS
from diffassemble.puzzle import InputError
from diffassemble.training import Config
from diffassemble.training.checks import check_config

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("training", {"steps": -1}, "--training.steps -1: must be 1 or more"),
    ("training", {"minutes": 0.0}, "--training.minutes 0.0: must be over 0"),
    ("training", {"noises": 0}, "--training.noises"),
    ("training", {"pieces": 8}, "--training.pieces 8: must be 9 or more, so that a 3x3 puzzle fits"),
    ("training", {"learning_rate": 0.0}, "--training.learning-rate"),
    ("training", {"warmup": -3}, "--training.warmup"),
    ("training", {"decay": 1.5}, "--training.decay"),
    ("training", {"average": 1.0}, "--training.average"),
    ("training", {"devices": 0}, "--training.devices"),
    ("training", {"validate_every": 0}, "--training.validate-every"),
    ("training", {"seed": -1}, "--training.seed"),
    ("data", {"folders": ()}, "no training pictures: pass --data.folders"),
    ("data", {"folders": (Path("a"), Path("a"))}, "names a folder twice"),
    ("data", {"shares": (1.0,)}, "--data.shares has 1 numbers for 2 folders"),
    ("data", {"shares": (1.0, -1.0)}, "--data.shares 1.0 -1.0"),
    ("data", {"shares": (0.0, 0.0)}, "--data.shares 0.0 0.0"),
    ("data", {"grids": (3, 2)}, "--data.grids 3 2"),
    ("data", {"grids": (0, 2)}, "--data.grids 0 2"),
    ("data", {"favourite": 1}, "--data.favourite"),
    ("data", {"missing": 1.0}, "--data.missing"),
    ("data", {"erode": 7}, "--data.erode 7: must be from 0 to 6 pixels"),
    ("data", {"erode_share": 1.1}, "--data.erode-share"),
    ("data", {"smallest_crop": 0.0}, "--data.smallest-crop"),
    ("data", {"held_apart": -1}, "--data.held-apart"),
    ("model", {"width": 0}, "--model.width 0: must be 1 or more"),
    ("model", {"heads": 5}, "--model.heads 5: must be a divisor of the width 32"),
    ("model", {"time_width": 7}, "--model.time-width 7: must be even"),
    ("model", {"dropped_edges": 1.0}, "--model.dropped-edges"),
    ("model", {"backbone": "resnet18", "symmetry": "plain"}, "--model.symmetry plain"),
]


@pytest.mark.parametrize(("part", "changes", "words"), BAD, ids=[" ".join(change) for _, change, _ in BAD])
def test_bad_values(tiny: Callable[..., Config], part: str, changes: dict[str, Any], words: str) -> None:
    config = tiny()
    changed: Any = replace(getattr(config, part), **changes)
    with pytest.raises(InputError) as refusal:
        check_config(replace(config, **{part: changed}))
    assert words in str(refusal.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are CUDA devices")
def test_devices_that_are_not_there(tiny: Callable[..., Config]) -> None:
    with pytest.raises(InputError, match="there are 0 CUDA devices here"):
        check_config(tiny(accelerator="cuda"))


def test_good_values(tiny: Callable[..., Config]) -> None:
    check_config(tiny())
    data = tiny().data
    for preset in PRESETS.values():
        check_config(replace(preset.config, data=replace(data, grids=(3, 12))))
