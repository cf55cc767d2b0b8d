"""Border solvers: spanning trees and frames (Gallagher), linear programs (Yu), connection graphs (Huroyan)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, Poses, Puzzle, Solver, Step
from diffassemble.evaluation.metrics import direct_comparison_free, neighbour_accuracy
from diffassemble.squares.edges import Borders
from diffassemble.squares.gallagher import (
    QUARTERS,
    Candidates,
    Forest,
    GallagherSolver,
    RatedPlacement,
    fill_board,
    held_by_frames,
    on_cycles,
)
from diffassemble.squares.global_solvers import (
    HuroyanSolver,
    YuSolver,
    connections,
    first_connections,
    inconsistency,
    next_connections,
    recovered_turns,
)
from diffassemble.squares.placement import touching_sides

Cut = Callable[..., Puzzle]
RIGHT, BOTTOM, LEFT, TOP = range(4)


# Trees of pieces.


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", [(5, 6), (1, 12), (7, 1)])
def test_true_matches_in_any_order_give_the_true_assembly(shape: tuple[int, int], seed: int) -> None:
    board, generator = Board(*shape), torch.Generator().manual_seed(seed)
    cells = torch.randperm(board.cells, generator=generator)
    turns = torch.randint(0, 4, (board.cells,), generator=generator)
    pairs = torch.stack(touching_sides(board, cells, turns), 1)
    matches = pairs[torch.randperm(len(pairs), generator=generator)].numpy()
    forest = Forest.of(board.cells)
    forest.join(matches)
    assert forest.trees == 1
    assert len(forest.largest) == board.cells
    by = int(turns[0] - forest.turn[0]) % 4
    place = forest.place @ QUARTERS[by].T
    assert ((forest.turn + by) % 4 == turns.numpy()).all()
    true = np.stack([cells % board.cols, cells // board.cols], 1)
    assert (place - place[0] == true - true[0]).all()


@pytest.mark.parametrize("seed", range(3))
def test_random_matches_keep_trees_whole_and_free_of_collisions(seed: int) -> None:
    count, generator = 30, np.random.default_rng(seed)
    matches = generator.integers(0, 4 * count, (150, 2))
    forest = Forest.of(count)
    parts, tried = [], 0
    while tried < len(matches):
        tried += forest.join(matches[tried:], 3)[0]
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
    whole.join(matches)
    assert (whole.place == forest.place).all()
    assert (whole.turn == forest.turn).all()


def lone(board: Board, count: int) -> Forest:
    return Forest.of(count, 0, board)


def row(count: int, start: int = 0) -> np.ndarray:
    """Matches that join pieces to a row, from left to right."""
    return np.array([[4 * piece + RIGHT, 4 * piece + 4 + LEFT] for piece in range(start, start + count - 1)])


def test_trees_keep_to_the_frame_or_lose_less_than_half_of_the_smaller_one() -> None:
    framed = lone(Board(2, 4), 6)
    assert framed.join(row(6))[1].tolist() == [False, False, False, True, False]
    assert framed.trees == 2
    framed = lone(Board(4, 2), 4)  # across
    assert not framed.join(row(4))[1].any()
    # Three beside three on a board of five columns: one is lost, two are gained.
    framed = lone(Board(1, 5), 6)
    framed.join(np.concatenate([row(3), row(3, start=3)]))
    assert framed.join(np.array([[8 + RIGHT, 12 + LEFT]]))[1].tolist() == [False]
    assert framed.held[framed.label[0]] == 5
    assert len(framed.largest) == 6


@pytest.mark.parametrize("seed", range(2))
def test_random_matches_never_hold_less_than_they_say(seed: int) -> None:
    board, count = Board(4, 5), 20
    framed = lone(board, count)
    framed.join(np.random.default_rng(seed).integers(0, 4 * count, (300, 2)))
    for label in np.unique(framed.label):
        place = framed.place[framed.label == label]
        assert len(np.unique(place, axis=0)) == len(place)
        most = [held_by_frames(place, np.ones(len(place)), shape).max() for shape in ((5, 4), (4, 5))]
        assert framed.held[label] == max(most)


@pytest.mark.parametrize("seed", range(2))
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


# Candidates, filling and trimming.


def pixels(count: int) -> torch.Tensor:
    return torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(count))


def candidates(count: int, keep: int = 100) -> Candidates:
    return Candidates.of(Borders.of(pixels(count)).best(keep))


@pytest.mark.parametrize("seed", range(3))
def test_ratios_by_their_definition(border_scores: Callable[[Tensor], Tensor], seed: int) -> None:
    """Score of the pair over the best score that either side has with any other, among possible pairs."""
    given, scores = candidates(5), border_scores(pixels(5)).numpy().astype(float)
    forbidden = np.random.default_rng(seed).random(scores.shape) < 0.5
    forbidden |= forbidden.T
    rows = np.arange(20)[:, None]
    found = given.best(~forbidden[rows, given.side])
    listed = np.where(forbidden, np.inf, scores)
    seen = set()
    for (a, b), ratio in zip(found.sides.tolist(), found.ratio, strict=True):
        assert listed[a].min() == pytest.approx(listed[a, b], rel=1e-4)
        others = [np.delete(listed[a], b).min(), np.delete(listed[b], a).min()]
        if np.isfinite(others).all():
            assert ratio == pytest.approx((listed[a, b] + 0.02) / (min(others) + 0.02), rel=1e-3)
        seen |= {(a, b), (b, a)}
    best = {(a, int(listed[a].argmin())) for a in range(20) if np.isfinite(listed[a]).any()}
    assert best <= seen


def test_edges_on_cycles_are_those_without_which_nothing_falls_apart() -> None:
    # A triangle, a tail of it, and two pieces joined twice.
    first, second = np.array([0, 1, 2, 2, 5, 6]), np.array([1, 2, 0, 3, 6, 5])
    assert on_cycles(first, second).tolist() == [True, True, True, False, True, True]
    assert on_cycles(first[:0], second[:0]).shape == (0,)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 4),
    cols=st.integers(1, 4),
    seed=st.integers(0, 999),
    kind=st.sampled_from(["noise", "flat", "twins"]),
)
def test_every_piece_gets_a_cell_and_those_that_had_one_keep_it(rows: int, cols: int, seed: int, kind: str) -> None:
    board, generator = Board(rows, cols), torch.Generator().manual_seed(seed)
    count = int(torch.randint(1, board.cells + 1, (1,), generator=generator))
    pixels = torch.rand(count, 3, 4, 4, generator=generator)
    pixels = {"noise": pixels, "flat": torch.zeros_like(pixels), "twins": pixels[:1].expand_as(pixels)}[kind]
    cells = torch.randperm(board.cells, generator=generator)[:count]
    turns = torch.randint(0, 4, (count,), generator=generator)
    had = torch.rand(count, generator=generator) < 0.5
    given_cells = cells.masked_fill(~had, -1)
    found, found_turns = fill_board(board, given_cells, turns, Borders.of(pixels))
    assert torch.equal(found[had], cells[had])
    assert torch.equal(found_turns[had], turns[had])
    assert len(found.unique()) == count
    assert 0 <= int(found.min()) <= int(found.max()) < board.cells
    assert 0 <= int(found_turns.min()) <= int(found_turns.max()) < 4
    assert torch.equal(given_cells, cells.masked_fill(~had, -1))


def joined(puzzle: Puzzle) -> tuple[Forest, Candidates, Borders]:
    borders = Borders.of(puzzle.pieces.pixels)
    candidates = Candidates.of(borders.best(8))
    framed = Forest.of(len(puzzle), 0, puzzle.board)
    framed.join(candidates.probable(0.5))
    return framed, candidates, borders


# The solvers.

SOLVERS = {"gallagher": GallagherSolver, "yu": YuSolver, "huroyan": HuroyanSolver}
each = pytest.mark.parametrize("solver", SOLVERS)


def drained(puzzle: Puzzle, solver: Solver) -> list[Step]:
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def scores(puzzle: Puzzle, poses: Poses) -> tuple[float, float]:
    placement = (puzzle.board, *puzzle.board.snap(poses), *puzzle.board.snap(puzzle.truth))
    return direct_comparison_free(*placement), neighbour_accuracy(*placement)


@each
@pytest.mark.parametrize(("name", "shape"), [("astronaut", (5, 5)), ("coffee", (6, 4))])
def test_photos_are_put_together(cut: Cut, solver: str, name: str, shape: tuple[int, int]) -> None:
    puzzle = cut(*shape, name=name)
    right, neighbours = scores(puzzle, drained(puzzle, SOLVERS[solver]())[-1].poses)
    assert right > (88 if solver == "huroyan" else 95)
    assert neighbours > (93 if solver == "huroyan" else 95)


@each
def test_what_is_there_hangs_together_when_pieces_are_missing(cut: Cut, solver: str) -> None:
    puzzle = cut(5, 6, missing=0.15, name="astronaut")
    assert scores(puzzle, drained(puzzle, SOLVERS[solver]())[-1].poses)[1] > 85


@each
def test_the_whole_is_turned_as_the_uprighter_says(cut: Cut, solver: str) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle, SOLVERS[solver]())[-1].poses
    steps = drained(puzzle, SOLVERS[solver](upright=lambda given, placed, wholes: (1, 0.5)))
    expected = puzzle.board.poses(*puzzle.board.turned(*puzzle.board.snap(plain), 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)
    assert steps[-1].placements.upright == 0.5


def forest_of(places: list[tuple[int, int]], loose: int = 0) -> Forest:
    """One tree at these places (x, y), and some pieces for themselves."""
    forest = Forest.of(len(places) + loose)
    forest.label[: len(places)] = 0
    forest.size[0] = len(places)
    forest.frame[: len(places), :2, 3] = places
    return forest


SQUARE = [(x, y) for x in range(3) for y in range(2)]


@pytest.mark.parametrize(
    ("places", "board", "wanted", "turn"),
    [
        ([*SQUARE, (-2, 0), (3, 1), (4, 1)], Board(2, 4), [0, 4, 1, 5, 2, 6, -1, 7, -1], 0),
        ([(x, y) for x in range(2) for y in range(5)], Board(2, 5), [4, 3, 2, 1, 0, 9, 8, 7, 6, 5], 1),
        ([(7, -3)], Board(5, 3), [7], 0),
        ([(0, 0), (1, 0)], Board(4, 4), [9, 10], 0),
    ],
    ids=["most", "across", "one in the middle", "two in the middle"],
)
def test_the_frame_that_holds_most_is_kept(
    places: list[tuple[int, int]], board: Board, wanted: list[int], turn: int
) -> None:
    cells, turns = forest_of(places, loose=1).trimmed(board)
    assert cells.tolist() == [*wanted, -1]
    assert turns.tolist() == [turn] * len(places) + [0]


def true_matches(board: Board, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of sides that touches, once, of pieces anywhere at any turn, and these turns."""
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randperm(board.cells, generator=generator)
    turns = torch.randint(0, 4, (board.cells,), generator=generator)
    pairs = torch.stack(touching_sides(board, cells, turns), 1).numpy()
    return pairs[pairs[:, 0] < pairs[:, 1]], turns.numpy()


