"""Configurations are read back as they were written; impossible ones are refused by an option; presets are complete."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.network.denoiser import Denoiser
from diffassemble.training.config import Config, check_config, read_config
from diffassemble.training.presets import PRESETS

FLAT = {"backbone": "light", "space": "cos_sin"}
BAD: list[tuple[str, str, dict[str, Any], str]] = [
    ("jigsaw", "training", {"steps": -1}, "--training.steps -1: must be 1 or more"),
    ("jigsaw", "training", {"minutes": 0.0}, "--training.minutes 0.0: must be over 0"),
    ("jigsaw", "training", {"pieces": 8}, "--training.pieces 8: must be 9 or more, so that a 3x3 puzzle fits"),
    ("jigsaw", "training", {"learning_rate": float("nan")}, "--training.learning-rate nan"),
    ("jigsaw", "training", {"decay": 1.5}, "--training.decay 1.5: must be 0 or more and at most 1"),
    ("jigsaw", "training", {"average": 1.0}, "--training.average 1.0: must be 0 or more and under 1"),
    ("jigsaw", "training", {"nodes": 2}, "--training.nodes 2: must be 1 without torchrun"),
    ("jigsaw", "data", {"folders": ()}, "--data.folders: must be folders of training pictures; pass --data.folders"),
    ("jigsaw", "data", {"folders": (Path("a"), Path("a"))}, "--data.folders a a: must be different folders"),
    ("jigsaw", "data", {"shares": (1.0,)}, "--data.shares 1.0: must be 2 numbers, one for each folder"),
    ("jigsaw", "data", {"shares": (1.0, -1.0)}, "--data.shares 1.0 -1.0: must be each 0 or more"),
    ("jigsaw", "data", {"shares": (0.0, 0.0)}, "--data.shares 0.0 0.0"),
    ("jigsaw", "data", {"grids": (3, 2)}, "--data.grids 3 2: must be the fewest rows, then the most"),
    ("jigsaw", "data", {"grids": (0, 2)}, "--data.grids 0 2: must be each 2 or more"),
    ("jigsaw", "data", {"erode": 7}, "--data.erode 7: must be 0 or more and at most 6"),
    ("jigsaw", "model", {"heads": 5}, "--model.heads 5: must be a divisor of the width 32"),
    ("jigsaw", "model", {"time_width": 7}, "--model.time-width 7: must be 2 or more and at most 4096 and a multiple"),
    ("jigsaw", "model", {"degree": 2.5}, "--model.degree 2.5: must be 0"),
    ("jigsaw", "model", {"degree": 5000.0}, "--model.degree 5000.0: must be at most 8, all other pieces"),
    ("jigsaw", "model", {"degree": 0.2, "dropped_edges": 0.2}, "both make graphs sparse"),
    ("jigsaw", "model", {"top_k": 2}, "--model.top-k 2: must be 0 without a degree or without matches"),
    ("jigsaw", "model", {"backbone": "resnet18", "symmetry": "plain"}, "--model.symmetry plain"),
    ("jigsaw", "model", {"backbone": "vn_dgcnn"}, "--model.space cos_sin: must be so3 or six_d or quaternion with"),
    ("jigsaw", "model", {"backbone": "vn_dgcnn", "space": "so3"}, "--model.space so3: must be cos_sin, the poses of"),
    ("edge-model", "model", {"observed": 4}, "--model.observed 4: must be 3 or more and at most 4096 and"),
    ("edge-model", "model", {"widest_gap": 1}, "--model.widest-gap 1: must be 2 or more, the erosion of --data.erode"),
    ("edge-model", "training", {"pieces": 8}, "--training.pieces 8: must be 9 or more, so that a 3x3 puzzle fits"),
    ("outlines", "model", {"votes": False}, "without votes"),
    ("fragments", "data", {"solids": 0}, "--data.folders: must be something to learn from"),
    ("fragments", "data", {"pieces": (5, 2)}, "--data.pieces 5 2: must be the fewest pieces, then the most"),
    ("fragments", "model", {"contact_slots": 4}, "--model.votes: matches are read with votes, space so3"),
    ("fragments-paper-form", "model", {"symmetry": "invariant"}, "--model.posed True: must be off"),
    ("fragments", "model", {"votes": False}, "--model.votes: matches are read with votes, space so3"),
    ("fragments-paper-form", "model", {"edge_features": True}, "--model.votes: must be off"),
    ("fragments-paper-form", "model", {**FLAT, "posed": False}, "--model.space cos_sin"),
    ("fracture-matching", "data", {"learn": "fits"}, "--data.learn fits: needs networks that know surfaces"),
]


@pytest.mark.parametrize(
    ("task", "part", "changes", "words"), BAD, ids=[f"{task} {' '.join(change)}" for task, _, change, _ in BAD]
)
def test_bad_values(configs: dict[str, Config], task: str, part: str, changes: dict[str, Any], words: str) -> None:
    config = configs[task]
    with pytest.raises(InputError) as raised:
        PRESETS[task].learner(replace(config, **{part: replace(getattr(config, part), **changes)}))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are CUDA devices")
def test_devices_that_are_not_there(tiny: Callable[..., Config]) -> None:
    with pytest.raises(InputError, match=r"--training\.devices 1: must be at most 0, the CUDA devices here"):
        check_config(tiny(accelerator="cuda"))


@pytest.mark.parametrize("name", PRESETS)
def test_presets_lack_nothing_but_pictures(name: str, picture_folders: tuple[Path, Path]) -> None:
    config = PRESETS[name].config
    check_config(replace(config, data=replace(config.data, folders=picture_folders)))


CHANGES: list[dict[str, Any]] = [
    *({"backbone": name} for name in ("light", "resnet18", "vn_dgcnn", "dgcnn")),
    *({"symmetry": name} for name in ("invariant", "plain")),
    *({"space": name} for name in ("cos_sin", "so3", "six_d", "quaternion")),
    *({name: True} for name in ("posed", "edge_features", "votes", "sparse_solving")),
    *({name: False} for name in ("posed", "edge_features", "votes", "board")),
    *({"layer": "gcn"}, {"stack": "published"}, {"heads": 5}, {"hidden": 18}, {"times": 1}),
    *({"dropped_edges": 0.5}, {"degree": 2.0}, {"top_k": 1}, {"virtual_nodes": 2}),
    {"complete_up_to": 1},
]


def refusal(task: Any) -> str:
    """Why a task's configuration is refused, if it is."""
    try:
        task.check(task.config)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", ["jigsaw", "fragments-paper-form"])
