"""The board of a puzzle that does not tell it."""

from __future__ import annotations

from dataclasses import replace

import torch

from diffassemble.compatibility.image import image_mates
from diffassemble.puzzle import Board, ImagePieces, Puzzle, Solver
from diffassemble.solvers.placement import fit

STRETCH = 3.0


def candidate_boards(count: int) -> list[Board]:
    """Boards that `count` pieces fill, landscape or square, at most 3 : 1; else the smallest that hold them."""
    cells = count
    while True:
        boards = [
            Board(rows, cells // rows) for rows in range(1, int(cells**0.5) + 1) if cells % rows == 0
        ]
        slender = [board for board in boards if board.cols <= STRETCH * board.rows]
        if slender or cells > 4 * count:
            return slender or boards
        cells += 1


def choose_board(pieces: ImagePieces, solver: Solver, seed: int) -> Board:
    """Solve on every candidate board and keep the one whose placement realises most border evidence.

    Which of rows × cols and cols × rows is meant can't be told from borders: the wider one is taken.
    """
    boards = candidate_boards(len(pieces))
    if len(boards) == 1:
        return boards[0]
    names = tuple(str(index) for index in range(len(pieces)))
    fits = []
    for board in boards:
        puzzle = Puzzle(pieces, board, names)
        *_, last = solver.steps(replace(puzzle, truth=None), torch.Generator().manual_seed(seed))
        fits.append(float(fit(last.poses, image_mates(pieces.pixels, board.pitch), board.pitch)))
    return boards[max(range(len(boards)), key=fits.__getitem__)]
