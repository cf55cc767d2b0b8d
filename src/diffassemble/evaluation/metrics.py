"""How good an answer is. Every metric takes the answer and the truth as cells and quarter turns per piece.

Pieces may be missing: those that are given are scored on the full board. Nothing depends on the order in
which pieces are listed.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from diffassemble.geometry import turn_matrix
from diffassemble.puzzle import Board


def direct_comparison(
    board: Board,
    cells: Int[Tensor, "n"],
    turns: Int[Tensor, "n"],
    true_cells: Int[Tensor, "n"],
    true_turns: Int[Tensor, "n"],
) -> float:
    """Percent of the pieces that are in their right place and have their right turn."""
    return _percent(_right_after_turning(board, cells, turns, true_cells, true_turns, by=0))


def direct_comparison_free(
    board: Board,
    cells: Int[Tensor, "n"],
    turns: Int[Tensor, "n"],
    true_cells: Int[Tensor, "n"],
    true_turns: Int[Tensor, "n"],
) -> float:
    """Direct comparison at the best turn of the whole: all four on a square board, 0° and 180° on others."""
    wholes = (0, 1, 2, 3) if board.rows == board.cols else (0, 2)
    return max(_percent(_right_after_turning(board, cells, turns, true_cells, true_turns, by)) for by in wholes)


def neighbour_accuracy(
    board: Board,
    cells: Int[Tensor, "n"],
    turns: Int[Tensor, "n"],
    true_cells: Int[Tensor, "n"],
    true_turns: Int[Tensor, "n"],
) -> float:
    """Percent of the true neighbour pairs, both given, that lie to each other in the answer as they should.

    Turning or shifting the whole answer changes nothing; 100 where no two pieces are neighbours.
    """
    first, second = _neighbour_pairs(board, true_cells)
    answer = _seen_from_first(board, cells, turns, first, second)
    truth = _seen_from_first(board, true_cells, true_turns, first, second)
    return _percent((answer == truth).all(-1))


def perfect(
    board: Board,
    cells: Int[Tensor, "n"],
    turns: Int[Tensor, "n"],
    true_cells: Int[Tensor, "n"],
    true_turns: Int[Tensor, "n"],
) -> bool:
    """Whether every piece is right, up to a turn of the whole."""
    return direct_comparison_free(board, cells, turns, true_cells, true_turns) == 100.0


def _percent(right: Bool[Tensor, "k"]) -> float:
    return 100.0 * int(right.sum()) / len(right) if len(right) else 100.0


def _right_after_turning(
    board: Board, cells: Tensor, turns: Tensor, true_cells: Tensor, true_turns: Tensor, by: int
) -> Bool[Tensor, "n"]:
    """Which pieces are right once the whole answer is turned by `by` clockwise quarter turns."""
    _, cells, turns = board.turned(cells, turns, by)
    return (cells == true_cells) & (turns % 4 == true_turns % 4)


def _neighbour_pairs(board: Board, cells: Int[Tensor, "n"]) -> tuple[Int[Tensor, "k"], Int[Tensor, "k"]]:
    """Pieces that share a side, each pair once: (left, right) and (upper, lower)."""
    piece = torch.full((board.rows, board.cols), -1)
    piece[cells // board.cols, cells % board.cols] = torch.arange(len(cells))
    first = torch.cat([piece[:, :-1].flatten(), piece[:-1].flatten()])
    second = torch.cat([piece[:, 1:].flatten(), piece[1:].flatten()])
    given = (first >= 0) & (second >= 0)
    return first[given], second[given]


def _seen_from_first(board: Board, cells: Tensor, turns: Tensor, first: Tensor, second: Tensor) -> Int[Tensor, "k 3"]:
    """Where the second piece of each pair stands in the frame of the first: cells right, cells down, turn."""
    place = torch.stack([cells % board.cols, cells // board.cols], -1)
    step = (place[second] - place[first]).float()
    own = (turn_matrix(-turns[first]) @ step[..., None])[..., 0].round().long()
    return torch.cat([own, ((turns[second] - turns[first]) % 4)[:, None]], -1)