def test_every_pair_of_settings_learns_or_is_refused(name: str, configs: dict[str, Config]) -> None:
    """A step teaches every parameter; a refusal is one line that names an option."""
    config = configs[name]
    few = replace(config.training, pieces=4, noises=1)
    data = {"grids": (2, 2), "favourite": 2} if name == "jigsaw" else {"points": 32}
    small = replace(config.model, features=4, width=24, layers=1, pose_hidden=4, join_hidden=8)
    config = Config(small, replace(config.data, **data), few)
    task = PRESETS[name].learner(config)
    changes = [change for change in CHANGES if replace(small, **change) != small]
    tried = refused = 0
    for one, two in combinations(changes, 2):
        if set(one) & set(two):
            continue
        task.config = replace(config, model=replace(small, **one, **two))
        tried += 1
        if message := refusal(task):
            assert message.startswith("--model."), (one, two, message)
            assert "\n" not in message
            refused += 1
            continue
        torch.manual_seed(0)
        network = task.build()
        task.loss(network, 0, 0, 1).backward()
        unused = [name for name, value in network.named_parameters() if value.grad is None]
        assert not unused, (one, two, unused)
    assert 0.2 < refused / tried < 0.9


def written(config: Config, path: Path) -> Path:
    path.write_text(json.dumps(asdict(config), default=os.fspath))
    return path


def test_configurations_are_read_back_and_those_of_another_kind_refused(
    configs: dict[str, Config], tmp_path: Path
) -> None:
    for name, config in configs.items():
        assert read_config(written(config, tmp_path / "config.json"), PRESETS[name].learner.defaults) == config
    for one, other in (("jigsaw", "upright"), ("upright", "jigsaw"), ("jigsaw", "fragments")):
        with pytest.raises(InputError, match="is not the configuration of a run of this preset"):
            read_config(written(configs[one], tmp_path / "config.json"), PRESETS[other].learner.defaults)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON; give a configuration of a run"),
        ("[]", "is not the configuration of a run"),
        ("{}", "is not the configuration of a run"),
        ('{"model": {"colour": 3}, "data": {"folders": []}, "training": {}}', "colour"),
        ('{"model": {"width": "3"}, "data": {"folders": []}, "training": {}}', "width is '3', but must be int"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        read_config(path, PRESETS["jigsaw"].learner.defaults)
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "nowhere.json", PRESETS["jigsaw"].learner.defaults)


def differences(name: str, base: str) -> dict[str, object]:
    one, two = asdict(PRESETS[name].config.model), asdict(PRESETS[base].config.model)
    return {key: value for key, value in one.items() if value != two[key]}


def test_purposes_are_one_line() -> None:
    assert all(0 < len(preset.purpose) < 90 and "\n" not in preset.purpose for preset in PRESETS.values())


def test_the_form_of_the_paper_has_no_pairwise_evidence() -> None:
    assert differences("jigsaw-paper-form", "jigsaw") == {"edge_features": False, "edge_model": "", "votes": False}
    assert not PRESETS["jigsaw-paper"].config.model.pairwise


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("ablation-")])
def test_ablations_are_one_change_away_from_the_paper_form(name: str) -> None:
    several = {"expander": {"degree", "virtual_nodes", "sparse_solving"}, "regression": {"head", "side_heads"}}
    changed = differences(name, "jigsaw-paper-form").keys()
    expected = several.get(name.removeprefix("ablation-"))
    assert changed == expected if expected else len(changed) == 1
    same = PRESETS[name].config.training == PRESETS["jigsaw-paper-form"].config.training
    assert same == (name != "ablation-regression")  # which has no other loss


def test_the_published_sizes() -> None:
    config = PRESETS["jigsaw-paper"].config
    model = Denoiser(config.model)
    assert 4 * config.model.features == 1088
    assert 1088 + config.model.pose_width + config.model.time_width == config.model.width == 1152
    assert len(model.stack.layers) == 4
    assert config.training.optimizer == "adagrad"
    assert config.training.learning_rate == 1e-4


def test_a_list_of_presets_needs_no_torch() -> None:
    script = "import sys; from diffassemble.cli import train; train.run(['--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
