"""Broken objects are mended, whatever the order of their fragments; what does not fit is laid beside and named."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch
from manifold3d import Manifold

from diffassemble.assembly.answer import assemble
from diffassemble.core import Locks, Mesh, Poses, Puzzle, Solver, Step
from diffassemble.core.poses import random_rotations
from diffassemble.core.surfaces import surface_area, triangle_normals
from diffassemble.core.thresholds import SURE
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.mend import MendSolver
from diffassemble.fragments.model import FractureModels
from diffassemble.io.fragments import fragment_pieces


@pytest.fixture(scope="module")
def solver(models: FractureModels) -> MendSolver:
    return MendSolver(models, budget=300.0)


@pytest.fixture(scope="module")
def halves(block: Mesh) -> Puzzle:
    generator = torch.Generator().manual_seed(5)
    return scatter(fracture(block, 2, generator), generator)


def solved(solver: MendSolver, puzzle: Puzzle) -> list[Step]:
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def off_by(puzzle: Puzzle, step: Step, first: int, second: int) -> float:
    """Degrees by which the second fragment is turned wrongly, seen from the first."""
    assert puzzle.truth is not None
    true, found = puzzle.truth.rotation, step.poses.rotation
    wanted, is_so = true[first].T @ true[second], found[first].T @ found[second]
    return float(torch.rad2deg(torch.arccos((((wanted * is_so).sum() - 1) / 2).clamp(-1, 1))))


def test_a_block_in_two_is_mended_to_a_degree(solver: MendSolver, halves: Puzzle) -> None:
    steps = solved(solver, halves)
    assert isinstance(solver, Solver)
    assert off_by(halves, steps[-1], 0, 1) < 1
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == 1
    assert steps[-1].placements.confidence.min() > 0.5


def test_clouds_of_points_are_mended_too(solver: MendSolver, block: Mesh) -> None:
    generator = torch.Generator().manual_seed(5)
    puzzle = scatter(fracture(block, 2, generator), generator, points=9000)
    pieces = puzzle.fragments
    clouds = tuple(Mesh(points, torch.zeros(0, 3, dtype=torch.long)) for points in pieces.points)
    puzzle = replace(puzzle, pieces=replace(pieces, meshes=clouds))
    answer = solved(solver, puzzle)[-1]
    assert off_by(puzzle, answer, 0, 1) < 5
    # Estimated normals may be wrong, so nothing is sure.
    assert 0.5 < answer.placements.confidence.max() < SURE


def test_odd_pieces_get_an_answer(solver: MendSolver, halves: Puzzle, block: Mesh) -> None:
    one, two = halves.fragments.meshes
    corners = torch.tensor([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    sheet = Mesh(corners, torch.tensor([[0, 1, 2], [0, 2, 3]]))
    ball = mesh_of(Manifold.sphere(0.4, 32), 1.0, torch.zeros(3))
    through = Mesh(torch.cat([one.vertices, block.vertices]), torch.cat([one.faces, block.faces + len(one.vertices)]))
    heaps = {
        "one piece twice": [one, one],
        "a flat sheet": [sheet, block],
        "one piece": [block],
        "no break at all": [ball, block],
        "open": [Mesh(one.vertices, one.faces[len(one.faces) // 8 :]), two],
        "doubled triangles": [Mesh(one.vertices, torch.cat([one.faces, one.faces])), two],
        "through itself": [through, two],
        "a few points": [Mesh(torch.randn(5, 3), torch.zeros(0, 3, dtype=torch.long)), block],
    }
    for kind, meshes in heaps.items():
        last = solved(replace(solver, budget=1.5), scatter(meshes, torch.Generator().manual_seed(1)))[-1]
        assert torch.isfinite(last.poses.translation).all(), kind
        assert torch.allclose(torch.linalg.det(last.poses.rotation), torch.ones(len(meshes)), atol=1e-3), kind
        assert ((last.placements.confidence >= 0) & (last.placements.confidence <= 1)).all(), kind


def test_pieces_inside_out_are_turned_round(solver: MendSolver, halves: Puzzle) -> None:
    pieces = halves.fragments
    wrong = (Mesh(pieces.meshes[0].vertices, pieces.meshes[0].faces.flip(1)), pieces.meshes[1])
    puzzle = replace(halves, pieces=replace(pieces, meshes=wrong))
    assert off_by(puzzle, solved(solver, puzzle)[-1], 0, 1) < 1


@pytest.fixture(scope="module")
def heap(block: Mesh) -> Puzzle:
    """The halves of a block and of a ball, mixed; blocks are 0 and 1."""
    generator = torch.Generator().manual_seed(5)
    ball = mesh_of(Manifold.sphere(0.45, 64), 1.0, torch.zeros(3))
    meshes = [*fracture(block, 2, generator), *fracture(ball, 2, generator)]
    puzzle = scatter(meshes, generator)
    sizes = [len(mesh.vertices) for mesh in puzzle.fragments.meshes]
    return puzzle.reordered(torch.tensor([sizes.index(len(mesh.vertices)) for mesh in meshes]))


def test_two_objects_are_told_apart(solver: MendSolver, heap: Puzzle) -> None:
    last = solved(replace(solver, several=True), heap)[-1]
    assert last.placements.objects is not None
    own = last.placements.objects.tolist()
    assert own[0] == own[1] != own[2] == own[3]
    assert sorted(set(own)) == [0, 1]
    assert off_by(heap, last, 0, 1) < 1
    assert last.placements.confidence.min() > 0.5
    corners = [last.poses[own].apply(heap.fragments.points[own]).flatten(0, 1) for own in ([0, 1], [2, 3])]
    assert corners[0][:, 0].max() < corners[1][:, 0].min() or corners[1][:, 0].max() < corners[0][:, 0].min()


@pytest.mark.slow
def test_a_foreign_piece_is_left_out_though_it_is_the_largest(solver: MendSolver, heap: Puzzle, block: Mesh) -> None:
    pieces = heap.reordered(torch.tensor([0, 1])).fragments
    others = fracture(Mesh(0.9 * block.vertices, block.faces), 2, torch.Generator().manual_seed(8))
    half = max(others, key=lambda mesh: surface_area(mesh.vertices, mesh.faces))
    meshes = [*(Mesh(mesh.vertices.double(), mesh.faces) for mesh in pieces.meshes), half]
    puzzle = Puzzle(fragment_pieces(meshes), None, ("a", "b", "foreign"))
    assert int(puzzle.fragments.areas.argmax()) == 2
    last = solved(solver, puzzle)[-1]
    assert last.placements.objects is not None
    assert last.placements.objects.tolist() == [0, 0, -1]
    assert last.placements.confidence[2] == 0
    assert last.placements.confidence[:2].min() > 0.9


@pytest.mark.parametrize("strip", [True, False])
def test_a_wall_seen_from_one_side_gets_an_honest_answer(solver: MendSolver, strip: bool) -> None:
    generator = torch.Generator().manual_seed(11)
    bowl = mesh_of((Manifold.sphere(0.5, 64) - Manifold.sphere(0.42, 64)).trim_by_plane((0.1, 0, 1), -0.1))
    sheets = []
    for mesh in fracture(bowl, 2, generator):
        middle = mesh.vertices[mesh.faces].mean(1)
        far, facing = middle.norm(dim=-1), (middle * triangle_normals(mesh.vertices, mesh.faces)).sum(1)
        outer = (far > 0.485) & (facing > 0)
        inner = (far < 0.425) & (facing < 0)
        sheets.append(Mesh(mesh.vertices, mesh.faces[~inner if strip else outer]))
    puzzle = scatter(sheets, generator)
    last = solved(solver, puzzle)[-1]
    assert torch.isfinite(last.poses.translation).all()
    assert last.placements.confidence.min() < 0.9 or off_by(puzzle, last, 0, 1) < 2
    assert not strip or last.placements.confidence.min() > 0.5


def test_a_foreign_piece_is_left_out(solver: MendSolver, heap: Puzzle) -> None:
    puzzle = heap.reordered(torch.tensor([0, 1, 3]))
    last = solved(solver, puzzle)[-1]
    assert last.placements.objects is not None
    assert off_by(puzzle, last, 0, 1) < 1
    # It is laid beside, or its place is called a guess.
    assert last.placements.confidence[2] < 0.15
    assert (last.placements.objects[2] == -1) == (last.placements.confidence[2] == 0)
    assert last.placements.notes is not None
    assert last.placements.notes[2]
    assert last.placements.guess is not None
    assert torch.isfinite(last.placements.guess.translation).all()


def test_locked_pieces_stay(solver: MendSolver, halves: Puzzle) -> None:
    poses = Poses(random_rotations(2, torch.Generator().manual_seed(3)), torch.tensor([[1.0, 2, 3], [0, 0, 0]]))
    puzzle = replace(halves, locks=Locks(torch.tensor([True, False]), poses))
    assembly = assemble(puzzle, solver)
    assert torch.allclose(assembly.poses.rotation[0], poses.rotation[0], atol=1e-6)
    assert torch.allclose(assembly.poses.translation[0], poses.translation[0], atol=1e-6)
    assert off_by(puzzle, Step(assembly.poses, 1.0), 0, 1) < 1
    assert assembly.placements.numbers.tolist() == [0, 0]


def test_without_time_pieces_lie_beside_each_other(solver: MendSolver, halves: Puzzle) -> None:
    began = time.process_time()
    last = solved(replace(solver, budget=0.0), halves)[-1]
    assert time.process_time() - began < 10
    assert sorted(last.placements.confidence.tolist()) == [0, 0]
    corners = [last.poses[[i]].apply(halves.fragments.points[[i]])[0] for i in (0, 1)]
    assert corners[0][:, 0].max() < corners[1][:, 0].min() or corners[1][:, 0].max() < corners[0][:, 0].min()
