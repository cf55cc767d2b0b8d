"""Jigsaw pieces grown together: whole, with pieces missing, foreign, locked, of two puzzles."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from skimage import data

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import Locks, OutlinePieces, Poses, Puzzle
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.grow import GrowSolver


def right(assembly: Answer) -> torch.Tensor:
    assert assembly.puzzle.truth is not None
    return right_outlines(assembly.puzzle.outlines, assembly.poses, assembly.puzzle.truth)


def together(one: Puzzle, two: Puzzle) -> Puzzle:
    """The pieces of two puzzles in one box; the truth is that of the first, with those of the second at the origin."""
    assert one.truth is not None
    assert two.truth is not None
    mine, other = one.outlines, two.outlines
    pieces = OutlinePieces(
        mine.textures + other.textures, mine.contours + other.contours, torch.cat([mine.origins, other.origins])
    )
    truth = Poses(
        torch.cat([one.truth.rotation, two.truth.rotation]), torch.cat([one.truth.translation, two.truth.translation])
    )
    return Puzzle(pieces, None, one.names + tuple(f"other {name}" for name in two.names), truth)


def other_puzzle(pieces: int = 20) -> Puzzle:
    picture = torch.from_numpy(data.astronaut()).movedim(-1, 0).float() / 255
    return cut_shapes(picture, "tabs", pieces, torch.Generator().manual_seed(9), size=60)


@pytest.fixture(scope="module")
def solved(jigsaw: Puzzle) -> Answer:
    return assemble(jigsaw, GrowSolver())


def test_a_jigsaw_is_put_together_surely(solved: Answer) -> None:
    assert bool(right(solved).all())
    assert solved.placements.numbers.tolist() == [0] * 20
    assert bool((solved.confidence > 0.9).all())


def test_pieces_lie_where_their_outlines_meet(solved: Answer) -> None:
    """Seen from the whole, no piece is further from its true place than two pixels."""
    truth = solved.puzzle.truth
    assert truth is not None
    moved = truth @ solved.poses.inverse()
    turn = moved.rotation.mean(0)
    apart = truth.translation - solved.poses.translation @ turn.T
    assert (apart - apart.mean(0)).norm(dim=1).max() < 2


def test_shapes_alone_are_enough(jigsaw: Puzzle) -> None:
    assembly = assemble(replace(jigsaw, pieces=replace(jigsaw.outlines, coloured=False)), GrowSolver())
    assert bool(right(assembly).all())


def test_the_steps_show_the_growth(solved: Answer) -> None:
    last = solved.history[-1]
    there = [int((poses.translation == last.translation).all(1).sum()) for poses in solved.history]
    assert there == sorted(there)
    assert there[0] < 5
    assert there[-1] == 20


def test_pieces_may_be_missing(jigsaw: Puzzle) -> None:
    kept = torch.tensor([piece for piece in range(20) if piece not in (3, 11, 17)])
    assembly = assemble(jigsaw.reordered(kept), GrowSolver())
    sure = assembly.confidence > 0.9
    assert bool(right(assembly)[sure].all())
    assert int(right(assembly).sum()) >= 16


def test_foreign_pieces_are_left_out(jigsaw: Puzzle) -> None:
    foreign = other_puzzle().reordered(torch.tensor([0, 7, 13]))
    assembly = assemble(together(jigsaw, foreign), GrowSolver())
    assert assembly.objects is not None
    assert assembly.objects.tolist() == [0] * 20 + [-1] * 3
    assert bool((assembly.confidence[20:] == 0).all())
    assert assembly.notes is not None
    assert all(note.startswith("left out") for note in assembly.notes[20:])


def test_two_puzzles_in_one_box_are_told_apart(jigsaw: Puzzle) -> None:
    both = together(jigsaw, other_puzzle())
    assembly = assemble(both, GrowSolver(several=True))
    assert assembly.objects is not None
    mine, other = set(assembly.objects[:20].tolist()), set(assembly.objects[20:].tolist())
    assert len(mine) == len(other) == 1
    assert mine | other == {0, 1}
    assert bool((assembly.confidence > 0.9).all())
    # Not told that there are two, the second one's place beside the first is a guess.
    alone = assemble(both, GrowSolver())
    assert alone.objects is not None
    assert bool((alone.confidence[alone.objects == 1] < 0.5).all())


def test_what_is_locked_stays_and_the_rest_grows_around_it(jigsaw: Puzzle) -> None:
    truth = jigsaw.truth
    assert truth is not None
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    goal = Poses(turn @ truth.rotation, truth.translation @ turn.T + torch.tensor([500.0, -300.0]))
    held = torch.arange(20) < 4
    assembly = assemble(replace(jigsaw, locks=Locks(held, goal)), GrowSolver())
    assert torch.equal(assembly.poses.translation[held], goal.translation[held])
    assert (assembly.poses.translation - goal.translation).norm(dim=1).max() < 3
    assert torch.equal(assembly.placements.by_person, held)


def test_the_order_of_the_pieces_changes_nothing(jigsaw: Puzzle, solved: Answer) -> None:
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    again = assemble(jigsaw.reordered(order), GrowSolver())
    assert torch.equal(again.poses.translation, solved.poses.translation[order])
    assert torch.equal(again.confidence, solved.confidence[order])


def test_one_piece_is_an_answer(jigsaw: Puzzle) -> None:
    assembly = assemble(jigsaw.reordered(torch.tensor([2])), GrowSolver())
    assert len(assembly.poses) == 1
    assert assembly.poses.translation.isfinite().all()
