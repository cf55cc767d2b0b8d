"""Files and names become puzzles of fragments, or one clear line."""

from pathlib import Path

import pytest
import trimesh

from diffassemble.core import InputError
from diffassemble.fragments.shapes.catalogue import fracture_file


def test_a_file_keeps_its_unit(tmp_path: Path) -> None:
    trimesh.creation.box((30, 20, 10)).export(tmp_path / "box.stl")
    puzzle = fracture_file(tmp_path / "box.stl", 3)
    assert len(puzzle) == 3
    assert puzzle.fragments.unit == pytest.approx(30)


def test_a_name(tmp_path: Path) -> None:
    assert len(fracture_file("pill-bottle", 4, missing=0.5)) == 2


@pytest.mark.parametrize(
    ("source", "seed", "words"),
    [
        ("anvil", 0, "anvil: is neither a mesh file nor the name of a solid; solids are: BeerBottle"),
        ("none.ply", 0, "none.ply: cannot be read"),
        ("bowl", -1, "seed -1 is out of range"),
    ],
)
def test_refusals(source: str, seed: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fracture_file(source, 2, seed)


def test_open_meshes_are_refused_by_name(tmp_path: Path) -> None:
    box = trimesh.creation.box()
    box.update_faces([True] * 11 + [False])
    box.export(tmp_path / "open.ply")
    with pytest.raises(InputError, match=r"open\.ply: not watertight; close its holes"):
        fracture_file(tmp_path / "open.ply", 2)
