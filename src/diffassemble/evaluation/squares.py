"""Puzzles of square pieces as a benchmark: cut from pictures as the paper does it, scored by cells and turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.core.limits import check_memory
from diffassemble.core.placements import Placements
from diffassemble.core.seeds import random_stream
from diffassemble.evaluation import metrics
from diffassemble.evaluation.rows import Score
from diffassemble.evaluation.sweep import CUTTING, Case, Cell, Layout, refuse
from diffassemble.io.pictures import MOST_PIXELS, read_picture, to_image
from diffassemble.squares.cut import SMALLEST_PIECE, crop_to_board, cut_picture


def score_placement(puzzle: Puzzle, found: Placements, seconds: float) -> Score:
    """Percent of pieces right as they stand and at the best turn of the whole, and of neighbour pairs right."""
    if puzzle.truth is None:
        raise InputError("a puzzle without its truth can't be scored; cut one from a picture")
    board = puzzle.board
    placement = (*board.snap(found.poses), *board.snap(puzzle.truth))
    free = metrics.direct_comparison_free(board, *placement)
    figures = {
        "accuracy": metrics.direct_comparison(board, *placement),
        "accuracy_free": free,
        "neighbours": metrics.neighbour_accuracy(board, *placement),
        "perfect": 100.0 * (free == 100),
    }
    right = metrics.placed_right(board, *placement, wholes=board.fitting_turns())
    sure = metrics.confirmed(
        found, lambda some: metrics.board_pairs_agree(board, *(one[some] for one in placement)), right
    )
    return Score(len(puzzle), figures, seconds, *sure)


@dataclass(frozen=True)
class PictureCell(Cell):
    """Pictures, the board that they are cut for, what the pieces lose, and the pixels of a piece's side before."""

    LAYOUT: ClassVar[Layout] = Layout(
        things="puzzles",
        columns=(
            ("accuracy\nabsolute", "{accuracy:.1f}\n{accuracy_low:.1f}–{accuracy_high:.1f}"),
            ("accuracy\norient.\nfree", "{accuracy_free:.1f}\n{accuracy_free_low:.1f}–{accuracy_free_high:.1f}"),
            ("neighb.\nperfect", "{neighbours:.1f}\n{perfect:.1f}"),
        ),
        caption="Percent of pieces at the right place and turn: absolute as they stand, orientation free at the best "
        "turn of the whole picture; below each its 95 % interval over puzzles. Neighbours: percent of neighbouring "
        "pairs. Perfect: percent of puzzles, orientation free.",
        drawn={"accuracy_free": "pieces right at the best turn of the whole, %"},
        rank=("accuracy_free",),
    )

    CONDITIONS: ClassVar[dict[str, str]] = {
        "grid": "{}",
        "missing": "{:.0%} missing",
        "erode": "{} px eroded",
    }
    usual_seeds = 1
    views = ("",)

    data: str
    pictures: Sequence[Path]
    board: Board
    missing: float = 0.0
    erode: int = 0
    size: int = 32

    @property
    def grid(self) -> str:
        return f"{self.board.rows}x{self.board.cols}"

    def __len__(self) -> int:
        return len(self.pictures)

    def check(self) -> None:
        """Refuse what no puzzles can be cut of."""
        small = f"pieces of {self.size} pixels, less {self.erode} at every side, are under {SMALLEST_PIECE} pixels"
        refuse("there are no pictures to evaluate on; pass a folder that holds some", not self.pictures)
        refuse(f"erode {self.erode} is below 0; pass the pixels lost at every side, such as 2", self.erode < 0)
        refuse(f"{small}; pass a larger size or less erosion", self.size - 2 * self.erode < SMALLEST_PIECE)
        pixels = self.board.cells * self.size**2
        large = f"{self.grid} pieces of {self.size} pixels a side have over {MOST_PIXELS // 10**6} megapixels"
        refuse(f"{large}; pass a smaller size or grid", pixels > MOST_PIXELS)
        memory = 60 * pixels  # bytes of cutting a puzzle and putting it together
        check_memory(memory, f"{self.grid} pieces of {self.size} pixels a side", "pass a smaller size or grid")

    def case(self, index: int, seed: int) -> Case:
        """Pieces of a picture, shuffled and turned."""
        picture = benchmark_picture(read_picture(self.pictures[index]), self.board, self.size)
        cutting = random_stream(seed, index, CUTTING)
        puzzle = cut_picture(picture, self.board, cutting, size=self.size, missing=self.missing, erode=self.erode)
        share = torch.full((len(puzzle),), 1 / self.board.cells)
        return Case(self.pictures[index].name, "", puzzle, puzzle.without_truth(), self.board.cells, share)

    def identity(self, index: int, seed: int) -> dict[str, str | int | float]:
        """All that a puzzle depends on."""
        name = "/".join(self.pictures[index].parts[-2:])
        damage = {"missing": self.missing, "erode": self.erode, "size": self.size}
        return {"picture": name, "index": index, "seed": seed, "grid": self.grid, **damage}

    def score(self, case: Case, found: Placements, seconds: float) -> dict[str, Score]:
        """How much of an answer is right."""
        return {"": score_placement(case.puzzle, found, seconds)}


def benchmark_picture(picture: Float[Tensor, "3 H W"], board: Board, size: int) -> Float[Tensor, "3 height width"]:
    """Centre crop of the board's shape, resized (Lanczos) to `size` pixels a cell.

    The result has whole 8-bit colours, as a picture from a file has: finer shades would help border solvers.
    """
    image = to_image(crop_to_board(picture, board))
    resized = image.resize((board.cols * size, board.rows * size), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(resized)).movedim(-1, 0).float() / 255
