"""Trees of pieces, with and without a frame."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffassemble.core import Board
from diffassemble.core.board import WAYS
from diffassemble.squares.forest import Forest, FramedForest, held_by_frames, turned
from diffassemble.squares.gallagher import lay_out, touching_sides

RIGHT, BOTTOM, LEFT, TOP = range(4)


def grown(count: int, matches: list[tuple[int, int]]) -> Forest:
    forest = Forest.of(count)
    assert forest.grow(np.array(matches).reshape(-1, 2), 0, len(matches)) == len(matches)
    return forest


def side(piece: int, way: int) -> int:
    return 4 * piece + way


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(5, 6), (1, 12), (7, 1)])
def test_true_matches_in_any_order_give_the_true_assembly(shape: tuple[int, int], seed: int) -> None:
    board, generator = Board(*shape), torch.Generator().manual_seed(seed)
    cells = torch.randperm(board.cells, generator=generator)
    turns = torch.randint(0, 4, (board.cells,), generator=generator)
    pairs = torch.stack(touching_sides(board, cells, turns), 1)
    matches = pairs[torch.randperm(len(pairs), generator=generator)].numpy()
    forest = Forest.of(board.cells)
    forest.grow(matches, 0, board.cells)
    assert forest.trees == 1
    assert len(forest.largest) == board.cells
    by = int(turns[0] - forest.turn[0]) % 4
    place = turned(forest.place, by)
    assert ((forest.turn + by) % 4 == turns.numpy()).all()
    true = np.stack([cells % board.cols, cells // board.cols], 1)
    assert (place - place[0] == true - true[0]).all()


@pytest.mark.parametrize("seed", range(8))
def test_random_matches_keep_trees_whole_and_free_of_collisions(seed: int) -> None:
    count, generator = 30, np.random.default_rng(seed)
    matches = generator.integers(0, 4 * count, (150, 2))
    forest = Forest.of(count)
    parts, tried = [], 0
    while tried < len(matches):
        tried = forest.grow(matches, tried, 3)
        parts.append(forest.trees)
    assert parts[:2] == [count - 3, count - 6]
    for label in np.unique(forest.label):
        members = np.flatnonzero(forest.label == label)
        assert forest.size[label] == len(members)
        assert len(np.unique(forest.place[members], axis=0)) == len(members)
        ring, member = [members[0]], forest.following[members[0]]
        while member != members[0]:
            ring.append(member)
            member = forest.following[member]
        assert sorted(ring) == members.tolist()
    whole = Forest.of(count)
    whole.grow(matches, 0, count)
    assert (whole.place == forest.place).all()
    assert (whole.turn == forest.turn).all()


def test_a_match_that_would_lay_pieces_on_each_other_is_passed_over() -> None:
    # A row of three; then a piece that would have to lie on the middle one.
    forest = grown(
        4, [(side(0, RIGHT), side(1, LEFT)), (side(1, RIGHT), side(2, LEFT)), (side(0, RIGHT), side(3, LEFT))]
    )
    assert forest.trees == 2
    assert forest.largest.tolist() == [0, 1, 2]
    forest.grow(np.array([[side(0, BOTTOM), side(3, BOTTOM)]]), 0, 1)
    assert forest.trees == 1
    assert (forest.place[3] - forest.place[0]).tolist() == turned(np.array([[0, 1]]), int(forest.turn[0]))[0].tolist()
    assert (forest.turn[3] - forest.turn[0]) % 4 == 2


def test_a_cell_left_behind_by_a_tree_that_moved_is_free() -> None:
    """Two pieces join, then move to a larger tree; their old cells belong to nobody."""
    pair = [(side(3, RIGHT), side(4, LEFT))]
    three = [(side(0, RIGHT), side(1, LEFT)), (side(1, RIGHT), side(2, LEFT))]
    forest = grown(6, [*pair, *three, (side(2, RIGHT), side(3, LEFT)), (side(4, RIGHT), side(5, LEFT))])
    assert forest.trees == 1
    assert sorted((forest.place - forest.place[0]).tolist()) == [[x, 0] for x in range(6)]


def lone(board: Board, count: int) -> FramedForest:
    return FramedForest.of(board, np.zeros(count, np.int64))


def row(count: int, start: int = 0) -> np.ndarray:
    """Matches that join pieces to a row, from left to right."""
    return np.array([[4 * piece + RIGHT, 4 * piece + 4 + LEFT] for piece in range(start, start + count - 1)])


def test_a_tree_does_not_outgrow_the_frame() -> None:
    framed = lone(Board(2, 4), 6)
    assert framed.join(row(6)).tolist() == [False, False, False, True, False]
    assert framed.forest.trees == 2


def test_a_frame_may_lie_across() -> None:
    framed = lone(Board(4, 2), 4)
    assert not framed.join(row(4)).any()
    assert framed.join(np.array([[BOTTOM, 4 + TOP]])).tolist() == [False]


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


def test_trees_stand_around_the_middle_of_their_cells() -> None:
    board = Board(2, 3)
    forest = Forest.of(5)
    assert torch.allclose(lay_out(forest, board).translation, board.centres()[:5])
    forest.grow(np.array([[0, 4 + 2], [4, 8 + 2]]), 0, 2)  # a row of three
    poses = lay_out(forest, board)
    assert torch.allclose(poses.translation, board.centres()[:5])
    forest.grow(np.array([[12 + 1, 16 + 3]]), 0, 1)  # one below the other
    poses = lay_out(forest, board)
    assert torch.allclose(poses.translation[3:].mean(0), board.centres()[3:5].mean(0))
    apart = poses.rotation[3].T @ (poses.translation[4] - poses.translation[3])
    assert torch.allclose(apart, torch.tensor([0, board.pitch]), atol=1e-6)
