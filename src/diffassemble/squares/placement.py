"""Placements: from loose poses to one piece a cell, agreement and evidence of placements, and their orientation.

Also the grid of a puzzle for which none is given, and pieces that do not belong to the picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Float64, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diffassemble.core import Board, ImagePieces, Matches, Placements, Poses, Puzzle, Solver, Step, turn_pixels
from diffassemble.core.board import SIDES, Placement
from diffassemble.network.upright import Upright, upright_turn
from diffassemble.squares.edges import NEVER, Evidence, find_matches


@dataclass(frozen=True)
class GridConfig:
    """Numbers of the choice of a grid and of its pieces."""

    stretch: float = 3.0
    """largest ratio of width to height, in cells, of a grid that is tried"""
    belongs: float = 0.25
    """expected number of neighbours in the rest of the picture from which a piece belongs to it"""
    rounds: int = 30
    """power iterations for the centre of the picture"""


DEFAULT = GridConfig()


def candidate_boards(count: int, aspect: float = 1.0, stretch: float = DEFAULT.stretch) -> list[Board]:
    """Boards at most `stretch` : 1 that `count` pieces fill, or have no row or column to spare; squares: landscape."""
    most = count if aspect != 1 else math.ceil(count**0.5)
    boards = [Board(rows, math.ceil(count / rows), aspect) for rows in range(1, most + 1)]
    if aspect != 1:
        shapely = [one for one in boards if 1 / stretch <= one.cols / (one.rows * aspect) <= stretch] or boards
    else:
        shapely = [board for board in boards if board.rows <= board.cols <= stretch * board.rows]
    tight = [board for board in shapely if (board.rows - 1) * board.cols < count]
    return [board for board in tight if board.cells == count] or tight


def choose_board(pieces: ImagePieces, solver: Solver, seed: int, upright: Uprighter | None = None) -> Board:
    """The candidate board whose placement realises most border evidence, turned by `upright`, if given."""
    boards = candidate_boards(len(pieces), pieces.height / pieces.width)
    if len(boards) == 1 and (upright is None or boards[0].oblong):
        return boards[0]
    names = tuple(str(index) for index in range(len(pieces)))
    evidence = Evidence(pieces.pixels)
    trials = []
    for board in boards:
        puzzle = Puzzle(pieces, board, names)
        *_, last = solver.steps(puzzle, torch.Generator().manual_seed(seed))
        worth = float(realised(last.poses, evidence.matches(board.pitch), board.pitch))
        trials.append((puzzle, last.poses, worth))
    puzzle, placed, _ = max(trials, key=lambda trial: trial[2])
    board = puzzle.board
    if upright is None or board.oblong or board.rows == board.cols or upright(puzzle, placed, (0, 1, 2, 3))[0] % 2 == 0:
        return board
    return Board(board.cols, board.rows)


def roomy_board(count: int) -> Board:
    """A board near the square, rather high than wide, with few spare cells."""
    boards = [Board(math.ceil(count / cols), cols) for cols in range(1, math.isqrt(count) + 2)]
    upright = [board for board in boards if board.rows >= board.cols]
    return min(upright, key=lambda board: (board.cells - count + board.rows - board.cols, board.cells - count))


@dataclass(frozen=True)
class SetAside:
    """A puzzle without the pieces that do not belong to it, and their names."""

    puzzle: Puzzle
    extra: tuple[str, ...]


def set_aside(puzzle: Puzzle, config: GridConfig = DEFAULT) -> SetAside:
    """Take away the pieces without a cell, and those whose borders no other piece continues.

    The picture grows from the piece of highest eigenvector centrality in the graph of expected neighbours, or from the
    locked pieces, by the piece with the most expected neighbours in it.
    """
    matches = find_matches(puzzle)
    # The probability that two pieces are neighbours, on any side.
    bonds = torch.zeros(len(puzzle), len(puzzle))
    bonds.index_put_((matches.first, matches.second), matches.probability, accumulate=True)
    bonds = ((bonds + bonds.T) / 2).clamp(max=1).fill_diagonal_(0)
    if puzzle.locks is None:
        central = torch.ones(len(bonds))
        for _ in range(config.rounds):
            central = bonds @ central + 1e-6
            central = central / central.max()
        belongs = torch.arange(len(bonds)) == central.argmax()
    else:
        belongs = puzzle.locks.held.clone()
    while int(belongs.sum()) < puzzle.board.cells:
        fits = bonds[:, belongs].sum(1).masked_fill(belongs, -1.0)
        # A puzzle needs two pieces, however badly they fit.
        if float(fits.max()) < (config.belongs if int(belongs.sum()) > 1 else 0):
            break
        belongs[fits.argmax()] = True
    names = tuple(name for name, kept in zip(puzzle.names, belongs.tolist(), strict=True) if not kept)
    return SetAside(puzzle.reordered(belongs.nonzero().flatten()), names)


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
