"""Learning to put objects together: what is learnt from, what is compared, what is held apart."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diffassemble.core import InputError
from diffassemble.fragments.datasets import break_solids
from diffassemble.training.config import Config, FragmentConfig
from diffassemble.training.fragments import FragmentTask, gather


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four small objects in the packed form of Breaking Bad; the last is held out."""
    root = tmp_path_factory.mktemp("broken")
    for number, made in enumerate(break_solids(4, 1, (2, 3))):
        meshes = made.meshes()
        file = root / "everyday" / made.source.name / f"object{number}.npz"
        file.parent.mkdir(parents=True)
        vertices, faces = [mesh.vertices.numpy() for mesh in meshes], [mesh.faces.numpy() for mesh in meshes]
        arrays = {
            "v": (np.concatenate(vertices) * 65000).round().clip(-32767, 32767).astype(np.int16),
            "f": np.concatenate(faces).astype(np.uint16),
            "vo": np.cumsum([0, *map(len, vertices)]),
            "fo": np.cumsum([0, *map(len, faces)]),
        }
        np.savez(file, **{f"fractured_0/{key}": value for key, value in arrays.items()})
    (root / "val_objects.txt").write_text(f"everyday/{made.source.name}/object3.npz\n")
    return root


@pytest.fixture
def tiny(broken: Path, configs: dict[str, Config]) -> Callable[..., Config]:
    """A run that takes seconds; keywords are changes to its training part."""
    small = replace(configs["fragments"], data=FragmentConfig(folders=(broken,), held_apart=1, points=64))
    return lambda **changes: replace(small, training=replace(small.training, pieces=8, **changes))


def test_nothing_held_out_or_apart_is_learnt_from(broken: Path, tmp_path: Path) -> None:
    for name in ("bb_object0", "bb_object1", "bb_object3", "other"):
        (tmp_path / f"{name}.ply").touch()
    data = FragmentConfig(folders=(broken,), meshes=(tmp_path,), held_apart=1, breaks=1)
    (found, files, solids), apart = gather(data)
    assert {fracture.source.stem for fracture in found} == {"object1", "object2"}
    assert {fracture.object for fracture in apart} == {"object0"}
    assert {made.source.stem for made in files} == {"bb_object1", "other"}
    assert not solids


def test_the_shape_is_compared_too(tiny: Callable[..., Config]) -> None:
    model = FragmentTask(tiny()).build()
    with_shape, without = (FragmentTask(tiny(chamfer_weight=w)).loss(model, 0, 0, 1).item() for w in (5.0, 0.0))
    assert with_shape > without


def test_half_precision_tells_points_apart(tiny: Callable[..., Config]) -> None:
    task = FragmentTask(tiny())
    model = task.build()
    whole = task.loss(model, 0, 0, 1).item()
    with torch.autocast("cpu", torch.bfloat16):
        assert task.loss(model, 0, 0, 1).item() == pytest.approx(whole, rel=0.02)


def test_learns(tiny: Callable[..., Config], learn: Callable[..., tuple[Any, list[float]]]) -> None:
    task = FragmentTask(tiny())
    model, losses = learn(task, 12, 3e-3, again=True)
    assert losses[-1] < 0.8 * losses[0]
    scores = task.validate(model)
    assert scores["score"] == pytest.approx(scores["part accuracy"] - scores["RMSE(R)"])
    assert 0 <= scores["part accuracy"] <= 100
    assert scores["RMSE(T)"] > 0


def test_without_anything_to_learn_from(tiny: Callable[..., Config]) -> None:
    with pytest.raises(InputError, match="not a folder"):
        FragmentTask(replace(tiny(), data=FragmentConfig(meshes=(Path("nowhere"),))))
