"""Trees keep to the frame, and frames are counted right."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffassemble.core import Board
from diffassemble.core.board import WAYS
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.forest import FramedForest, held_by_frames

RIGHT, BOTTOM, LEFT, TOP = range(4)


def lone(board: Board, count: int) -> FramedForest:
    return FramedForest.of(board, np.zeros(count, np.int64))


def row(count: int, start: int = 0) -> np.ndarray:
    """Matches that join pieces to a row, from left to right."""
    return np.array([[4 * piece + RIGHT, 4 * piece + 4 + LEFT] for piece in range(start, start + count - 1)])


@pytest.mark.parametrize("shape", [(4, 5), (1, 9), (6, 1)])
def test_true_matches_give_the_whole(shape: tuple[int, int]) -> None:
    board, generator = Board(*shape), torch.Generator().manual_seed(0)
    cells = torch.randperm(board.cells, generator=generator)
    turns = torch.randint(0, 4, (board.cells,), generator=generator)
    pairs = torch.stack(touching_sides(board, cells, turns), 1).numpy()
    framed = FramedForest.of(board, np.asarray((turns + 1) % 4))
    assert not framed.join(pairs).any()
    assert framed.forest.trees == 1
    assert framed.held[framed.forest.label[0]] == board.cells
    assert len(np.unique((framed.forest.turn - turns.numpy()) % 4)) == 1


def test_a_tree_does_not_outgrow_the_frame() -> None:
    framed = lone(Board(2, 4), 6)
    assert framed.join(row(6)).tolist() == [False, False, False, True, False]
    assert framed.forest.trees == 2


def test_a_frame_may_lie_across() -> None:
    framed = lone(Board(4, 2), 4)
    assert not framed.join(row(4)).any()
    assert framed.join(np.array([[BOTTOM, 4 + TOP]])).tolist() == [False]


def test_what_lies_on_each_other_is_refused() -> None:
    framed = lone(Board(3, 3), 3)
    assert framed.join(np.array([[RIGHT, 4 + LEFT], [RIGHT, 8 + LEFT], [BOTTOM, 8 + TOP]])).tolist() == [
        False,
        True,
        False,
    ]


def test_a_tree_may_lose_less_than_half_of_the_smaller_one() -> None:
    """Three beside three on a board of five columns: one is lost, two are gained."""
    framed = lone(Board(1, 5), 6)
    framed.join(np.concatenate([row(3), row(3, start=3)]))
    assert framed.join(np.array([[8 + RIGHT, 12 + LEFT]])).tolist() == [False]
    assert framed.held[framed.forest.label[0]] == 5
    assert len(framed.forest.largest) == 6


@pytest.mark.parametrize("seed", range(5))
def test_random_matches_never_hold_less_than_they_say(seed: int) -> None:
    board, count = Board(4, 5), 20
    framed = lone(board, count)
    framed.join(np.random.default_rng(seed).integers(0, 4 * count, (300, 2)))
    for label in np.unique(framed.forest.label):
        place = framed.forest.place[framed.forest.label == label]
        assert len(np.unique(place, axis=0)) == len(place)
        most = [held_by_frames(place, np.ones(len(place)), shape).max() for shape in ((5, 4), (4, 5))]
        assert framed.held[label] == max(most)


@pytest.mark.parametrize("seed", range(5))
def test_frames_are_counted_as_by_hand(seed: int) -> None:
    generator = np.random.default_rng(seed)
    place = np.unique(generator.integers(-4, 5, (12, 2)), axis=0)
    weight = generator.random(len(place))
    shape = (3, 2)
    held = held_by_frames(place, weight, shape)
    start = place.min(0) - shape
    for x, y in np.ndindex(held.shape):
        within = place - start - np.array([x, y])
        inside = ((within >= 0) & (within < shape)).all(1)
        assert held[x, y] == pytest.approx(weight[inside].sum())
    assert held.sum() == pytest.approx(weight.sum() * 6)


def test_open_sides_look_at_free_cells() -> None:
    framed = lone(Board(3, 3), 4)
    framed.join(np.array([[RIGHT, 4 + LEFT], [BOTTOM, 8 + RIGHT]]))
    free = framed.open_sides().reshape(4, 4)
    label, place, turn = framed.forest.label, framed.forest.place, framed.forest.turn
    for piece, side in np.ndindex(4, 4):
        beside = place[piece] + WAYS[(side + turn[piece]) % 4]
        taken = any((place[other] == beside).all() and label[other] == label[piece] for other in range(4))
        assert free[piece, side] != taken
    assert free.sum() == 16 - 4