def false_matches(board: Board, count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 4 * board.cells, count)
    second = (first + 4 * generator.integers(1, board.cells, count)) % (4 * board.cells)
    return np.stack([first, second], 1)


@pytest.mark.parametrize("shape", [(4, 5), (1, 6), (5, 1)])
def test_true_matches_hold(shape: tuple[int, int]) -> None:
    board = Board(*shape)
    sides, _ = true_matches(board, seed=1)
    assert inconsistency(Forest.of(board.cells), sides, np.ones(len(sides))).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_false_matches_give_way_to_true_ones(seed: int) -> None:
    board = Board(5, 5)
    right, wrong = true_matches(board, seed)[0], false_matches(board, 8, seed)
    sides = np.concatenate([right, wrong])
    weight = np.repeat([1.0, 0.3], [len(right), len(wrong)])
    missed = inconsistency(Forest.of(board.cells), sides, weight)
    assert missed[: len(right)].max() < 1e-6
    # One turn of the whole can hide one false match (its four copies are then apart), but not several.
    assert (missed[len(right) :] > 0.1).sum() >= len(wrong) - 1


def same_up_to_a_whole_turn(found: np.ndarray, turns: np.ndarray) -> bool:
    return len(np.unique((found - turns) % 4)) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (1, 3), (2, 2), (6, 7), (1, 30)])
