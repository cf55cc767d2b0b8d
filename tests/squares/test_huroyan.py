"""Huroyan's connection graph and solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from diffassemble.core import Board, Poses, Puzzle, Step
from diffassemble.evaluation.metrics import direct_comparison_free, neighbour_accuracy
from diffassemble.squares.baselines.filling import Candidates, RatedPlacement, touching_sides
from diffassemble.squares.baselines.huroyan import (
    HuroyanSolver,
    agreeing,
    connections,
    first_connections,
    next_connections,
    pair_scores,
    recovered_turns,
    tied_together,
)
from diffassemble.squares.edges import Borders


def border_scores(pixels: Tensor) -> Tensor:
    """The scores of all pairs of sides."""
    borders = Borders.of(pixels)
    every = torch.arange(len(borders))
    return borders.scores(every, every)


def true_matches(board: Board, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of sides that touch, once each, and the turns of the pieces."""
    generator = torch.Generator().manual_seed(seed)
    cells = torch.randperm(board.cells, generator=generator)
    turns = torch.randint(0, 4, (board.cells,), generator=generator)
    pairs = torch.stack(touching_sides(board, cells, turns), 1).numpy()
    return pairs[pairs[:, 0] < pairs[:, 1]], turns.numpy()


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


def test_connections_that_cancel_are_gone() -> None:
    # The same two pieces, once as they lie, once with the second upside down.
    graph = connections(np.array([[0, 6], [0, 4]]), np.ones(2), 2)
    assert graph.nnz == 0
    assert len(recovered_turns(graph)) == 2


def parts(graph: csr_array) -> int:
    return int(connected_components(abs(graph), directed=False)[0])


def test_faint_connections_make_the_graph_one(cut: Callable[..., Puzzle]) -> None:
    candidates = Candidates.of(Borders.of(cut(4, 4).pieces.pixels).best(8))
    nothing = csr_array((16, 16), dtype=complex)
    tied = tied_together(nothing, candidates)
    assert (parts(nothing), parts(tied)) == (16, 1)
    assert tied.nnz == 2 * 15
    assert abs(tied).max() < 0.01
    assert tied_together(tied, candidates) is tied


@pytest.mark.parametrize("name", ["astronaut", "coffee", "cat"])
def test_most_turns_come_back_from_photos(cut: Callable[..., Puzzle], name: str) -> None:
    puzzle = cut(7, 7, name=name)
    assert puzzle.truth is not None
    graph = first_connections(Candidates.of(Borders.of(puzzle.pieces.pixels).best(20)), len(puzzle))
    assert parts(graph) == 1
    assert abs(graph - graph.conj().T).max() < 1e-12
    turns = puzzle.board.snap(puzzle.truth)[1].numpy()
    assert np.bincount((recovered_turns(graph) - turns) % 4).max() > 0.8 * 49


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


def drained(puzzle: Puzzle, solver: HuroyanSolver = HuroyanSolver()) -> list[Step]:  # noqa: B008
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
    assert right > 88
    assert neighbours > 93


def test_what_is_there_hangs_together_when_pieces_are_missing(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(6, 8, missing=0.15, name="astronaut")
    last = drained(puzzle)[-1]
    assert scores(puzzle, last.poses)[1] > 85
    assert_placement(puzzle, last)


def noise(count: int, size: int = 8) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def test_the_whole_is_turned_as_the_uprighter_says(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 4)
    plain = drained(puzzle)[-1].poses
    steps = drained(puzzle, HuroyanSolver(upright=lambda given, placed, wholes: 1))
    expected = puzzle.board.poses(*puzzle.board.turned(*puzzle.board.snap(plain), 1)[1:])
    assert torch.equal(steps[-2].poses.translation, plain.translation)
    assert torch.equal(steps[-1].poses.translation, expected.translation)
    assert torch.equal(steps[-1].poses.rotation, expected.rotation)


def test_true_neighbours_agree_with_the_true_turns(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(4, 5)
    assert puzzle.truth is not None
    cells, turns = puzzle.board.snap(puzzle.truth)
    pairs = torch.stack(touching_sides(puzzle.board, cells, turns), 1).numpy()
    assert agreeing(pairs, turns.numpy()).all()
    assert agreeing(pairs, (turns.numpy() + 3) % 4).all()
    assert not agreeing(pairs + np.where(pairs % 4 == 3, -3, 1) * np.array([1, 0]), turns.numpy()).any()


def test_scores_of_pairs_are_those_of_the_matrix() -> None:
    pixels = noise(5)
    first, second = torch.tensor([0, 3, 17, 8]), torch.tensor([5, 18, 2, 13])
    expected = border_scores(pixels)[first, second].numpy()
    assert pair_scores(Borders.of(pixels), first, second) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["coffee", "cat"])
def test_a_good_placement_betters_the_turns(cut: Callable[..., Puzzle], name: str) -> None:
    puzzle = cut(7, 7, name=name)
    assert puzzle.truth is not None
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
