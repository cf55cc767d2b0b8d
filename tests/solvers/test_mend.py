"""Broken objects are mended, whatever the order of their fragments; what does not fit is laid beside."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch
from manifold3d import Manifold

from diffassemble.cutting.fragments import scatter
from diffassemble.cutting.mesh import fracture
from diffassemble.cutting.solids import mesh_of
from diffassemble.model.fracture import FractureMatcher
from diffassemble.puzzle import Mesh, Puzzle, Solver, Step
from diffassemble.solvers.mend import MendSolver


@pytest.fixture(scope="module")
def solver() -> MendSolver:
    return MendSolver(FractureMatcher.from_pretrained("fracture-matching"), budget=30.0)


@pytest.fixture(scope="module")
def block() -> Mesh:
    return mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))


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
    assert steps[-1].confidence is not None
    assert steps[-1].confidence.min() > 0.5


def test_the_order_of_the_fragments_does_not_matter(solver: MendSolver, halves: Puzzle) -> None:
    order = torch.tensor([1, 0])
    here, there = solved(solver, halves)[-1].poses, solved(solver, halves.reordered(order))[-1].poses
    assert torch.equal(here[order].rotation, there.rotation)
    assert torch.equal(here[order].translation, there.translation)


def test_clouds_of_points_are_mended_too(solver: MendSolver, block: Mesh) -> None:
    generator = torch.Generator().manual_seed(5)
    puzzle = scatter(fracture(block, 2, generator), generator, points=9000)
    pieces = puzzle.fragments
    clouds = tuple(Mesh(points, torch.zeros(0, 3, dtype=torch.long)) for points in pieces.points)
    puzzle = replace(puzzle, pieces=replace(pieces, meshes=clouds))
    assert off_by(puzzle, solved(solver, puzzle)[-1], 0, 1) < 5


def test_odd_pieces_get_an_answer(solver: MendSolver, halves: Puzzle, block: Mesh) -> None:
    sheet = Mesh(torch.tensor([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), torch.tensor([[0, 1, 2], [0, 2, 3]]))
    twice = halves.fragments.meshes[0]
    for meshes in ([twice, twice], [sheet, block], [block]):
        puzzle = scatter(meshes, torch.Generator().manual_seed(1))
        last = solved(replace(solver, budget=1.5), puzzle)[-1]
        assert torch.isfinite(last.poses.translation).all()
        assert torch.allclose(torch.linalg.det(last.poses.rotation), torch.ones(len(meshes)), atol=1e-3)


def test_without_time_pieces_lie_beside_each_other(solver: MendSolver, halves: Puzzle) -> None:
    began = time.monotonic()
    last = solved(replace(solver, budget=0.0), halves)[-1]
    assert time.monotonic() - began < 10
    assert last.confidence is not None
    assert sorted(last.confidence.tolist()) == [0, 1]
    corners = [last.poses[[i]].apply(halves.fragments.points[[i]])[0] for i in (0, 1)]
    assert corners[0][:, 0].max() < corners[1][:, 0].min() or corners[1][:, 0].max() < corners[0][:, 0].min()
