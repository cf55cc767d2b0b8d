"""Placements: from loose poses to one piece a cell, agreement and evidence of placements, and their orientation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import torch
from jaxtyping import Bool, Float, Float64, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diffassemble.assembly.locks import settle_loose
from diffassemble.core import Board, Matches, Placements, Poses, Puzzle, Step, turn_pixels
from diffassemble.core.board import SIDES, Placement
from diffassemble.network.upright import Upright, upright_turn
from diffassemble.squares.edges import NEVER

ScoredPlacement = tuple[Placement, Float[Tensor, "n"]]
"""A placement and the confidence of each piece."""

Uprighter = Callable[..., tuple[int, float]]
"""From a puzzle, the poses of its pieces and the turns allowed: quarter turns that make the whole upright, and their
probability. A fourth argument gives further log odds of those turns."""


def finish(
    puzzle: Puzzle,
    answers: Iterable[ScoredPlacement],
    upright: Uprighter | None,
    shown: Callable[[list[Placement]], list[float]] | None = None,
) -> Iterator[Step]:
    """Yield better and better answers; then the last one turned by `upright`, with log odds of its turns by `shown`."""
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


def place(poses: Poses, board: Board, exact_cells: int = 1000) -> Placement:
    """Cells and turns with the smallest sum of squared distances; boards of over `exact_cells` cells are halved."""
    cells = torch.empty(len(poses), dtype=torch.long)
    every = torch.arange(len(poses)), torch.arange(board.cells).view(board.rows, board.cols)
    _place(poses.translation.double(), board.centres().double(), *every, cells, exact_cells)
    return cells, board.nearest_turns(poses)


def _place(
    points: Float64[Tensor, "n 2"],
    centres: Float64[Tensor, "all 2"],
    pieces: Int[Tensor, "m"],
    block: Int[Tensor, "rows cols"],
    cells: Int[Tensor, "n"],
    exact_cells: int,
) -> None:
    """Write the cells of some pieces, which belong within a block of the board."""
    if block.numel() <= exact_cells:
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
    # As many on either side as there are, if there is room.
    before = min(max(int((along < border).sum()), len(pieces) - second.numel()), first.numel())
    ordered = pieces[along.argsort(stable=True)]
    _place(points, centres, ordered[:before], first, cells, exact_cells)
    _place(points, centres, ordered[before:], second, cells, exact_cells)


def place_by_logits(logits: Float[Tensor, "n c 4"], board: Board) -> Placement:
    """One piece a cell: the placement with the largest product of probabilities, each piece at its best turn there."""
    if board.oblong:
        logits = logits.masked_fill(torch.arange(logits.shape[-1]) % 2 == 1, NEVER)
    best, turns = logits[:, : board.cells].max(-1)
    log_probability = best - logits.flatten(1).logsumexp(1, keepdim=True)
    _, cells = linear_sum_assignment(-log_probability.double().numpy())
    chosen = torch.from_numpy(cells)
    return chosen, turns[torch.arange(len(chosen)), chosen]


def realised(poses: Poses, matches: Matches, pitch: float, loose: bool = False) -> Float[Tensor, ""]:
    """Σ probability of all matches that a placement realises: within a quarter cell and half a radian.

    Of `loose` poses all matches count, by factors exp(−4 distance² − 2 twist²).
    """
    implied = poses[matches.second] @ matches.pose
    apart = (implied.translation - poses.translation[matches.first]).norm(dim=-1) / pitch
    twist = (implied.rotation - poses.rotation[matches.first]).flatten(1).norm(dim=-1)
    if loose:
        return (matches.probability * torch.exp(-4 * apart**2 - 2 * twist**2)).sum()
    return matches.probability[(apart < 0.25) & (twist < 0.5)].sum()


def matching(board: Board, chosen: Placement, others: list[Placement]) -> Bool[Tensor, "k n"]:
    """Which pieces other placements have in the same place, each turned as a whole to agree best."""
    ways = board.fitting_turns()
    turned = [torch.stack([torch.stack(board.turned(*one, by)[1:]) for by in ways]) for one in others]
    same = (torch.stack(turned) == torch.stack(chosen)).all(2)
    return same[torch.arange(len(others)), same.sum(-1).argmax(1)]


def touching_sides(
    board: Board, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]
) -> tuple[Int[Tensor, "m"], Int[Tensor, "m"]]:
    """All pairs of sides that touch, each pair both ways round."""
    piece = torch.full((board.rows + 2, board.cols + 2), -1)
    row, col = cells // board.cols + 1, cells % board.cols + 1
    piece[row, col] = torch.arange(len(cells))
    # A piece turned by t shows side a to the way a + t: right, below, left, above.
    around = torch.stack([piece[row, col + 1], piece[row + 1, col], piece[row, col - 1], piece[row - 1, col]], 1)
    first, way = (around >= 0).nonzero().unbind(1)
    second = around[first, way]
    return SIDES * first + (way - turns[first]) % SIDES, SIDES * second + (way + 2 - turns[second]) % SIDES


def assembled_pixels(puzzle: Puzzle, cells: Int[Tensor, "n"], turns: Int[Tensor, "n"]) -> Float[Tensor, "3 H W"]:
    """The picture that a placement makes; NaN in empty cells."""
    board, height, width = puzzle.board, puzzle.pictures.height, puzzle.pictures.width
    canvas = torch.full((board.cells, 3, height, width), torch.nan)
    canvas[cells] = turn_pixels(puzzle.pixels, turns)
    grid = canvas.view(board.rows, board.cols, 3, height, width).permute(2, 0, 3, 1, 4)
    return grid.reshape(3, board.rows * height, board.cols * width)


def turn_to_upright(
    model: Upright,
    puzzle: Puzzle,
    placed: Poses,
    allowed: tuple[int, ...],
    more: Callable[[], Sequence[float]] | None = None,
) -> tuple[int, float]:
    """The `Uprighter` of a network that classifies the assembled picture."""
    return upright_turn(model, assembled_pixels(puzzle, *puzzle.board.snap(placed)), allowed, more)
