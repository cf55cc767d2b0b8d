"""Both forms of Breaking Bad give the same fractures; made ones follow from their numbers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh

from diffassemble.core import InputError, Mesh
from diffassemble.fragments.datasets import (
    HELD_OUT,
    PACKED_SCALE,
    Fracture,
    break_files,
    break_solids,
    find_fractures,
    holds_fractures,
)
from diffassemble.fragments.shapes import SOLIDS, make_solid
from diffassemble.io.meshes import mesh_bytes

OBJECTS = {"Bowl/a1": (2, 3), "Bowl/b2": (2, 12), "Cup/c3": (4,)}


def slices(count: int) -> list[trimesh.Trimesh]:
    """A bar that is broken across into `count` boxes, whole in [−½, ½] × [−¼, ¼]²."""
    ends = np.linspace(-0.5, 0.5, count + 1)
    return [trimesh.creation.box(bounds=[[low, -0.25, -0.25], [high, 0.25, 0.25]]) for low, high in pairwise(ends)]


def name(count: int) -> str:
    return "mode_0" if count == 4 else f"fractured_{count}"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    root = tmp_path / "published"
    for place, counts in OBJECTS.items():
        for count in counts:
            folder = root / "everyday" / place / name(count)
            folder.mkdir(parents=True)
            for index, box in enumerate(slices(count)):
                box.export(folder / f"piece_{index}.obj")
    (root / "data_split").mkdir()
    (root / "data_split" / "everyday.train.txt").write_text("everyday/Bowl/a1\neveryday/Cup/c3\n")
    (root / "data_split" / "everyday.val.txt").write_text("everyday/Bowl/b2 \n\n")
    return root


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    root = tmp_path / "packed"
    for place, counts in {**OBJECTS, "../example/everyday/Bowl/b2": (5,), "../artifact/d4": (2,)}.items():
        arrays = {}
        for count in counts:
            boxes = slices(count)
            arrays[f"{name(count)}/v"] = np.concatenate([box.vertices * PACKED_SCALE for box in boxes]).astype(np.int16)
            arrays[f"{name(count)}/f"] = np.concatenate([box.faces for box in boxes]).astype(np.uint16)
            arrays[f"{name(count)}/vo"] = np.arange(count + 1) * 8
            arrays[f"{name(count)}/fo"] = np.arange(count + 1) * 12
        file = root / "everyday" / f"{place}.npz"
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **arrays)
    (root / "val_objects.txt").write_text("everyday/Bowl/b2.npz\n")
    return root


@pytest.fixture(params=["published", "packed"])
def root(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def told(fractures: list[Fracture]) -> list[tuple[str, int]]:
    return [(fracture.name, fracture.pieces) for fracture in fractures]


def test_splits(root: Path) -> None:
    train = [("Bowl/a1/fractured_2", 2), ("Bowl/a1/fractured_3", 3), ("Cup/c3/mode_0", 4)]
    val = [("Bowl/b2/fractured_2", 2), ("Bowl/b2/fractured_12", 12)]
    assert told(find_fractures(root, "train")) == train
    assert told(find_fractures(root, "val")) == val
    assert told(find_fractures(root, "all")) == [*train[:2], *val, train[2]]


def test_numbers_of_pieces(root: Path) -> None:
    assert told(find_fractures(root, pieces=(3, 4))) == [("Bowl/a1/fractured_3", 3), ("Cup/c3/mode_0", 4)]
    with pytest.raises(InputError, match="no fractures of 13 to 20 pieces in its split 'val'"):
        find_fractures(root, "val", pieces=(13, 20))


def test_meshes_stand_assembled_in_their_order(root: Path) -> None:
    fracture = find_fractures(root, "val")[1]
    meshes = fracture.meshes()
    lows = torch.stack([mesh.vertices[:, 0].amin() for mesh in meshes])
    assert torch.allclose(lows, torch.linspace(-0.5, 0.5, 13)[:-1], atol=1e-4)
    for mesh in meshes:
        solid = trimesh.Trimesh(mesh.vertices.numpy(), mesh.faces.numpy(), process=False)
        assert solid.is_watertight
        assert solid.volume == pytest.approx(0.25 / 12, rel=1e-2)


def test_a_held_out_object_is_held_out_of_every_subset(packed: Path) -> None:
    assert len(find_fractures(packed, "all", subset="example")) == 1
    assert len(find_fractures(packed, "val", subset="example")) == 1
    with pytest.raises(InputError, match="no fractures"):
        find_fractures(packed, "train", subset="example")


def test_objects_without_a_class(packed: Path) -> None:
    assert told(find_fractures(packed, "train", subset="artifact")) == [("artifact/d4/fractured_2", 2)]


def test_what_is_not_there(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no folder 'other'"):
        find_fractures(root, subset="other")
    with pytest.raises(InputError, match="has no folder 'everyday'"):
        find_fractures(tmp_path / "nowhere")


def test_lists(published: Path, packed: Path) -> None:
    (packed / "val_objects.txt").unlink()
    with pytest.raises(InputError, match=r"neither val_objects\.txt nor data_split/everyday\.train\.txt"):
        find_fractures(packed, "train")
    assert len(find_fractures(packed, "all")) == 5
    (published / "data_split" / "everyday.val.txt").write_text("everyday/Bowl/b2\neveryday/Bowl/zz\n")
    with pytest.raises(InputError, match=r"1 of its 2 objects are not there \(first: zz\)"):
        find_fractures(published, "val")


def test_broken_files(packed: Path, published: Path) -> None:
    file = packed / "everyday" / "Bowl" / "a1.npz"
    fracture = find_fractures(packed)[0]
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InputError, match=r"a1\.npz"):
        find_fractures(packed)
    with pytest.raises(InputError, match=r"a1\.npz"):
        fracture.meshes()
    (published / "everyday" / "Bowl" / "a1" / "fractured_2" / "piece_1.obj").write_text("v 0 0 nan\n")
    with pytest.raises(InputError, match=r"piece_1\.obj"):
        find_fractures(published)[0].meshes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corners = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    solid = Mesh(corners, torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
    for name in ("cup", "bb_secret"):
        (tmp_path / f"{name}.ply").write_bytes(mesh_bytes(solid, ".ply"))
    (tmp_path / "index.csv").write_text("not a mesh")
    return tmp_path


def test_files_are_always_broken_the_same_way_but_not_what_is_held_out(folder: Path) -> None:
    made = break_files(folder, 3, (2, 5), frozenset({"secret"}))
    assert [fracture.source.stem for fracture in made] == ["cup"] * 3
    assert len({fracture.fracture for fracture in made}) == 3
    for fracture in made:
        first, second = fracture.meshes(), fracture.meshes()
        assert len(first) == fracture.pieces
        assert all(torch.equal(one.vertices, two.vertices) for one, two in zip(first, second, strict=True))
        assert fracture.files == [fracture.source]


def test_solids_go_through_all_classes() -> None:
    made = break_solids(2 * len(SOLIDS), 1, (2, 4))
    assert {fracture.source.name for fracture in made} == set(SOLIDS)
    assert all(2 <= fracture.pieces <= 4 for fracture in made)
    assert made[0].files == []
    assert len(made[0].meshes()) == made[0].pieces
    others = break_solids(len(SOLIDS), 1, (2, 4), HELD_OUT)
    assert {one.category for one in others} == set(SOLIDS)
    assert not {one.name for one in others} & {one.name for one in made}


def test_spoons_lie_as_the_benchmarks_do() -> None:
    """Along z, the heavy bowl behind and the handle in front."""
    for seed in range(3):
        vertices = make_solid("Spoon", torch.Generator().manual_seed(seed)).vertices
        assert int((vertices.amax(0) - vertices.amin(0)).argmax()) == 2
        behind, front = (vertices[side * vertices[:, 2] > 0.3] for side in (-1, 1))
        assert float(behind[:, 0].abs().max()) > 1.5 * float(front[:, 0].abs().max())


@pytest.mark.parametrize(
    ("files", "broken"),
    [
        (["everyday/Bottle/a.npz"], True),
        (["val_objects.txt"], True),
        (["data_split/everyday.val.txt"], True),
        (["everyday/Bottle/a/fractured_0/piece_0.obj"], True),
        (["piece_0.obj", "piece_1.obj"], True),
        (["photo.png", "more/photo.jpg"], False),
        (["whole.obj", ".hidden.npz"], False),
        ([], False),
    ],
)
def test_by_what_lies_there(tmp_path: Path, files: list[str], broken: bool) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert holds_fractures(tmp_path) is broken
    assert not holds_fractures(tmp_path / "nowhere")
