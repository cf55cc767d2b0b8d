"""From loose poses to one piece a cell."""

from __future__ import annotations

import torch
from jaxtyping import Float, Float64, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diffassemble.core import Board, Matches, Poses, nearest_turn

# Cells up to which a placement is the best there is.
_EXACTLY = 1000


def place(poses: Poses, board: Board) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
    """Cells and quarter turns: the one-to-one placement with the smallest sum of squared distances.

    Large boards are halved again and again, and their pieces with them, until the halves are small enough for that.
    """
    cells = torch.empty(len(poses), dtype=torch.long)
    every = torch.arange(len(poses)), torch.arange(board.cells).view(board.rows, board.cols)
    _place(poses.translation.double(), board.centres().double(), *every, cells)
    return cells, nearest_turn(poses.rotation)


def _place(
    points: Float64[Tensor, "n 2"],
    centres: Float64[Tensor, "all 2"],
    pieces: Int[Tensor, "m"],
    block: Int[Tensor, "rows cols"],
    cells: Int[Tensor, "n"],
) -> None:
    """Write the cells of some pieces, which are to lie within a block of the board."""
    if block.numel() <= _EXACTLY:
        free = block.flatten()
        distance = torch.cdist(points[pieces], centres[free]).square()
        rows, cols = linear_sum_assignment(distance.numpy())
        cells[pieces[rows]] = free[cols]
        return
    across = int(block.shape[1] >= block.shape[0])
    half = block.shape[across] // 2
    first, second = block.split([half, block.shape[across] - half], across)
    along = points[pieces, 1 - across]
    border = (centres[first].select(across, -1) + centres[second].select(across, 0))[0, 1 - across] / 2
    # As many on either side as stand there, if there is room.
    before = min(max(int((along < border).sum()), len(pieces) - second.numel()), first.numel())
    ordered = pieces[along.argsort(stable=True)]
    _place(points, centres, ordered[:before], first, cells)
    _place(points, centres, ordered[before:], second, cells)


def fit(placed: Poses, matches: Matches, pitch: float) -> Float[Tensor, ""]:
    """How much evidence the placement agrees with: the weights of all matings that it realises, added up."""
    wanted = placed[matches.second] @ matches.relative
    apart = (wanted.translation - placed.translation[matches.first]).norm(dim=-1)
    twist = (wanted.rotation - placed.rotation[matches.first]).flatten(1).norm(dim=-1)
    return matches.weight[(apart < pitch / 4) & (twist < 0.5)].sum()


def agreement(board: Board, chosen: tuple[Tensor, Tensor], others: list[tuple[Tensor, Tensor]]) -> Float[Tensor, "n"]:
    """Per piece, the share of other placements that put it in the same place, each turned as a whole to agree best."""
    if not others:
        return torch.ones(len(chosen[0]))
    same = (_turned(board, others) == torch.stack(chosen)).all(2)
    best = same.sum(-1).argmax(1)
    return same[torch.arange(len(others)), best].float().mean(0)


def agreements(board: Board, placements: list[tuple[Tensor, Tensor]]) -> list[float]:
    """For each placement the number of pieces that another one puts in the same place, on the average."""
    turned = _turned(board, placements)
    same = (turned[:, 0, None, None] == turned).all(3).sum(-1).amax(-1)
    return ((same.sum(1) - same.diagonal()) / max(1, len(placements) - 1)).tolist()


def _turned(board: Board, placements: list[tuple[Tensor, Tensor]]) -> Int[Tensor, "k t 2 n"]:
    """Cells and turns of every placement, as it is and turned as a whole in all ways that fit the board."""
    wholes = [[board.turned(*placement, by) for by in range(4)] for placement in placements]
    return torch.stack(
        [torch.stack([torch.stack(rest) for shape, *rest in whole if shape == board]) for whole in wholes]
    )
