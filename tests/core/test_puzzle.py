"""The nouns keep what they promise: puzzles, pieces, matches, answers, locks, seeds and errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, ImagePieces, InputError, Locks, Matches, Placements, Poses, Puzzle, Solver, Step
from diffassemble.core.seeds import mixed_seed


@pytest.fixture
def puzzle() -> Puzzle:
    board = Board(2, 3)
    pixels = torch.rand(5, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    truth = board.poses(torch.tensor([4, 0, 5, 2, 1]), torch.tensor([0, 1, 2, 3, 0]))
    return Puzzle(ImagePieces(pixels), board, tuple("abcde"), truth)


def test_pieces_names_and_truth_move_together(puzzle: Puzzle) -> None:
    order = torch.tensor([3, 1, 4, 0, 2])
    other = puzzle.reordered(order)
    assert len(other) == len(puzzle) == 5
    assert other.names == ("d", "b", "e", "a", "c")
    assert torch.equal(other.pieces.pixels, puzzle.pieces.pixels[order])
    assert torch.equal(other.truth.translation, puzzle.truth.translation[order])
    assert torch.equal(other.truth.rotation, puzzle.truth.rotation[order])


def test_the_order_can_be_undone(puzzle: Puzzle) -> None:
    order = torch.tensor([3, 1, 4, 0, 2])
    back = puzzle.reordered(order).reordered(order.argsort())
    assert back.names == puzzle.names
    assert torch.equal(back.pieces.pixels, puzzle.pieces.pixels)


def test_a_solver_sees_everything_but_the_truth(puzzle: Puzzle) -> None:
    shown = puzzle.without_truth()
    assert shown.truth is None
    assert shown == replace(puzzle, truth=None)
    assert shown.reordered(torch.arange(5)).truth is None


def test_count_and_size() -> None:
    pieces = ImagePieces(torch.zeros(7, 3, 12, 12))
    assert len(pieces) == 7
    assert pieces.size == 12


@pytest.fixture
def matches() -> Matches:
    generator = torch.Generator().manual_seed(0)
    relative = Poses(torch.randn(6, 3, 3, generator=generator), torch.randn(6, 3, generator=generator))
    first, second, slot = torch.arange(18).view(3, 6)
    return Matches(first, second, relative, slot, torch.rand(6, 4, generator=generator))


@pytest.mark.parametrize("index", [torch.tensor([4, 0, 0]), torch.arange(6) % 2 == 0, torch.zeros(0, dtype=torch.long)])
def test_indexing_chooses_whole_matings(matches: Matches, index: torch.Tensor) -> None:
    chosen = matches[index]
    assert len(chosen) == len(matches.first[index])
    for part in ("first", "second", "slot", "evidence"):
        assert torch.equal(getattr(chosen, part), getattr(matches, part)[index])
    assert torch.equal(chosen.pose.rotation, matches.pose.rotation[index])
    assert torch.equal(chosen.pose.translation, matches.pose.translation[index])


def test_weight_is_the_probability_that_the_first_channel_tells(matches: Matches) -> None:
    assert torch.equal(matches.probability, matches.evidence[:, 0])
    assert torch.equal(matches[torch.tensor([3, 1])].probability, matches.evidence[[3, 1], 0])


class Idle:
    name = "idle"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        yield Step(Poses.identity(len(puzzle), 2), done=1.0)


def test_a_solver_is_whoever_has_a_name_and_steps() -> None:
    assert isinstance(Idle(), Solver)
    assert not isinstance(object(), Solver)


def test_answers_stay_as_they_are() -> None:
    puzzle = Puzzle(ImagePieces(torch.zeros(2, 3, 4, 4)), Board(1, 2), ("a", "b"))
    (step,) = Idle().steps(puzzle, torch.Generator())
    assert step.result is None
    assembly = Answer(puzzle, Placements(step.poses, torch.ones(2)), (step.poses,), "idle", 0.0)
    with pytest.raises(FrozenInstanceError):
        assembly.solver = "another"  # type: ignore[misc]


def locks() -> Locks:
    board = Board(2, 2)
    return Locks(torch.tensor([True, False, False, True]), board.poses(torch.arange(4), torch.arange(4)))


def test_held_poses_are_put_in() -> None:
    poses = locks().applied(Poses.identity(4, 2))
    assert torch.equal(poses.translation[0], locks().poses.translation[0])
    assert torch.equal(poses.rotation[3], locks().poses.rotation[3])
    assert not poses.translation[1:3].any()


def test_they_follow_their_pieces() -> None:
    pixels = torch.rand(4, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    puzzle = Puzzle(ImagePieces(pixels), Board(2, 2), tuple("abcd"), locks=locks())
    order = torch.tensor([3, 1, 0, 2])
    turned = puzzle.reordered(order)
    assert turned.locks.held.tolist() == [True, False, True, False]
    assert torch.equal(turned.locks.poses.translation, locks().poses.translation[order])
    assert turned.without_truth().locks is turned.locks


def test_a_mixed_seed_is_told_by_its_numbers_alone() -> None:
    assert mixed_seed(3, 1, (0, 2), (1,)) == 1347466613
    others = {mixed_seed(3, 1, (0,), (2, 1)), mixed_seed(1, 3, (0, 2), (1,)), mixed_seed(3, 1, 0, 2, 1)}
    assert len(others) == 3
    assert all(0 <= seed < 2**31 for seed in others)


def test_input_errors_are_value_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert str(InputError("what, where, what to do")) == "what, where, what to do"
