"""Placements: from loose poses to one piece a cell, how good that is, and the last steps of every solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from jaxtyping import Float, Float64, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diffassemble.assembly.locks import settle_loose
from diffassemble.core import Board, Matches, Placements, Poses, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.squares.upright import Uprighter

# Cells up to which a placement is the best there is.
_EXACTLY = 1000
# The log probability of turns at which no piece fits.
_NEVER = -1e4

Answer = tuple[Placement, Float[Tensor, "n"]]
"""A placement and the confidence of each piece."""


def finish(
    puzzle: Puzzle,
    answers: Iterable[Answer],
    upright: Uprighter | None,
    shown: Callable[[list[Placement]], list[float]] | None = None,
) -> Iterator[Step]:
    """Yield better and better answers as steps, and the last one once more, turned as a whole as `upright` says.

    Where that is not sure, what `shown` tells of the placement in its turns counts, too.
    """
    board = puzzle.board
    for placement, confidence in answers:
        placed = board.poses(*placement)
        yield Step.last(Placements(placed, confidence))
    if upright is not None:
        turns = board.fitting_turns()
        wholes = [board.turned(*placement, by)[1:] for by in turns]
        by, probability = upright(puzzle, placed, turns, *([] if shown is None else [partial(shown, wholes)]))
        yield Step.last(Placements(board.poses(*board.turned(*placement, by)[1:]), confidence, upright=probability))


def held_place(poses: Poses, puzzle: Puzzle) -> Placement:
    """One piece a cell, the locked ones where they are locked."""
    if puzzle.locks is None:
        return place(poses, puzzle.board)
    return settle_loose(poses, puzzle.board, puzzle.locks)


def place(poses: Poses, board: Board) -> Placement:
    """Cells and quarter turns: the one-to-one placement with the smallest sum of squared distances.

    Large boards are halved again and again, and their pieces with them, until the halves are small enough for that.
    """
    cells = torch.empty(len(poses), dtype=torch.long)
    every = torch.arange(len(poses)), torch.arange(board.cells).view(board.rows, board.cols)
    _place(poses.translation.double(), board.centres().double(), *every, cells)
    return cells, board.nearest_turns(poses)


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


def place_by_logits(logits: Float[Tensor, "n c 4"], board: Board) -> Placement:
    """One piece a cell: the placement with the largest product of probabilities, each piece at its best turn there."""
    if board.oblong:
        logits = logits.masked_fill(torch.arange(logits.shape[-1]) % 2 == 1, _NEVER)
    best, turns = logits[:, : board.cells].max(-1)
    log_probability = best - logits.flatten(1).logsumexp(1, keepdim=True)
    _, cells = linear_sum_assignment(-log_probability.double().numpy())
    chosen = torch.from_numpy(cells)
    return chosen, turns[torch.arange(len(chosen)), chosen]


def realised(poses: Poses, matches: Matches, pitch: float) -> Float[Tensor, ""]:
    """The evidence that a placement agrees with: the weights of all matches that it realises, added up."""
    apart, twist = _missed(poses, matches, pitch)
    return matches.probability[(apart < 0.25) & (twist < 0.5)].sum()


def nearly_realised(poses: Poses, matches: Matches, pitch: float) -> Float[Tensor, ""]:
    """The same of loose poses: matches count in full when realised, and fade with distance."""
    apart, twist = _missed(poses, matches, pitch)
    return (matches.probability * torch.exp(-4 * apart**2 - 2 * twist**2)).sum()


def _missed(poses: Poses, matches: Matches, pitch: float) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """How far the first of each match is from where the second wants it, in cells, and how far it is turned away."""
    wanted = poses[matches.second] @ matches.pose
    apart = (wanted.translation - poses.translation[matches.first]).norm(dim=-1) / pitch
    return apart, (wanted.rotation - poses.rotation[matches.first]).flatten(1).norm(dim=-1)


def agreement(board: Board, chosen: Placement, others: list[Placement]) -> Float[Tensor, "n"]:
    """Per piece, the share of other placements that put it in the same place, each turned as a whole to agree best."""
    if not others:
        return torch.ones(len(chosen[0]))
    same = (_turned(board, others) == torch.stack(chosen)).all(2)
    best = same.sum(-1).argmax(1)
    return same[torch.arange(len(others)), best].float().mean(0)


def agreements(board: Board, placements: list[Placement]) -> list[float]:
    """For each placement the number of pieces that another one puts in the same place, on the average."""
    turned = _turned(board, placements)
    same = (turned[:, 0, None, None] == turned).all(3).sum(-1).amax(-1)
    return ((same.sum(1) - same.diagonal()) / max(1, len(placements) - 1)).tolist()


def _turned(board: Board, placements: list[Placement]) -> Int[Tensor, "k t 2 n"]:
    """Cells and turns of every placement, as it is and turned as a whole in all ways that fit the board."""
    ways = board.fitting_turns()
    wholes = [[torch.stack(board.turned(*placement, by)[1:]) for by in ways] for placement in placements]
    return torch.stack([torch.stack(whole) for whole in wholes])
