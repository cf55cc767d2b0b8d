"""The grid of a puzzle for which none is given, and pieces that do not belong to the picture."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from diffassemble.core import Board, ImagePieces, Puzzle, Solver
from diffassemble.squares.edges import Evidence, find_matches
from diffassemble.squares.placement import Uprighter, realised


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
