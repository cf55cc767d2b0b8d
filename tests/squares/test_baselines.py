"""The solvers that compare borders: Gallagher's trees, Yu's linear programs, Huroyan's connection graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Poses, Puzzle, Solver, Step
from diffassemble.evaluation.metrics import direct_comparison_free, neighbour_accuracy
from diffassemble.squares.edges import Borders
from diffassemble.squares.forest import Forest, FramedForest
from diffassemble.squares.gallagher import (
    Candidates,
    GallagherSolver,
    RatedPlacement,
    ranked_matches,
    trim_largest,
)
from diffassemble.squares.huroyan import (
    HuroyanSolver,
    connections,
    first_connections,
    next_connections,
    recovered_turns,
)
from diffassemble.squares.placement import touching_sides
from diffassemble.squares.yu import Acceptance, YuSolver, inconsistency, join_consistent

SOLVERS = {"gallagher": GallagherSolver, "yu": YuSolver, "huroyan": HuroyanSolver}
each = pytest.mark.parametrize("solver", SOLVERS)


def drained(puzzle: Puzzle, solver: Solver) -> list[Step]:
    return list(solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(0)))


def scores(puzzle: Puzzle, poses: Poses) -> tuple[float, float]:
    placement = (puzzle.board, *puzzle.board.snap(poses), *puzzle.board.snap(puzzle.truth))
    return direct_comparison_free(*placement), neighbour_accuracy(*placement)


@each
@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat"])
@pytest.mark.parametrize("shape", [(6, 6), (8, 5), (4, 9)])
def test_photos_are_put_together(cut: Callable[..., Puzzle], solver: str, name: str, shape: tuple[int, int]) -> None:
    puzzle = cut(*shape, name=name)
    right, neighbours = scores(puzzle, drained(puzzle, SOLVERS[solver]())[-1].poses)
    assert right > (88 if solver == "huroyan" else 95)
    assert neighbours > (93 if solver == "huroyan" else 95)


@each
def test_what_is_there_hangs_together_when_pieces_are_missing(cut: Callable[..., Puzzle], solver: str) -> None:
    puzzle = cut(6, 8, missing=0.15, name="astronaut")
    assert scores(puzzle, drained(puzzle, SOLVERS[solver]())[-1].poses)[1] > 85


@each
def test_the_whole_is_turned_as_the_uprighter_says(cut: Callable[..., Puzzle], solver: str) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle, SOLVERS[solver]())[-1].poses
    steps = drained(puzzle, SOLVERS[solver](upright=lambda given, placed, wholes: (1, 0.5)))
    expected = puzzle.board.poses(*puzzle.board.turned(*puzzle.board.snap(plain), 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)
    assert steps[-1].placements.upright == 0.5


def noise(count: int, size: int = 8) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_steps_show_trees_that_grow(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 6)
    steps = drained(puzzle, GallagherSolver())
    assert 5 < len(steps) < 20
    assert [step.result is None for step in steps] == [True] * (len(steps) - 1) + [False]
    neighbours = [together(puzzle, step.poses) for step in steps]
    assert neighbours == sorted(neighbours)
    assert neighbours[0] < 5
    assert neighbours[-1] > 55


def together(puzzle: Puzzle, poses: Poses) -> int:
    """How many true neighbours lie to each other as they should, wherever that is."""
    truth, pitch = puzzle.truth, puzzle.board.pitch
    first, second = ((truth.translation[:, None] - truth.translation).norm(dim=-1) < 1.1 * pitch).nonzero().unbind(1)
    found = poses[first].inverse() @ poses[second]
    wanted = truth[first].inverse() @ truth[second]
    apart = (found.translation - wanted.translation).norm(dim=-1) + (found.rotation - wanted.rotation).norm(dim=(1, 2))
    return int(((apart < 0.1 * pitch) & (first < second)).sum())


def test_the_clearest_matches_come_first(border_scores: Callable[[Tensor], Tensor]) -> None:
    scores = border_scores(noise(4))
    partners = Borders.of(noise(4)).best(12)
    second = scores.topk(2, largest=False).values[:, 1] + 0.02
    matches = ranked_matches(partners)
    ratios = [(scores[a, b] + 0.02) ** 2 / (second[a] * second[b]) for a, b in matches.tolist()]
    assert len(matches) == 16 * 12
    assert len({tuple(match) for match in matches.tolist()}) == len(matches)
    assert torch.stack(ratios).diff().min() > -1e-4
    assert ranked_matches(Borders.of(noise(1)).best(8)).shape == (0, 2)


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
    cells, turns = trim_largest(forest_of(places, loose=1), board)
    assert cells.tolist() == [*wanted, -1]
    assert turns.tolist() == [turn] * len(places) + [0]


def true_matches(board: Board, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of sides that touches, once, of pieces that lie anywhere at any turn, and these turns."""
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
    # One turn of the whole can hide one false match (its four copies then stand apart), but not several.
    assert (missed[len(right) :] > 0.1).sum() >= len(wrong) - 1


