"""The board of a puzzle that does not tell it."""

from __future__ import annotations

import math

import torch

from diffassemble.compatibility.image import image_mates
from diffassemble.geometry import Poses
from diffassemble.puzzle import Board, ImagePieces, Puzzle, Solver
from diffassemble.solvers.orientation import Uprighter
from diffassemble.solvers.placement import fit

STRETCH = 3.0


def candidate_boards(count: int) -> list[Board]:
    """Square and landscape boards, at most 3 : 1, that `count` pieces fill.

    If there is none, those that hold them and of which neither a row nor a column could be spared.
    """
    boards = [Board(rows, math.ceil(count / rows)) for rows in range(1, math.ceil(count**0.5) + 1)]
    shapely = [board for board in boards if board.rows <= board.cols <= STRETCH * board.rows]
    tight = [board for board in shapely if (board.rows - 1) * board.cols < count]
    return [board for board in tight if board.cells == count] or tight


def choose_board(pieces: ImagePieces, solver: Solver, seed: int, upright: Uprighter | None = None) -> Board:
    """Solve on every candidate board and keep the one whose placement realises most border evidence.

    Whether rows × cols or cols × rows is meant can't be told from borders: `upright` looks at the picture;
    without it the wider one is taken.
    """
    boards = candidate_boards(len(pieces))
    if len(boards) == 1 and upright is None:
        return boards[0]
    names = tuple(str(index) for index in range(len(pieces)))
    trials = [_try(Puzzle(pieces, board, names), solver, seed) for board in boards]
    puzzle, placed, _ = max(trials, key=lambda trial: trial[2])
    board = puzzle.board
    if upright is None or board.rows == board.cols or upright(puzzle, placed, (0, 1, 2, 3)) % 2 == 0:
        return board
    return Board(board.cols, board.rows)


def _try(puzzle: Puzzle, solver: Solver, seed: int) -> tuple[Puzzle, Poses, float]:
    """The puzzle, its answer, and the border evidence that the answer realises."""
    *_, last = solver.steps(puzzle, torch.Generator().manual_seed(seed))
    pitch = puzzle.board.pitch
    return puzzle, last.poses, float(fit(last.poses, image_mates(puzzle.pixels, pitch), pitch))