def test_turns_come_back_from_true_matches(shape: tuple[int, int]) -> None:
    sides, turns = true_matches(Board(*shape), seed=3)
    found = recovered_turns(connections(sides, np.ones(len(sides)), len(turns)))
    assert same_up_to_a_whole_turn(found, turns)


def test_matches_on_loops_count_more_and_add_their_diagonals() -> None:
    """Four pieces in a square and one more beside them: the square's matches stay, the odd one counts less."""
    square = np.array([[0, 6], [1, 11], [5, 15], [8, 14], [12, 18]])
    score = np.full((20, 16), 9.0, np.float32)
    side = np.array([[other for other in range(20) if other // 4 != own // 4] for own in range(20)])
    for a, b in [*square.tolist(), *square[:, ::-1].tolist()]:
        score[a, side[a] == b] = 0.1
    order = np.argsort(score, 1, kind="stable")
    listed = Candidates(
        np.take_along_axis(side, order, 1), np.take_along_axis(score, order, 1), np.zeros((20, 16), np.float32)
    )
    strength = abs(first_connections(listed, 5)).toarray()
    on_loop = [strength[0, 1], strength[0, 2], strength[1, 3], strength[2, 3]]
    assert min(on_loop) > 4 * strength[3, 4] > 0
    assert max(strength[0, 3], strength[1, 2]) > 0.3


@pytest.mark.parametrize("name", ["coffee", "cat"])
def test_a_good_placement_betters_the_turns(cut: Cut, name: str) -> None:
    puzzle = cut(7, 7, name=name)
    cells, turns = puzzle.board.snap(puzzle.truth)
    borders = Borders.of(puzzle.pieces.pixels)
    candidates = Candidates.of(borders.best(20))
    placement = RatedPlacement.of(puzzle.board, cells, turns, candidates)
    graph = first_connections(candidates, len(puzzle))
    right = []
    for _ in range(4):
        right.append(int(np.bincount((recovered_turns(graph) - turns.numpy()) % 4).max()))
        graph = next_connections(graph, placement, puzzle, candidates, borders)
    assert right == sorted(right)
    assert right[-1] == 49
