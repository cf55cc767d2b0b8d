"""A fragment that was given twice is placed once; equal parts of a regular object are both kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from manifold3d import CrossSection, Manifold

from diffassemble.core import Mesh, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.core.puzzle import Locks
from diffassemble.fragments.breaking import fracture, mesh_of
from diffassemble.fragments.mend import MendSolver
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.screening import are_copies, congruent, has_plane, is_regular, set_aside
from diffassemble.fragments.shapes import make_solid
from diffassemble.io.fragments import fragment_pieces


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


def test_breaks_are_irregular_and_sawn_parts_are_not(halves: list[Mesh], block: Mesh) -> None:
    assert not is_regular(halves[0])
    assert not is_regular(halves[1])
    assert is_regular(block)
    quarter = Manifold.sphere(0.5, 64) - Manifold.sphere(0.4, 64)
    quarter = quarter.trim_by_plane((1, 0, 0), 0).trim_by_plane((0, 1, 0), 0)
    assert is_regular(mesh_of(quarter))
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(3000, 3)) * [1, 2, 3]).float()
    nothing = torch.zeros(0, 3, dtype=torch.long)
    assert not is_regular(Mesh(points * (1 + (points[:, :1] > 0)), nothing))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_one_of_two_copies_is_left_out(elsewhere: bool, models: FractureModels) -> None:
    generator = torch.Generator().manual_seed(1)
    one, two = fracture(make_solid("statue", generator), 2, generator)
    puzzle = puzzle_of(moved(one) if elsewhere else one, two, one)
    *_, last = MendSolver(models).steps(puzzle, torch.Generator().manual_seed(0))
    assert last.placements.objects is not None
    assert last.placements.notes is not None
    assert last.placements.objects.tolist() == [0, 0, -1]
    assert last.placements.notes == ("", "", "the same fragment as a.ply")
    assert last.placements.confidence[:2].min() > 0.9
    assert last.placements.confidence[2] == 0


def test_copies_in_clouds_and_what_is_locked(halves: list[Mesh], models: FractureModels) -> None:
    nothing = torch.zeros(0, 3, dtype=torch.long)
    points = fragment_pieces(halves, points=4000).points
    clouds = puzzle_of(*(Mesh(points[index], nothing) for index in (0, 1, 0)))
    assert set_aside(clouds) == {2: "the same fragment as a.ply"}
    poses = MendSolver(models).steps(clouds, torch.Generator().manual_seed(0))
    held = torch.tensor([False, False, True])
    assert set_aside(replace(clouds, locks=Locks(held, next(poses).poses))) == {0: "the same fragment as c.ply"}


def test_equal_parts_of_regular_objects_are_no_copies() -> None:
    quarter = mesh_of(Manifold.cube((0.5, 0.4, 0.3)))
    assert set_aside(puzzle_of(quarter, quarter, moved(quarter))) == {}
    bowl = (Manifold.sphere(0.5, 64) - Manifold.sphere(0.4, 64)).trim_by_plane((0, 0, 1), 0.1)
    sawn = mesh_of(bowl.trim_by_plane((1, 0, 0), 0).trim_by_plane((0, 1, 0), 0))
    assert set_aside(puzzle_of(sawn, sawn, moved(sawn))) == {}
    one, two = twisted()
    assert congruent(one, two)
    assert not is_regular(one)
    assert has_plane(one)
    assert not are_copies(one, two)


def test_a_moved_copy_that_sawing_could_explain_is_told_where_it_is_in_doubt(models: FractureModels) -> None:
    one, two = twisted()
    puzzle = puzzle_of(one, two, moved(one))
    assert set_aside(puzzle) == {}
    *_, last = MendSolver(models).steps(puzzle, torch.Generator().manual_seed(0))
    assert last.placements.notes is not None
    for sure, note in zip(last.placements.confidence.tolist(), last.placements.notes, strict=True):
        assert ("ply: a copy, or equal parts sawn apart?" in note) == (sure < 0.9)
    assert last.placements.confidence.min() < 0.9


@pytest.mark.parametrize("name", ["bowl", "statue"])
def test_copies_of_any_fragment_are_told_from_different_ones(name: str) -> None:
    generator = torch.Generator().manual_seed(4)
    meshes = fracture(make_solid(name, generator), 6, generator)
    assert set_aside(puzzle_of(*meshes)) == {}
    assert all(are_copies(mesh, mesh) for mesh in meshes)
    assert all(are_copies(mesh, moved(mesh)) or has_plane(mesh) for mesh in meshes)
