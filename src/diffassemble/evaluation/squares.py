"""Puzzles of square pieces as a benchmark: cut from pictures as the paper does it, scored by cells and turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.core import Board, InputError, Poses, Puzzle, Step
from diffassemble.core.limits import check_memory
from diffassemble.core.seeds import random_stream
from diffassemble.evaluation.metrics import (
    bootstrap_interval,
    direct_comparison,
    direct_comparison_free,
    neighbour_accuracy,
)
from diffassemble.evaluation.sweep import CUTTING, Case, Interval, Measured, peak_megabytes, refuse
from diffassemble.io.pictures import MOST_PIXELS, read_picture, to_image
from diffassemble.squares.cut import SMALLEST_PIECE, crop_to_board, cut_picture

# Bytes of memory for each pixel of a puzzle that is cut and put together.
_WHOLE = 60


@dataclass(frozen=True)
class PictureScore:
    """One puzzle: percent right as it stands, at the best turn of the whole, and of neighbour pairs."""

    accuracy: float
    accuracy_free: float
    neighbours: float
    perfect: bool
    seconds: float
    pieces: int


def score_placement(puzzle: Puzzle, poses: Poses, seconds: float) -> PictureScore:
    """How much of an answer is right."""
    if puzzle.truth is None:
        raise InputError("a puzzle without its truth can't be scored; cut one from a picture")
    board = puzzle.board
    placement = (board, *board.snap(poses), *board.snap(puzzle.truth))
    free = direct_comparison_free(*placement)
    return PictureScore(
        accuracy=direct_comparison(*placement),
        accuracy_free=free,
        neighbours=neighbour_accuracy(*placement),
        perfect=free == 100.0,
        seconds=seconds,
        pieces=len(puzzle),
    )


@dataclass(frozen=True)
class PictureRow:
    """Means over puzzles; accuracies, neighbours and perfect in percent.

    `missing` is the share of pieces lost, `erode` the pixels lost at every side, `pieces` how many are given,
    `peak_mb` the highest memory of the process up to this row.
    """

    HEADINGS: ClassVar[tuple[str, ...]] = (
        *("solver", "puzzles", "count", "accuracy\nabsolute", "accuracy\norient.\nfree", "neigh-\nbours"),
        *("perfect", "cost"),
    )
    CAPTION: ClassVar[str] = (
        "Percent of pieces at the right place and turn: absolute as they stand, orientation free at the best turn "
        "of the whole picture; below each its 95 % interval over puzzles. Neighbours: percent of neighbouring pairs. "
        "Perfect: percent of puzzles, orientation free. Seconds per puzzle; most memory of the process so far."
    )

    solver: str
    data: str
    grid: str
    pieces: int
    missing: float
    erode: int
    puzzles: int
    accuracy: float
    accuracy_free: float
    neighbours: float
    perfect: float
    seconds_per_puzzle: float
    peak_mb: float
    seed: int

    def describe(self) -> str:
        """What the row was measured on."""
        damage = [f"{self.missing:.0%} missing"] if self.missing else []
        damage += [f"{self.erode} px eroded"] if self.erode else []
        return f"{self.data}\n{', '.join([self.grid, *damage])}"

    def cells(self, intervals: Mapping[str, Interval]) -> list[str]:
        """Two lines: accuracies over their intervals."""
        percents = []
        for name in ("accuracy", "accuracy_free"):
            low, high = intervals[name]
            percents.append(f"{getattr(self, name):.1f}\n{low:.1f}–{high:.1f}")
        cost = f"{self.seconds_per_puzzle:.2f} s\n{self.peak_mb:.0f} MB"
        right = *percents, f"{self.neighbours:.1f}", f"{self.perfect:.1f}"
        return [self.solver, self.describe(), str(self.puzzles), *right, cost]

    def groups(self) -> Mapping[tuple[str, str], Mapping[str, float]]:
        """Puzzles are not told apart."""
        return {}


@dataclass(frozen=True)
class PictureCell:
    """Pictures, the board that they are cut for, what the pieces lose, and the pixels of a piece's side before."""

    THINGS: ClassVar[str] = "puzzles"
    FIGURES: ClassVar[Mapping[str, str]] = {"accuracy_free": "pieces right at the best turn of the whole, %"}

    data: str
    pictures: Sequence[Path]
    board: Board
    missing: float = 0.0
    erode: int = 0
    size: int = 32

    @property
    def grid(self) -> str:
        return f"{self.board.rows}x{self.board.cols}"

    @property
    def usual_seeds(self) -> int:
        return 1

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
        check_memory(_WHOLE * pixels, f"{self.grid} pieces of {self.size} pixels a side", "pass a smaller size or grid")

    def small(self) -> PictureCell:
        """The first picture in nine pieces."""
        return PictureCell(self.data, self.pictures, Board(3, 3), size=self.size)

    def case(self, index: int, seed: int) -> Case:
        """Pieces of a picture, shuffled and turned."""
        picture = benchmark_picture(read_picture(self.pictures[index]), self.board, self.size)
        cutting = random_stream(seed, index, CUTTING)
        puzzle = cut_picture(picture, self.board, cutting, size=self.size, missing=self.missing, erode=self.erode)
        share = torch.full((len(puzzle),), 1 / self.board.cells)
        return Case(self.pictures[index].name, "", puzzle, puzzle.without_truth(), self.board.cells, share)

    def identity(self, index: int, seed: int) -> dict[str, str | int | float]:
        """All that a puzzle follows from."""
        name = "/".join(self.pictures[index].parts[-2:])
        damage = {"missing": self.missing, "erode": self.erode, "size": self.size}
        return {"picture": name, "index": index, "seed": seed, "grid": self.grid, **damage}

    def score(self, case: Case, step: Step, seconds: float) -> PictureScore:
        """How much of an answer is right."""
        return score_placement(case.puzzle, step.poses, seconds)

    def read_score(self, entry: dict[str, Any]) -> PictureScore:
        """A score that was written as JSON."""
        return PictureScore(**entry)

    def rows(self, solver: str, seed: int, draws: Sequence[Sequence[PictureScore]]) -> list[Measured]:
        """One row, with the intervals of its accuracies."""
        scores = [score for draw in draws for score in draw]
        row = PictureRow(
            *(solver, self.data, self.grid, scores[0].pieces, self.missing, self.erode, len(scores)),
            accuracy=fmean(score.accuracy for score in scores),
            accuracy_free=fmean(score.accuracy_free for score in scores),
            neighbours=fmean(score.neighbours for score in scores),
            perfect=fmean(100.0 * score.perfect for score in scores),
            seconds_per_puzzle=fmean(score.seconds for score in scores),
            peak_mb=round(peak_megabytes(), 1),
            seed=seed,
        )
        names = ("accuracy", "accuracy_free")
        return [Measured(row, {name: bootstrap_interval([getattr(one, name) for one in scores]) for name in names})]

    def rank(self, score: PictureScore) -> tuple[float, ...]:
        """By what is right at the best turn of the whole."""
        return (score.accuracy_free,)

    def words(self, score: PictureScore) -> str:
        """A score for people."""
        return f"{score.accuracy:.1f} % right, {score.accuracy_free:.1f} % orientation free, {score.seconds:.1f} s"


def benchmark_picture(picture: Float[Tensor, "3 H W"], board: Board, size: int) -> Float[Tensor, "3 height width"]:
    """Centre crop of the board's shape, resized (Lanczos) to `size` pixels a cell.

    The result has whole 8-bit colours, as a picture from a file has: finer shades would tell border solvers
    more than any photo can.
    """
    image = to_image(crop_to_board(picture, board))
    resized = image.resize((board.cols * size, board.rows * size), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(resized)).movedim(-1, 0).float() / 255
