"""What all solvers that go by borders end with: how sure each piece is, and which way is up.

    finish(puzzle, cells, turns, partners, upright) -> the last steps

`partners` is `Borders.of(pixels).best(8)` of the same pieces in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.compatibility.image import SIDES, Partners, evidence
from diffassemble.puzzle import Board, Puzzle, Step
from diffassemble.solvers.orientation import Uprighter, fitting_turns


def finish(
    puzzle: Puzzle, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], partners: Partners, upright: Uprighter | None
) -> Iterator[Step]:
    """Yield the final placement; if `upright` says that the whole must be turned, then first as it was before."""
    board, placed = puzzle.board, puzzle.board.poses(cells, turns)
    confidence = border_confidence(board, cells, turns, partners)
    yield Step(placed, done=1.0, confidence=confidence)
    by = 0 if upright is None else upright(puzzle, placed, fitting_turns(board))
    if by:
        yield Step(board.poses(*board.turned(cells, turns, by)[1:]), done=1.0, confidence=confidence)


def border_confidence(
    board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], partners: Partners
) -> Float[Tensor, "n"]:
    """How probable it is that a piece belongs beside its neighbours, on the average; 0 for a piece without any."""
    first, second = touching_sides(board, cells, turns)
    if not len(first):
        return torch.zeros(len(cells))
    probable = evidence(partners)[first, :, 0]
    fitting = torch.where(partners.side[first] == second[:, None], probable, 0).sum(1)
    total = torch.zeros(len(cells)).index_add(0, first // SIDES, fitting)
    return total / torch.bincount(first // SIDES, minlength=len(cells)).clamp(min=1)


def touching_sides(
    board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]
) -> tuple[Int[Tensor, "m"], Int[Tensor, "m"]]:
    """All pairs of sides that lie against each other, each pair both ways round."""
    piece = torch.full((board.rows + 2, board.cols + 2), -1)
    row, col = cells // board.cols + 1, cells % board.cols + 1
    piece[row, col] = torch.arange(len(cells))
    # A piece turned by t shows side a to the way a + t: right, below, left, above.
    around = torch.stack([piece[row, col + 1], piece[row + 1, col], piece[row, col - 1], piece[row - 1, col]], 1)
    first, way = (around >= 0).nonzero().unbind(1)
    second = around[first, way]
    return SIDES * first + (way - turns[first]) % SIDES, SIDES * second + (way + 2 - turns[second]) % SIDES
