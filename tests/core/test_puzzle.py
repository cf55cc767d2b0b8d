"""The nouns keep what they promise: puzzles, pieces, matches, answers, locks, seeds and errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from operator import attrgetter

import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, ImagePieces, InputError, Locks, Matches, Placements, Poses, Puzzle, Solver, Step
from diffassemble.core.seeds import mixed_seed

ORDER = torch.tensor([3, 1, 4, 0, 2])


@pytest.fixture
def puzzle() -> Puzzle:
    board = Board(2, 3)
    pixels = torch.rand(5, 3, 4, 6, generator=torch.Generator().manual_seed(0))
    truth = board.poses(torch.tensor([4, 0, 5, 2, 1]), torch.tensor([0, 1, 2, 3, 0]))
    locks = Locks(torch.arange(5) % 3 == 0, board.poses(torch.arange(5), torch.arange(5) % 4))
    return Puzzle(ImagePieces(pixels), board, tuple("abcde"), truth, locks)


def test_pieces_names_truth_and_locks_move_together(puzzle: Puzzle) -> None:
    other = puzzle.reordered(ORDER)
    assert len(other) == len(puzzle) == 5
    assert puzzle.pictures.size == 6
    assert other.names == ("d", "b", "e", "a", "c")
    assert torch.equal(other.pieces.pixels, puzzle.pieces.pixels[ORDER])
    assert other.locks.held.tolist() == [True, False, False, True, False]
    for found, given in ((other.truth, puzzle.truth), (other.locks.poses, puzzle.locks.poses)):
        assert torch.equal(found.translation, given.translation[ORDER])
        assert torch.equal(found.rotation, given.rotation[ORDER])
    back = other.reordered(ORDER.argsort())
    assert back.names == puzzle.names
    assert torch.equal(back.pieces.pixels, puzzle.pieces.pixels)
    shown = puzzle.without_truth()
    assert shown == replace(puzzle, truth=None)
    assert shown.locks is puzzle.locks
    assert shown.reordered(ORDER).truth is None


def test_held_poses_are_put_in(puzzle: Puzzle) -> None:
    poses = puzzle.locks.applied(Poses.identity(5, 2))
    assert torch.equal(poses.translation[0], puzzle.locks.poses.translation[0])
    assert torch.equal(poses.rotation[3], puzzle.locks.poses.rotation[3])
    assert not poses.translation[1:3].any()


@pytest.mark.parametrize("index", [torch.tensor([4, 0, 0]), torch.arange(6) % 2 == 0, torch.zeros(0, dtype=torch.long)])
def test_indexing_chooses_whole_matches(index: torch.Tensor) -> None:
    generator = torch.Generator().manual_seed(0)
    relative = Poses(torch.randn(6, 3, 3, generator=generator), torch.randn(6, 3, generator=generator))
    first, second, slot = torch.arange(18).view(3, 6)
    matches = Matches(first, second, relative, slot, torch.rand(6, 4, generator=generator))
    chosen = matches[index]
    assert len(chosen) == len(matches.first[index])
    for part in ("first", "second", "slot", "evidence", "pose.rotation", "pose.translation", "probability"):
        assert torch.equal(attrgetter(part)(chosen), attrgetter(part)(matches)[index])


class Idle:
    name = "idle"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        yield Step(Poses.identity(len(puzzle), 2), done=1.0)


def test_a_solver_has_a_name_and_steps_and_answers_stay_as_they_are(puzzle: Puzzle) -> None:
    assert isinstance(Idle(), Solver)
    assert not isinstance(object(), Solver)
    (step,) = Idle().steps(puzzle, torch.Generator())
    assert step.result is None
    assembly = Answer(puzzle, Placements(step.poses, torch.ones(5)), (step.poses,), "idle", 0.0)
    with pytest.raises(FrozenInstanceError):
        assembly.solver = "another"  # type: ignore[misc]


def test_a_mixed_seed_depends_on_its_numbers_alone() -> None:
    assert mixed_seed(3, 1, (0, 2), (1,)) == 1347466613
    others = {mixed_seed(3, 1, (0,), (2, 1)), mixed_seed(1, 3, (0, 2), (1,)), mixed_seed(3, 1, 0, 2, 1)}
    assert len(others) == 3
    assert all(0 <= seed < 2**31 for seed in others)


def test_input_errors_are_value_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert str(InputError("what, where, what to do")) == "what, where, what to do"
