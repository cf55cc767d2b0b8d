"""Steps come back in the order of the pieces, and trees are seen whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from diffassemble.core import Board, Puzzle, Step
from diffassemble.core.solver import in_content_order
from diffassemble.squares.baselines.filling import lay_out
from diffassemble.squares.forest import Forest


def test_pieces_are_solved_in_one_order_and_answered_in_the_other(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(3, 3)
    seen: list[Puzzle] = []

    def truth(ordered: Puzzle) -> Iterator[Step]:
        seen.append(ordered)
        assert ordered.truth is not None
        yield Step(ordered.truth, 0.5)
        yield Step(ordered.truth, 1.0, torch.arange(9.0))

    shuffled = puzzle.reordered(torch.randperm(9, generator=torch.Generator().manual_seed(1)))
    for given in (puzzle, shuffled):
        first, last = in_content_order(given, truth)
        assert given.truth is not None
        assert torch.equal(last.poses.translation, given.truth.translation)
        assert first.confidence is None
        assert last.confidence is not None
        assert last.confidence.sort().values.tolist() == list(range(9))
    assert torch.equal(seen[0].pieces.pixels, seen[1].pieces.pixels)


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
