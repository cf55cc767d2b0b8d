"""Trees lie as their matches say, never on themselves, and are spanned by the first matches that can be."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffassemble.core import Board
from diffassemble.squares.baselines.filling import touching_sides
from diffassemble.squares.forest import Forest, turned

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


def test_growing_stops_after_as_many_joins_as_wanted() -> None:
    matches = np.array([[side(piece, RIGHT), side(piece + 1, LEFT)] for piece in range(4)])
    forest = Forest.of(5)
    assert forest.grow(matches, 0, 2) == 2
    assert forest.trees == 3
    assert forest.grow(matches, 2, 9) == 4
    assert forest.trees == 1


def test_nothing_grows_without_matches() -> None:
    forest = Forest.of(1)
    assert forest.grow(np.zeros((0, 2), np.int64), 0, 5) == 0
    assert forest.trees == 1
    assert forest.largest.tolist() == [0]


def test_places_turn_clockwise() -> None:
    assert turned(np.array([[1, 0], [2, 5]]), 1).tolist() == [[0, 1], [-5, 2]]
    assert turned(np.array([[2, 5]]), 4).tolist() == [[2, 5]]
