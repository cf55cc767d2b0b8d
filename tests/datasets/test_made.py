"""Fractures of our own making are the same every time, and none is made of what is held out."""

from pathlib import Path

import pytest
import torch

from diffassemble.core import Mesh
from diffassemble.files.meshes import mesh_bytes
from diffassemble.fragments.datasets import MadeFracture, break_files, break_solids
from diffassemble.fragments.shapes.catalogue import SOLIDS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corners = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    solid = Mesh(corners, torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
    for name in ("cup", "bb_secret"):
        (tmp_path / f"{name}.ply").write_bytes(mesh_bytes(solid, ".ply"))
    (tmp_path / "index.csv").write_text("not a mesh")
    return tmp_path


def test_files_are_broken_but_not_what_is_held_out(folder: Path) -> None:
    made = break_files(folder, 3, (2, 5), frozenset({"secret"}))
    assert [fracture.source.stem for fracture in made] == ["cup"] * 3
    assert len({fracture.fracture for fracture in made}) == 3
    for fracture in made:
        assert len(fracture.meshes()) == fracture.pieces
        assert fracture.files == [fracture.source]


def test_the_same_number_breaks_the_same_way(folder: Path) -> None:
    first, second = (MadeFracture(folder / "cup.ply", 7, 3).meshes() for _ in range(2))
    assert all(torch.equal(one.vertices, two.vertices) for one, two in zip(first, second, strict=True))


def test_solids_go_through_all_classes() -> None:
    made = break_solids(2 * len(SOLIDS), 1, (2, 4))
    assert {fracture.source.name for fracture in made} == set(SOLIDS)
    assert all(2 <= fracture.pieces <= 4 for fracture in made)
    assert made[0].files == []
    assert len(made[0].meshes()) == made[0].pieces
