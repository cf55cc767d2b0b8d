"""Linear programs, one after the other, join what is true and leave what is not."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from diffassemble.core import Puzzle
from diffassemble.core.board import WAYS
from diffassemble.squares.baselines.candidates import Candidates
from diffassemble.squares.baselines.yu import Caution, join_consistent
from diffassemble.squares.edges import Borders
from diffassemble.squares.forest import FramedForest


def candidates_of(puzzle: Puzzle) -> Candidates:
    return Candidates.of(Borders.of(puzzle.pieces.pixels).best(20))


def joined(puzzle: Puzzle, caution: Caution = Caution(), until: float = np.inf) -> tuple[FramedForest, list[int]]:  # noqa: B008
    """The forest in the end, and how many trees there were after each program."""
    candidates = candidates_of(puzzle)
    framed = FramedForest.of(puzzle.board, np.zeros(len(puzzle), np.int64))
    possible = np.ones(candidates.side.shape, bool)
    trees = [framed.forest.trees for _ in join_consistent(framed, candidates, possible, caution, until)]
    return framed, trees


def right_neighbours(puzzle: Puzzle, framed: FramedForest) -> tuple[int, int]:
    """How many pairs lie side by side within trees, and how many of these do so in truth."""
    assert puzzle.truth is not None
    cells, turns = (value.numpy() for value in puzzle.board.snap(puzzle.truth))
    true = np.stack([cells % puzzle.board.cols, cells // puzzle.board.cols], 1)
    forest = framed.forest
    touching, right = 0, 0
    for a in range(len(puzzle)):
        for b in range(len(puzzle)):
            if forest.label[a] == forest.label[b] and abs(forest.place[a] - forest.place[b]).sum() == 1:
                way = int((forest.place[b] - forest.place[a] == WAYS).all(1).argmax())
                by = int(turns[a] - forest.turn[a]) % 4
                touching += 1
                same_turn = (forest.turn[b] + by - turns[b]) % 4 == 0
                right += int(same_turn and (true[a] + WAYS[(way + by) % 4] == true[b]).all())
    return touching, right


@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat"])
def test_photos_come_together(cut: Callable[..., Puzzle], name: str) -> None:
    puzzle = cut(6, 7, name=name)
    framed, trees = joined(puzzle)
    assert trees == sorted(trees, reverse=True)
    touching, right = right_neighbours(puzzle, framed)
    assert right > 0.97 * touching
    assert touching > 1.6 * 71  # of the 71 pairs, each counted twice


def test_little_that_is_false_is_joined_when_pieces_are_missing(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(8, 8, missing=0.3, name="astronaut")
    touching, right = right_neighbours(puzzle, joined(puzzle)[0])
    assert touching > 60
    assert right > 0.85 * touching


def test_the_more_cautious_join_less(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(8, 8, missing=0.3)
    trees = [joined(puzzle, Caution(clear=clear, rounds=1))[0].forest.trees for clear in (0.2, 0.5, 0.9)]
    assert trees == sorted(trees, reverse=True)
    assert trees[0] > trees[-1]
    unsure = joined(puzzle, Caution(sure=0.0))[0].forest.trees
    assert unsure >= joined(puzzle, Caution(sure=1.0))[0].forest.trees


def test_what_is_not_possible_is_not_joined(cut: Callable[..., Puzzle]) -> None:
    """With their turns known, pieces keep them."""
    puzzle = cut(5, 5)
    assert puzzle.truth is not None
    _, turns = puzzle.board.snap(puzzle.truth)
    candidates = candidates_of(puzzle)
    framed = FramedForest.of(puzzle.board, turns.numpy())
    nothing = np.zeros(candidates.side.shape, bool)
    assert list(join_consistent(framed, candidates, nothing, Caution())) == []
    first, second = candidates.pairs[..., 0], candidates.pairs[..., 1]
    looks = (first + turns.numpy()[first // 4] - second - turns.numpy()[second // 4]) % 4
    assert list(join_consistent(framed, candidates, looks == 2, Caution()))
    assert (framed.forest.turn == turns.numpy()).all()
    assert framed.forest.trees < 5


def test_the_clock_is_kept(cut: Callable[..., Puzzle]) -> None:
    framed, trees = joined(cut(4, 4), until=time.monotonic() - 1)
    assert trees == []
    assert framed.forest.trees == 16


def test_nothing_happens_without_candidates(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(1, 2, missing=0.5)
    assert len(puzzle) == 1
    assert joined(puzzle)[1] == []
