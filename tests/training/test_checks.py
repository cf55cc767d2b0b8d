"""Configurations that cannot work are refused by the name of their option."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.training.checks import (
    check_critic,
    check_edge_model,
    check_fracture_matching,
    check_fragments,
    check_jigsaw,
    check_orientation,
    check_upright,
)
from diffassemble.training.config import EdgeModelRun, JigsawRun, UprightRun
from diffassemble.training.presets import PRESETS

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("training", {"steps": -1}, "--training.steps -1: must be 1 or more"),
    ("training", {"minutes": 0.0}, "--training.minutes 0.0: must be over 0"),
    ("training", {"noises": 0}, "--training.noises"),
    ("training", {"rotation_weight": -0.5}, "--training.rotation-weight"),
    ("training", {"pieces": 8}, "--training.pieces 8: must be 9 or more, so that a 3x3 puzzle fits"),
    ("training", {"learning_rate": 0.0}, "--training.learning-rate"),
    ("training", {"warmup": -3}, "--training.warmup"),
    ("training", {"decay": 1.5}, "--training.decay"),
    ("training", {"average": 1.0}, "--training.average"),
    ("training", {"devices": 0}, "--training.devices"),
    ("training", {"nodes": 0}, "--training.nodes 0: must be 1 or more"),
    ("training", {"nodes": 2}, "--training.nodes 2: several machines need torchrun"),
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
    ("model", {"degree": -0.2}, "--model.degree -0.2: must be 0"),
    ("model", {"degree": 2.5}, "--model.degree 2.5: must be 0"),
    ("model", {"degree": 5000.0}, "--model.degree 5000.0: must be at most"),
    ("model", {"degree": 0.2, "dropped_edges": 0.2}, "both make graphs sparse"),
    ("model", {"top_k": 2}, "--model.top-k adds matches to an expander"),
    ("model", {"virtual_nodes": -1}, "--model.virtual-nodes -1: must be 0 or more"),
    ("model", {"backbone": "resnet18", "symmetry": "plain"}, "--model.symmetry plain"),
]

BAD_UPRIGHT: list[tuple[str, dict[str, Any], str]] = [
    ("training", {"pictures": 0}, "--training.pictures 0: must be 1 or more"),
    ("training", {"steps": 0}, "--training.steps 0: must be 1 or more"),
    ("training", {"clip": -1.0}, "--training.clip"),
    ("data", {"folders": ()}, "no training pictures: pass --data.folders"),
    ("data", {"shares": (1.0,)}, "--data.shares has 1 numbers for 2 folders"),
    ("data", {"held_apart": -1}, "--data.held-apart"),
    ("model", {"size": 0}, "--model.size 0: must be 1 or more"),
    ("model", {"stem": -2}, "--model.stem"),
    ("model", {"widths": (16, 0)}, "--model.widths 16 0: must be"),
    ("model", {"widths": ()}, "--model.widths"),
    ("model", {"dropout": 1.0}, "--model.dropout"),
]


def refusal(check: Callable[[Any], None], config: Any, part: str, changes: dict[str, Any]) -> str:
    """What is said to a configuration with one part changed."""
    changed: Any = replace(getattr(config, part), **changes)
    with pytest.raises(InputError) as raised:
        check(replace(config, **{part: changed}))
    return str(raised.value)


@pytest.mark.parametrize(("part", "changes", "words"), BAD, ids=[" ".join(change) for _, change, _ in BAD])
def test_bad_values(tiny: Callable[..., JigsawRun], part: str, changes: dict[str, Any], words: str) -> None:
    assert words in refusal(check_jigsaw, tiny(), part, changes)


@pytest.mark.parametrize(("part", "changes", "words"), BAD_UPRIGHT, ids=[words for _, _, words in BAD_UPRIGHT])
def test_bad_values_of_the_upright_classifier(
    tiny_upright: Callable[..., UprightRun], part: str, changes: dict[str, Any], words: str
) -> None:
    assert words in refusal(check_upright, tiny_upright(), part, changes)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are CUDA devices")
def test_devices_that_are_not_there(tiny: Callable[..., JigsawRun]) -> None:
    with pytest.raises(InputError, match="there are 0 CUDA devices here"):
        check_jigsaw(tiny(accelerator="cuda"))


def test_good_values(tiny: Callable[..., JigsawRun], tiny_upright: Callable[..., UprightRun]) -> None:
    check_jigsaw(tiny())
    check_upright(tiny_upright())
    checks: dict[str, Callable[[Any], None]] = {
        "jigsaw": check_jigsaw,
        "upright": check_upright,
        "edge-model": check_edge_model,
        "fragments": check_fragments,
        "baseline": check_fragments,
        "fracture-matching": check_fracture_matching,
        "orientation": check_orientation,
        "critic": check_critic,
    }
    for preset in PRESETS.values():
        config = preset.config
        checks[preset.task](replace(config, data=replace(config.data, folders=tiny().data.folders)))


@pytest.mark.parametrize(
    ("part", "changes", "words"),
    [
        ("model", {"depth": 0}, "--model.depth 0: must be 1 or more"),
        ("model", {"length": 31}, "--model.length 31: must be even"),
        ("model", {"blocks": -1}, "--model.blocks"),
        ("model", {"observed": 4}, "--model.observed 4: must be 3, 6 or another multiple of 3"),
        ("model", {"widest_gap": 1}, "--model.widest-gap 1: must be 2 or more, the erosion of --data.erode"),
        ("data", {"folders": ()}, "no training pictures: pass --data.folders"),
        ("data", {"grids": (3, 2)}, "--data.grids 3 2"),
        ("training", {"steps": 0}, "--training.steps 0: must be 1 or more"),
        ("training", {"pieces": 8}, "--training.pieces 8: must be 9 or more, so that a 3x3 puzzle fits"),
        ("training", {"worn_share": 1.5}, "--training.worn-share 1.5: must be from 0 to 1"),
    ],
)
def test_what_an_edge_model_cannot_learn_from(
    tiny_edge_model: Callable[..., EdgeModelRun], part: str, changes: dict[str, Any], words: str
) -> None:
    config = tiny_edge_model()
    check_edge_model(config)
    with pytest.raises(InputError) as caught:
        check_edge_model(replace(config, **{part: replace(getattr(config, part), **changes)}))
    assert words in str(caught.value)
