"""Fragments of another unit of length, or given twice, are set aside; the unit of all files does not matter."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from manifold3d import CrossSection, Manifold

from diffassemble.core import Mesh, Placements, Puzzle, Step
from diffassemble.core.poses import Poses, random_rotations
from diffassemble.core.puzzle import Locks
from diffassemble.core.solver import content_order
from diffassemble.core.surfaces import surface_area
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.mend import MendSolver, with_equals_noted
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.screening import (
    Lengths,
    are_copies,
    congruent,
    has_plane,
    misfit,
    misfit_of,
    set_aside,
)
from diffassemble.fragments.shapes import make_solid
from diffassemble.io.fragments import file_matrices, fragment_pieces, in_file_coordinates, read_fragments
from diffassemble.io.meshes import mesh_bytes

NOTHING = torch.zeros(0, 3, dtype=torch.long)


def moved(mesh: Mesh, seed: int = 0) -> Mesh:
    """A copy elsewhere, in single precision, with corners and triangles listed in another order."""
    generator = torch.Generator().manual_seed(seed)
    turn = random_rotations(1, generator)[0].double()
    order = torch.randperm(len(mesh.vertices), generator=generator)
    faces = order.argsort()[mesh.faces][torch.randperm(len(mesh.faces), generator=generator)]
    return Mesh((mesh.vertices.double()[order] @ turn.T + torch.tensor([0.3, -2.0, 1.0])).float(), faces)


def puzzle_of(*meshes: Mesh) -> Puzzle:
    names = tuple(f"{letter}.ply" for letter, _ in zip("abcdefgh", meshes, strict=False))
    return Puzzle(fragment_pieces([Mesh(mesh.vertices.double(), mesh.faces) for mesh in meshes]), None, names)


def twisted() -> list[Mesh]:
    """The two equal halves of a twisted bar, sawn across: neither is its own mirror image."""
    bar = CrossSection([[(-0.5, -0.1), (0.5, -0.35), (0.5, 0.35), (-0.5, 0.1)]])
    half = mesh_of(Manifold.extrude(bar, 0.8, 20, 70, (0.6, 0.8)))
    turned = half.vertices * torch.tensor([1.0, -1.0, -1.0])
    return [half, Mesh(turned, half.faces)]


def test_copies_are_found_however_they_lie(halves: list[Mesh]) -> None:
    one, two = halves
    assert congruent(one, one)
    assert congruent(one, moved(one))
    assert not congruent(one, two)
    mirrored = Mesh(one.vertices * torch.tensor([1.0, 1.0, -1.0]), one.faces.flip(1))
    assert not congruent(one, mirrored)
    bent = one.vertices.clone()
    bent[len(bent) // 2] += 1e-3
    assert not congruent(one, Mesh(bent, one.faces))


def test_one_of_two_copies_is_left_out(models: FractureModels) -> None:
    generator = torch.Generator().manual_seed(1)
    one, two = fracture(make_solid("statue", generator), 2, generator)
    assert set_aside(puzzle_of(one, two, one)) == {2: "the same fragment as a.ply"}
    *_, last = MendSolver(models).steps(puzzle_of(moved(one), two, one), torch.Generator().manual_seed(0))
    assert last.placements.objects is not None
    assert last.placements.notes is not None
    assert last.placements.objects.tolist() == [0, 0, -1]
    assert last.placements.notes == ("", "", "the same fragment as a.ply")
    assert last.placements.confidence[:2].min() > 0.9
    assert last.placements.confidence[2] == 0


def test_copies_in_clouds_and_what_is_locked(halves: list[Mesh]) -> None:
    points = fragment_pieces(halves, points=4000).points
    clouds = puzzle_of(*(Mesh(points[index], NOTHING) for index in (0, 1, 0)))
    assert set_aside(clouds) == {2: "the same fragment as a.ply"}
    locks = Locks(torch.tensor([False, False, True]), Poses.identity(3, 3))
    assert set_aside(replace(clouds, locks=locks)) == {0: "the same fragment as c.ply"}


def test_equal_parts_of_regular_objects_are_no_copies() -> None:
    quarter = mesh_of(Manifold.cube((0.5, 0.4, 0.3)))
    assert set_aside(puzzle_of(quarter, quarter, moved(quarter))) == {}
    bowl = (Manifold.sphere(0.5, 64) - Manifold.sphere(0.4, 64)).trim_by_plane((0, 0, 1), 0.1)
    sawn = mesh_of(bowl.trim_by_plane((1, 0, 0), 0).trim_by_plane((0, 1, 0), 0))
    assert set_aside(puzzle_of(sawn, sawn, moved(sawn))) == {}
    one, two = twisted()
    assert congruent(one, two)
    assert has_plane(one)
    assert not are_copies(one, two)


def test_a_moved_copy_that_sawing_could_explain_is_noted_where_it_is_in_doubt() -> None:
    one, two = twisted()
    puzzle = puzzle_of(one, two, moved(one))
    assert set_aside(puzzle) == {}
    placed = Placements(Poses.identity(3, 3), torch.tensor([0.95, 0.6, 0.2]), notes=("", "", "a guess"))
    notes = with_equals_noted(Step.last(placed), puzzle).placements.notes
    assert notes is not None
    assert notes[0] == ""
    assert all("ply: a copy, or equal parts sawn apart?" in note for note in notes[1:])
    assert notes[2].startswith("a guess; ")


@pytest.mark.parametrize("name", ["bowl", "statue"])
def test_copies_of_any_fragment_differ_from_other_fragments(name: str) -> None:
    generator = torch.Generator().manual_seed(4)
    meshes = fracture(make_solid(name, generator), 6, generator)
    assert set_aside(puzzle_of(*meshes)) == {}
    assert all(congruent(mesh, moved(mesh)) for mesh in meshes)
    assert all(are_copies(mesh, other) != has_plane(mesh) for mesh in meshes for other in (mesh, moved(mesh)))


def sizes(*lengths: float, grain: tuple[float, ...] = (), radii: tuple[float, ...] = ()) -> Lengths:
    """Fragments of these sizes; their corners are equally close unless given."""
    size, gaps = np.array(lengths), np.array(grain or (0.01,) * len(lengths))
    return Lengths(3 * size, np.array(radii or lengths), gaps, np.round(9 * (size / gaps) ** 2))


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
    found = misfit(sizes(1, 0.5, 0.5 / 26))
    assert found is not None
    assert not found.unplaced
    found = misfit(sizes(1, 1, 1 / 101))
    assert found is not None
    assert found.unplaced
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


def test_the_rest_is_put_together_without_the_file_of_another_unit(
    halves: list[Mesh], block: Mesh, models: FractureModels, tmp_path: Path
) -> None:
    odd = Mesh(block.vertices * 1000.0, block.faces)
    for name, mesh in zip("abc", [*halves, odd], strict=True):
        (tmp_path / f"{name}.ply").write_bytes(mesh_bytes(mesh, ".ply"))
    message = r"c\.ply is about (1/)?1\d00 times as large as the others: another unit\?|c\.ply is about (1/)?\d+ times"
    with pytest.warns(UserWarning, match=message):
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


def test_ordinary_files_give_no_warning(halves: list[Mesh], tmp_path: Path) -> None:
    for name, mesh in zip("ab", halves, strict=True):
        (tmp_path / f"{name}.ply").write_bytes(mesh_bytes(mesh, ".ply"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_fragments(tmp_path)


@pytest.mark.parametrize("factor", [10.0, 25.4, 0.1])
@pytest.mark.parametrize("category", ["mug", "statue"])
def test_one_file_of_another_unit_is_found_by_the_grain_of_its_surface(category: str, factor: float) -> None:
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
    # Whether their corners are equally close, or all have equally many: the size of a lump is its own.
    assert misfit(sizes(10, 0.5, 0.6, 0.7)) is None
    assert misfit(sizes(10, 0.5, 0.6, 0.7, grain=(0.1, 0.005, 0.006, 0.007))) is None
    # But corners are ten times as far apart only in another unit.
    found = misfit(sizes(10, 0.5, 1.2, 0.7, grain=(0.1, 0.01, 0.011, 0.009)))
    assert found is not None
    assert found.members == (0,)
    assert found.text == "about 10 times as large as the others: another unit?"


@pytest.fixture(scope="module")
def vase() -> list[Mesh]:
    """Four fragments of a vase as files have them, each turned and elsewhere."""
    generator = torch.Generator().manual_seed(1)
    pieces = scatter(fracture(make_solid("vase", generator), 4, generator), generator).fragments
    return [in_file_coordinates(pieces, index) for index in range(len(pieces))]


def read_scaled(meshes: list[Mesh], factor: float, folder: Path, digits: int) -> Puzzle:
    """Files in another unit, with so many digits: 9 are what single precision keeps, 17 what double precision does."""
    folder.mkdir()
    for number, mesh in enumerate(meshes):
        corners = mesh.vertices.double().numpy() * factor
        corners = corners.astype(np.float32).astype(np.float64) if digits < 10 else corners
        lines = [f"v {x:.{digits}g} {y:.{digits}g} {z:.{digits}g}" for x, y, z in corners]
        lines += [f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist()]
        (folder / f"{number}.obj").write_text("\n".join(lines))
    return read_fragments(folder)


def answer(puzzle: Puzzle, models: FractureModels) -> Step:
    *_, last = MendSolver(models).steps(puzzle, torch.Generator().manual_seed(0))
    return last


def test_units_do_not_matter(vase: list[Mesh], models: FractureModels, tmp_path: Path) -> None:
    """Bit for bit where files are precise; where they are not, other points are sampled: then to 0.06 degrees."""
    plain = read_scaled(vase, 1.0, tmp_path / "plain", 17)
    wanted = answer(plain, models)
    assert wanted.placements.confidence.min() > 0.9
    own = file_matrices(plain.fragments, wanted.poses)
    for factor, digits in ((120.0, 17), (0.05, 9)):
        puzzle = read_scaled(vase, factor, tmp_path / f"{factor}-{digits}", digits)
        assert puzzle.fragments.unit == pytest.approx(factor * plain.fragments.unit, rel=1e-6)
        assert torch.equal(content_order(puzzle.pieces.content), content_order(plain.pieces.content))
        found = answer(puzzle, models)
        limit = 0.0 if digits > 10 else 1e-3
        assert (found.poses.rotation - wanted.poses.rotation).abs().max() <= limit
        assert (found.poses.translation - wanted.poses.translation).abs().max() <= limit
        sure, expected = found.placements.confidence, wanted.placements.confidence
        assert torch.allclose(sure, expected, rtol=0, atol=0.02 if limit else 0)
        matrices = file_matrices(puzzle.fragments, found.poses)
        assert torch.allclose(matrices[:, :3, 3] / factor, own[:, :3, 3], rtol=0, atol=1e-3)


@pytest.mark.parametrize("factor", [120.0, 0.05, 1e-12, 1e9])
def test_reading_is_the_same_in_any_unit(factor: float, vase: list[Mesh], tmp_path: Path) -> None:
    plain, scaled = (read_scaled(vase, size, tmp_path / f"{size}", 17).fragments for size in (1.0, factor))
    assert (plain.points - scaled.points).abs().max() < 1e-7
    for one, two in zip(plain.meshes, scaled.meshes, strict=True):
        assert torch.equal(one.faces, two.faces)
        assert (one.vertices - two.vertices).abs().max() < 1e-7
