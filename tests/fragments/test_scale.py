"""Fragments of another unit of length are told, chips are not."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from diffassemble.core import Mesh
from diffassemble.core.surfaces import surface_area
from diffassemble.fragments.breaking import fracture
from diffassemble.fragments.mend import MendSolver
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.screening import Lengths, misfit, misfit_of
from diffassemble.fragments.shapes import make_solid
from diffassemble.io.fragments import fragment_pieces, read_fragments
from diffassemble.io.meshes import mesh_bytes


def sizes(*lengths: float, grain: tuple[float, ...] = (), radii: tuple[float, ...] = ()) -> Lengths:
    """Fragments of these sizes; their corners lie equally close unless it is told."""
    size, reach = torch.tensor(lengths, dtype=torch.double), torch.tensor(radii or lengths, dtype=torch.double)
    gaps = torch.tensor(grain or (0.01,) * len(lengths), dtype=torch.double)
    return Lengths(3 * size, reach, size, gaps, (9 * (size / gaps).square()).long())


def test_the_fewer_differ_from_the_more() -> None:
    found = misfit(sizes(1, 900, 1.5, 0.8))
    assert found is not None
    assert found.members == (1,)
    assert found.unplaced
    assert found.text == "about 900 times as large as the others: another unit?"
    found = misfit(sizes(1, 0.001, 1.5, 0.002))
    assert found is not None
    assert found.members == (1, 3)
    assert "about 1/1000 times as large" in found.text or "about 1/" in found.text


def test_the_factor_decides() -> None:
    assert misfit(sizes(1, 0.5, 0.5 / 24)) is None
    told = misfit(sizes(1, 0.5, 0.5 / 26))
    assert told is not None
    assert not told.unplaced
    left = misfit(sizes(1, 1, 1 / 101))
    assert left is not None
    assert left.unplaced
    # Ever smaller chips are no second group, and a thin rod is not large for being long.
    assert misfit(sizes(*(0.2**number for number in range(6)))) is None
    assert misfit(sizes(1, 0.95, 0.055, radii=(3.0, 2.0, 0.03))) is None
    assert misfit(sizes(1)) is None


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_chips_are_ordinary(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    meshes = fracture(make_solid("statue", generator), 8, generator, chips=0.5)
    areas = torch.tensor([surface_area(mesh.vertices, mesh.faces) for mesh in meshes])
    assert areas.min() < 0.02 * areas.sum()
    pieces = fragment_pieces(meshes)
    assert misfit_of(pieces.points, pieces.meshes) is None


def test_a_chip_of_three_thousandths_of_the_surface_is_ordinary(block: Mesh) -> None:
    chip = Mesh(block.vertices * 0.055, block.faces)
    pieces = fragment_pieces([block, chip])
    assert misfit_of(pieces.points, pieces.meshes) is None


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_the_rest_is_put_together_without_the_file_of_another_unit(
    factor: float, halves: list[Mesh], block: Mesh, models: FractureModels, tmp_path: Path
) -> None:
    odd = Mesh(block.vertices * factor, block.faces)
    for name, mesh in zip("abc", [*halves, odd], strict=True):
        (tmp_path / f"{name}.ply").write_bytes(mesh_bytes(mesh, ".ply"))
    said = r"c\.ply is about (1/)?1\d00 times as large as the others: another unit\?|c\.ply is about (1/)?\d+ times"
    with pytest.warns(UserWarning, match=said):
        puzzle = read_fragments(tmp_path)
    assert 0.5 < puzzle.fragments.unit < 2
    *_, last = MendSolver(models).steps(puzzle, torch.Generator().manual_seed(0))
    assert last.placements.objects is not None
    assert last.placements.notes is not None
    assert last.placements.objects.tolist() == [0, 0, -1]
    assert last.placements.confidence[:2].min() > 0.5
    assert last.placements.confidence[2] == 0
    assert "another unit?" in last.placements.notes[2]
    assert last.placements.guess is not None
    assert torch.isfinite(last.poses.translation).all()


def test_nothing_is_said_of_ordinary_files(halves: list[Mesh], tmp_path: Path) -> None:
    for name, mesh in zip("ab", halves, strict=True):
        (tmp_path / f"{name}.ply").write_bytes(mesh_bytes(mesh, ".ply"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_fragments(tmp_path)


@pytest.mark.parametrize("factor", [10.0, 25.4, 0.1])
@pytest.mark.parametrize("category", ["mug", "statue"])
def test_one_file_of_another_unit_is_told_by_the_grain_of_its_surface(category: str, factor: float) -> None:
    generator = torch.Generator().manual_seed(3)
    meshes = fracture(make_solid(category, generator), 5, generator)
    odd = max(range(5), key=lambda piece: len(meshes[piece].faces))
    meshes[odd] = Mesh(meshes[odd].vertices * factor, meshes[odd].faces)
    pieces = fragment_pieces(meshes)
    found = misfit_of(pieces.points, pieces.meshes)
    assert found is not None
    assert found.members == (odd,)
    assert found.unplaced
    assert found.factor == pytest.approx(factor)


def test_a_large_body_beside_chips_is_not_accused() -> None:
    # Whether their corners lie equally close, or all have equally many: the size of a lump is its own.
    assert misfit(sizes(10, 0.5, 0.6, 0.7)) is None
    assert misfit(sizes(10, 0.5, 0.6, 0.7, grain=(0.1, 0.005, 0.006, 0.007))) is None
    # But corners lie ten times as far apart only in another unit.
    told = misfit(sizes(10, 0.5, 1.2, 0.7, grain=(0.1, 0.01, 0.011, 0.009)))
    assert told is not None
    assert told.members == (0,)
    assert told.text == "about 10 times as large as the others: another unit?"