def test_trees_are_rigid() -> None:
    """A match that would have to tear a tree does not hold, whatever its weight."""
    forest = Forest.of(4)
    forest.grow(np.array([[0, 4 + 2], [4, 8 + 2]]), 0, 2)  # a row of three
    torn, free = [0 + 1, 8 + 3], [8, 12 + 2]
    missed = inconsistency(forest, np.array([torn, free]), np.array([100.0, 1.0]))
    assert missed[0] > 0.5
    assert missed[1] < 1e-6


def test_what_is_not_possible_is_not_joined(cut: Callable[..., Puzzle]) -> None:
    """With their turns known, pieces keep them."""
    puzzle = cut(5, 5)
    _, turns = puzzle.board.snap(puzzle.truth)
    candidates = Candidates.of(Borders.of(puzzle.pieces.pixels).best(20))
    framed = FramedForest.of(puzzle.board, turns.numpy())
    nothing = np.zeros(candidates.side.shape, bool)
    assert list(join_consistent(framed, candidates, nothing, Acceptance())) == []
    first, second = candidates.pairs[..., 0], candidates.pairs[..., 1]
    looks = (first + turns.numpy()[first // 4] - second - turns.numpy()[second // 4]) % 4
    assert list(join_consistent(framed, candidates, looks == 2, Acceptance()))
    assert (framed.forest.turn == turns.numpy()).all()
    assert framed.forest.trees < 5


def same_up_to_a_whole_turn(found: np.ndarray, turns: np.ndarray) -> bool:
    return len(np.unique((found - turns) % 4)) == 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (1, 3), (2, 2), (6, 7), (1, 30), (30, 30)])
def test_turns_come_back_from_true_matches(shape: tuple[int, int]) -> None:
    sides, turns = true_matches(Board(*shape), seed=3)
    found = recovered_turns(connections(sides, np.ones(len(sides)), len(turns)))
    assert same_up_to_a_whole_turn(found, turns)


@pytest.mark.parametrize("seed", range(5))
def test_most_turns_come_back_if_a_tenth_of_the_matches_is_false(seed: int) -> None:
    sides, turns = true_matches(Board(8, 8), seed)
    generator = np.random.default_rng(seed)
    lying = generator.choice(len(sides), len(sides) // 10, replace=False)
    sides[lying, 1] = 4 * (sides[lying, 1] // 4) + generator.integers(0, 4, len(lying))
    found = recovered_turns(connections(sides, np.ones(len(sides)), len(turns)))
    assert np.bincount((found - turns) % 4).max() > 0.8 * 64


def test_connections_are_hermitian_and_add_up() -> None:
    sides, turns = true_matches(Board(3, 4), seed=0)
    weight = np.linspace(0.1, 1, len(sides))
    graph = connections(sides, weight, 12)
    assert abs(graph - graph.conj().T).max() < 1e-12
    for (a, b), value in zip(sides // 4, weight, strict=True):
        assert graph[a, b] == pytest.approx(value * 1j ** ((turns[a] - turns[b]) % 4))
    assert abs(connections(np.repeat(sides, 2, 0), np.repeat(weight, 2), 12) - 2 * graph).max() < 1e-12


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
def test_a_good_placement_betters_the_turns(cut: Callable[..., Puzzle], name: str) -> None:
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
