"""What every solver of every kind of pieces promises, whatever it does inside.

Puzzles are small and solved once a run for all tests that look at the same answer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import skimage.data
import torch
from manifold3d import Manifold
from torch import Tensor

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import SolverOptions
from diffassemble.core import Board, ImagePieces, Locks, Mesh, Poses, Puzzle, Solver, Step
from diffassemble.core.contours import outline_pieces
from diffassemble.core.poses import plane_rotations, random_rotations
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.kinds import KINDS, kinds, make_solver
from diffassemble.kinds.squares import BORDER_SOLVERS
from diffassemble.squares.cut import cut_picture

CHANCE_SOLVERS = ("identity", "random")
NAMES = {kind: tuple(KINDS[kind]().solvers) for kind in kinds()}
ALL = [(kind, name) for kind, names in NAMES.items() for name in names]
# Chance answers by the place in the list: that is what it is.
INFORMED = [(kind, name) for kind, name in ALL if name not in CHANCE_SOLVERS]
# Seconds in which the answer must be there once the budget is spent, on a machine with other things to do.
SOON = 15.0

every_solver = pytest.mark.parametrize(("kind", "name"), ALL)


@cache
def solver(kind: str, name: str, budget: float = math.inf) -> Solver:
    """A solver as users get it, but with few samples and steps."""
    return make_solver(kind, name, SolverOptions(samples=2, steps=3, budget=budget))


def picture(rows: int, cols: int, missing: float = 0.0) -> Puzzle:
    """A photograph in pieces of 16 pixels."""
    whole = torch.from_numpy(skimage.data.coffee()).movedim(-1, 0).float() / 255
    return cut_picture(whole, Board(rows, cols), torch.Generator().manual_seed(0), size=16, missing=missing)


def block() -> Mesh:
    return mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))


def broken(parts: int, seed: int = 5) -> Puzzle:
    """A block in parts, scattered."""
    generator = torch.Generator().manual_seed(seed)
    return scatter(fracture(block(), parts, generator), generator)


def cake(parts: int, slices: int | None = None) -> Puzzle:
    """A disc of noise in equal slices, turned and scattered; of some of them only so many are left."""
    generator = torch.Generator().manual_seed(5)
    at = torch.arange(120) + 0.5 - 60
    x, y = at[None, :], at[:, None]
    textures = []
    for number in range(parts):
        angle = (torch.atan2(y, x) / (2 * math.pi) * parts - number) % parts
        inside = (angle < 1) & (torch.hypot(x, y) < 40 + number)
        textures.append(torch.randint(256, (4, 120, 120), generator=generator, dtype=torch.uint8))
        textures[-1][3] = inside.to(torch.uint8) * 255
    pieces = outline_pieces(textures)
    truth = Poses(torch.eye(2).repeat(parts, 1, 1), pieces.origins)
    return Puzzle(pieces, None, tuple(map(str, range(parts))), truth).reordered(torch.arange(slices or parts))


PUZZLES: dict[tuple[str, str], Callable[[], Puzzle]] = {
    ("squares", "whole"): lambda: picture(3, 3),
    ("squares", "missing"): lambda: picture(3, 4, missing=0.3),
    ("squares", "one"): lambda: picture(1, 1),
    ("squares", "large"): lambda: picture(14, 14),
    ("outlines", "whole"): lambda: cake(4),
    ("outlines", "missing"): lambda: cake(5, slices=3),
    ("outlines", "one"): lambda: cake(3, slices=1),
    ("outlines", "large"): lambda: cake(12),
    ("fragments", "whole"): lambda: broken(2),
    ("fragments", "missing"): lambda: broken(3).reordered(torch.tensor([0, 2])),
    ("fragments", "one"): lambda: broken(2).reordered(torch.tensor([1])),
    ("fragments", "large"): lambda: broken(4),
}


@cache
def puzzle_of(kind: str, case: str) -> Puzzle:
    return PUZZLES[kind, case]()


def solve(solver: Solver, puzzle: Puzzle) -> tuple[Answer, tuple[Step, ...]]:
    """The answer, and the steps on the way to it."""
    steps: list[Step] = []
    return assemble(puzzle, solver, seed=3, on_step=steps.append), tuple(steps)


@cache
def solved(kind: str, name: str, case: str) -> tuple[Answer, tuple[Step, ...]]:
    """The same for one of the puzzles above, solved once for all tests."""
    return solve(solver(kind, name), puzzle_of(kind, case))


def assert_same(one: Answer, two: Answer) -> None:
    assert (one.objects is None) == (two.objects is None)
    for name in ("rotation", "translation"):
        assert torch.equal(getattr(one.poses, name), getattr(two.poses, name))
    for name in ("confidence", "numbers"):
        assert torch.equal(getattr(one.placements, name), getattr(two.placements, name))


def assert_sound(assembly: Answer) -> None:
    """One pose a piece, on cells of its own if there are cells, and one confidence a piece."""
    puzzle, poses = assembly.puzzle, assembly.poses
    assert len(poses) == len(assembly.confidence) == len(puzzle)
    assert bool(poses.translation.isfinite().all())
    assert torch.allclose(torch.linalg.det(poses.rotation), torch.ones(len(puzzle)), atol=1e-3)
    assert bool(((assembly.placements.trust >= 0) & (assembly.placements.trust <= 1)).all())
    assert assembly.objects is None or len(assembly.objects) == len(puzzle)
    if puzzle.lattice is not None:
        cells, turns = puzzle.board.snap(poses)
        assert len(cells.unique()) == len(puzzle)
        exact = puzzle.board.poses(cells, turns)
        assert torch.equal(poses.translation, exact.translation)
        assert torch.equal(poses.rotation, exact.rotation)


def moved_locks(puzzle: Puzzle, count: int) -> Locks:
    """The first pieces locked where they do not belong: on other cells, or somewhere in space."""
    held = torch.arange(len(puzzle)) < count
    if puzzle.lattice is not None:
        cells, turns = puzzle.board.snap(puzzle.truth)
        return Locks(held, puzzle.board.poses(cells.roll(1), turns + 1))
    count, generator = len(puzzle), torch.Generator().manual_seed(3)
    if puzzle.kind == "outlines":
        turns = plane_rotations(torch.arange(count).float())
        return Locks(held, Poses(turns, 200 * torch.rand(count, 2, generator=generator)))
    return Locks(held, Poses(random_rotations(count, generator), torch.rand(count, 3, generator=generator)))


@pytest.mark.parametrize(("kind", "case"), [key for key in PUZZLES if key[1] != "large"])
def test_every_piece_gets_a_place_and_a_confidence(kind: str, case: str) -> None:
    for name in NAMES[kind]:
        assert_sound(solved(kind, name, case)[0])


def noise(count: int, size: int = 8) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


ODD_SQUARES = [
    (noise(1), Board(1, 1)),
    (noise(1), Board(5, 5)),
    (noise(2), Board(1, 2)),
    (noise(2), Board(6, 6)),
    (noise(9), Board(1, 9)),
    (noise(9), Board(9, 1)),
    (noise(12, size=4), Board(3, 4)),
    (torch.full((16, 3, 8, 8), 0.4), Board(4, 4)),
    (torch.zeros(10, 3, 4, 4), Board(4, 4)),
    (noise(1).repeat(16, 1, 1, 1), Board(4, 4)),
    (torch.cat([noise(5), torch.ones(5, 3, 8, 8)]), Board(2, 5)),
]


@pytest.mark.parametrize(
    ("name", "budget"),
    [*((name, 1e-3) for name in NAMES["squares"]), *((name, math.inf) for name in sorted(BORDER_SOLVERS))],
)
def test_odd_squares_get_an_answer(name: str, budget: float) -> None:
    """Few pieces, strips, pieces that look alike or show nothing."""
    for pixels, board in ODD_SQUARES:
        puzzle = Puzzle(ImagePieces(pixels), board, tuple(map(str, range(len(pixels)))))
        assembly, steps = solve(solver("squares", name, budget), puzzle)
        assert_sound(assembly)
        assert all(bool(step.poses.translation.isfinite().all()) for step in steps)


@every_solver
def test_steps_lead_to_the_answer(kind: str, name: str) -> None:
    assembly, steps = solved(kind, name, "whole")
    assert isinstance(solver(kind, name), Solver)
    assert assembly.solver == name
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert (done[0] >= 0, done[-1]) == (True, 1)
    assert torch.equal(steps[-1].poses.translation, assembly.poses.translation)
    assert len(assembly.history) == len(steps)
    assert all(len(step.poses) == len(assembly.puzzle) for step in steps)


@pytest.mark.parametrize(("kind", "name"), INFORMED)
def test_the_order_of_the_pieces_changes_nothing(kind: str, name: str) -> None:
    puzzle, (one, _) = puzzle_of(kind, "missing"), solved(kind, name, "missing")
    order = torch.arange(len(puzzle)).flip(0)
    two, _ = solve(solver(kind, name), puzzle.reordered(order))
    assert_same(one, replace(two, placements=two.placements[order]))


@every_solver
def test_the_same_seed_gives_the_same_answer_whatever_the_truth_says(kind: str, name: str) -> None:
    puzzle, (one, _) = puzzle_of(kind, "whole"), solved(kind, name, "whole")
    assert puzzle.truth is not None
    wrong = replace(puzzle, truth=puzzle.truth[torch.arange(len(puzzle)).roll(1)])
    generator = torch.Generator().manual_seed(3)
    *_, last = solver(kind, name).steps(wrong, generator)
    assert torch.equal(one.poses.rotation, last.poses.rotation)
    assert torch.equal(one.poses.translation, last.poses.translation)


@pytest.mark.parametrize("every", [False, True])
@every_solver
def test_locked_pieces_stay_and_no_other_shares_their_cells(kind: str, name: str, every: bool) -> None:
    puzzle = puzzle_of(kind, "whole")
    locks = moved_locks(puzzle, len(puzzle) if every else max(1, len(puzzle) // 3))
    assembly, steps = solve(solver(kind, name), replace(puzzle, locks=locks))
    assert_sound(assembly)
    for poses in (step.poses[locks.held] for step in steps):
        assert torch.equal(poses.rotation, locks.poses.rotation[locks.held])
        assert torch.equal(poses.translation, locks.poses.translation[locks.held])


@every_solver
def test_a_budget_ends_the_search_soon(kind: str, name: str) -> None:
    solved(kind, name, "one")  # by now, what it needs is loaded and compiled
    hasty, puzzle = solver(kind, name, budget=1e-3), puzzle_of(kind, "large")
    began = time.process_time()  # which other programs on this machine don't change
    assembly, _ = solve(hasty, puzzle)
    assert time.process_time() - began < SOON
    assert_sound(assembly)


@pytest.mark.parametrize("name", ["mend", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_without_time_fragments_are_not_joined(name: str) -> None:
    hasty, _ = solve(solver("fragments", name, budget=1e-3), puzzle_of("fragments", "whole"))
    assert sorted(hasty.placements.numbers.tolist()) == [-1, 0]
