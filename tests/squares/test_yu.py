"""Yu's linear programs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from diffassemble.core import Board, Poses, Puzzle, Step
from diffassemble.core.board import WAYS
from diffassemble.evaluation.metrics import direct_comparison_free, neighbour_accuracy
from diffassemble.squares.baselines.filling import Candidates, touching_sides
from diffassemble.squares.baselines.yu import Caution, YuSolver, inconsistency, join_consistent
from diffassemble.squares.edges import Borders
from diffassemble.squares.forest import Forest, FramedForest

QUARTERS = [np.linalg.matrix_power(np.array([[0, -1], [1, 0]]), quarter) for quarter in range(4)]


def true_matches(board: Board, seed: int) -> np.ndarray:
    """Every pair of sides that touches, once, of pieces that lie anywhere at any turn."""
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randperm(board.cells, generator=generator)
    turns = torch.randint(0, 4, (board.cells,), generator=generator)
    pairs = torch.stack(touching_sides(board, cells, turns), 1).numpy()
    return pairs[pairs[:, 0] < pairs[:, 1]]


def false_matches(board: Board, count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 4 * board.cells, count)
    second = (first + 4 * generator.integers(1, board.cells, count)) % (4 * board.cells)
    return np.stack([first, second], 1)


@pytest.mark.parametrize("shape", [(4, 5), (1, 6), (5, 1)])
def test_true_matches_hold(shape: tuple[int, int]) -> None:
    board = Board(*shape)
    sides = true_matches(board, seed=1)
    assert inconsistency(Forest.of(board.cells), sides, np.ones(len(sides))).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_false_matches_give_way_to_true_ones(seed: int) -> None:
    board = Board(5, 5)
    right, wrong = true_matches(board, seed), false_matches(board, 8, seed)
    sides = np.concatenate([right, wrong])
    weight = np.repeat([1.0, 0.3], [len(right), len(wrong)])
    missed = inconsistency(Forest.of(board.cells), sides, weight)
    assert missed[: len(right)].max() < 1e-6
    # One turn of the whole can hide one false match (its four copies then stand apart), but not several.
    assert (missed[len(right) :] > 0.1).sum() >= len(wrong) - 1


@pytest.mark.parametrize("seed", range(4))
def test_two_unknowns_a_piece_are_as_good_as_the_four_copies_of_the_paper(seed: int) -> None:
    """The least cost over four copies of every piece, one a turn, is four times that over one place a piece."""
    board = Board(2, 3)
    sides = np.concatenate([true_matches(board, seed), false_matches(board, 5, seed)])
    weight = np.random.default_rng(seed).random(len(sides)) + 0.1
    rows, goal = [], []
    for (a, b), copy in ((match, copy) for match in sides.tolist() for copy in range(4)):
        # The second piece's copy is turned by `copy`, the first's so that their sides face each other.
        first = (copy + b + 2 - a) % 4 + 4 * (a // 4)
        second = copy + 4 * (b // 4)
        look = QUARTERS[(b + copy) % 4][:, 0]
        for axis in range(2):
            row = np.zeros(8 * board.cells)
            row[2 * first + axis] += 1
            row[2 * second + axis] -= 1
            rows.append(row)
            goal.append(look[axis])
    slack = np.eye(len(rows))
    cost = np.repeat(weight, 8)
    full = linprog(
        np.concatenate([np.zeros(8 * board.cells), cost, cost]),
        A_eq=np.concatenate([np.array(rows), -slack, slack], 1),
        b_eq=goal,
        bounds=[(None, None)] * (8 * board.cells) + [(0, None)] * (2 * len(rows)),
    )
    assert full.fun == pytest.approx(4 * reduced_cost(board.cells, sides, weight), rel=1e-6)


def reduced_cost(count: int, sides: np.ndarray, weight: np.ndarray) -> float:
    """The least Σ w (|ex| + |ey|) over places p, by e = R^(b + 2 − a) p_i − p_j − u_b."""
    rows, goal = np.zeros((2 * len(sides), 2 * count)), np.zeros(2 * len(sides))
    for number, (a, b) in enumerate(sides.tolist()):
        place = slice(2 * number, 2 * number + 2)
        rows[place, 2 * (a // 4) : 2 * (a // 4) + 2] += QUARTERS[(b + 2 - a) % 4]
        rows[place, 2 * (b // 4) : 2 * (b // 4) + 2] -= np.eye(2)
        goal[place] = QUARTERS[b % 4][:, 0]
    slack, cost = np.eye(len(rows)), np.repeat(weight, 2)
    solved = linprog(
        np.concatenate([np.zeros(2 * count), cost, cost]),
        A_eq=np.concatenate([rows, -slack, slack], 1),
        b_eq=goal,
        bounds=[(None, None)] * (2 * count) + [(0, None)] * (2 * len(rows)),
    )
    return float(solved.fun)


def test_trees_are_rigid() -> None:
    """A match that would have to tear a tree does not hold, whatever its weight."""
    forest = Forest.of(4)
    forest.grow(np.array([[0, 4 + 2], [4, 8 + 2]]), 0, 2)  # a row of three
    torn, free = [0 + 1, 8 + 3], [8, 12 + 2]
    missed = inconsistency(forest, np.array([torn, free]), np.array([100.0, 1.0]))
    assert missed[0] > 0.5
    assert missed[1] < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_joining_true_matches_first_changes_nothing(seed: int) -> None:
    board = Board(4, 4)
    sides = true_matches(board, seed)
    forest = Forest.of(board.cells)
    forest.grow(sides, 0, 9)
    assert forest.trees < board.cells
    assert inconsistency(forest, sides, np.ones(len(sides))).max() < 1e-6


def test_without_time_nothing_holds() -> None:
    sides = true_matches(Board(6, 6), seed=0)
    assert np.isinf(inconsistency(Forest.of(36), sides, np.ones(len(sides)), budget=0.0)).all()


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


def drained(puzzle: Puzzle, solver: YuSolver = YuSolver()) -> list[Step]:  # noqa: B008
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def scores(puzzle: Puzzle, poses: Poses) -> tuple[float, float]:
    assert puzzle.truth is not None
    placement = (puzzle.board, *puzzle.board.snap(poses), *puzzle.board.snap(puzzle.truth))
    return direct_comparison_free(*placement), neighbour_accuracy(*placement)


def assert_placement(puzzle: Puzzle, step: Step) -> None:
    """One piece a cell, exactly on the board, and a confidence for each."""
    cells, turns = puzzle.board.snap(step.poses)
    placed = puzzle.board.poses(cells, turns)
    assert len(cells.unique()) == len(puzzle)
    assert torch.equal(step.poses.translation, placed.translation)
    assert torch.equal(step.poses.rotation, placed.rotation)
    assert step.confidence is not None
    assert ((step.confidence >= 0) & (step.confidence <= 1)).all()


@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat"])
@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (4, 9)])
def test_photos_are_put_together(cut: Callable[..., Puzzle], name: str, shape: tuple[int, int]) -> None:
    puzzle = cut(*shape, name=name)
    right, neighbours = scores(puzzle, drained(puzzle)[-1].poses)
    assert right > 95
    assert neighbours > 95


def test_what_is_there_hangs_together_when_pieces_are_missing(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 8, missing=0.15, name="astronaut")
    last = drained(puzzle)[-1]
    assert scores(puzzle, last.poses)[1] > 85
    assert_placement(puzzle, last)


def test_the_whole_is_turned_as_the_uprighter_says(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle)[-1].poses
    steps = drained(puzzle, YuSolver(upright=lambda given, placed, wholes: 1))
    expected = puzzle.board.poses(*puzzle.board.turned(*puzzle.board.snap(plain), 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)
