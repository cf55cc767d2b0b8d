"""The puzzles that solvers are measured on: the same for every solver, by the protocol of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.core.seeds import random_stream
from diffassemble.files.pictures import read_picture, to_image
from diffassemble.squares.cut import SMALLEST_PIECE, crop_to_board, cut_picture


def benchmark_puzzles(
    pictures: Sequence[Path],
    board: Board,
    *,
    missing: float = 0.0,
    erode: int = 0,
    limit: int | None = None,
    puzzles: int | None = None,
    seed: int = 0,
    size: int = 32,
) -> Iterator[tuple[Puzzle, torch.Generator]]:
    """Shuffled and turned puzzles, truth included, each with a generator for whoever solves it.

    Both follow from the seed and the picture's place in the list. `limit` takes that many pictures, evenly
    spread over the list, since neighbours in a sorted folder often come from one source. Where they are fewer
    than `puzzles`, they are cut again with the seeds `seed` + 1, `seed` + 2, … until there are as many.
    """
    drawn = Draws(pictures, board, missing, erode, limit, puzzles, seed, size)
    drawn.check()
    for number in range(len(drawn)):
        yield drawn.puzzle(number)


@dataclass(frozen=True)
class Draws:
    """The puzzles of `benchmark_puzzles`, of which any can be made without the others."""

    pictures: Sequence[Path]
    board: Board
    missing: float = 0.0
    erode: int = 0
    limit: int | None = None
    puzzles: int | None = None
    seed: int = 0
    size: int = 32

    def check(self) -> None:
        """Refuse what no puzzles can be made of."""
        check_wishes(
            self.pictures,
            missing=self.missing,
            erode=self.erode,
            limit=self.limit,
            puzzles=self.puzzles,
            seed=self.seed,
            size=self.size,
        )

    def __len__(self) -> int:
        return puzzle_count(len(self.pictures), self.limit, self.puzzles)

    def puzzle(self, number: int) -> tuple[Puzzle, torch.Generator]:
        """A puzzle, truth included, and a generator for whoever solves it."""
        further, index = self._draw(number)
        picture = benchmark_picture(read_picture(self.pictures[index]), self.board, self.size)
        cutting, solving = (random_stream(self.seed + further, index, purpose) for purpose in (0, 1))
        cut = cut_picture(picture, self.board, cutting, size=self.size, missing=self.missing, erode=self.erode)
        return cut, solving

    def identity(self, number: int) -> dict[str, str | int | float]:
        """All that a puzzle follows from."""
        further, index = self._draw(number)
        grid = f"{self.board.rows}x{self.board.cols}"
        damage = {"missing": self.missing, "erode": self.erode, "size": self.size}
        picture = "/".join(self.pictures[index].parts[-2:])
        return {"picture": picture, "index": index, "seed": self.seed + further, "grid": grid, **damage}

    def _draw(self, number: int) -> tuple[int, int]:
        return next(islice(_draws(len(self.pictures), self.limit, self.puzzles), number, None))


def puzzle_count(pictures: int, limit: int | None = None, puzzles: int | None = None) -> int:
    """How many puzzles that many pictures give."""
    return max(min(limit or pictures, pictures), puzzles or 0)


def benchmark_picture(picture: Float[Tensor, "3 H W"], board: Board, size: int) -> Float[Tensor, "3 height width"]:
    """Centre crop of the board's shape, resized (Lanczos) to `size` pixels a cell.

    The result has whole 8-bit colours, as a picture from a file has: finer shades would tell border solvers
    more than any photo can.
    """
    image = to_image(crop_to_board(picture, board))
    resized = image.resize((board.cols * size, board.rows * size), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(resized)).movedim(-1, 0).float() / 255


def _draws(pictures: int, limit: int | None, puzzles: int | None) -> Iterator[tuple[int, int]]:
    """How many seeds further, and which picture: all that are taken, then the same again."""
    taken = spread(range(pictures), limit or pictures)
    left = puzzle_count(pictures, limit, puzzles)
    for further in count():
        for index in spread(taken, left):
            yield further, index
        left -= len(taken)
        if left <= 0:
            return


def spread(items: Sequence[int], most: int) -> Sequence[int]:
    """Up to `most` of the items, evenly spread over them."""
    number = min(most, len(items))
    return [items[position * len(items) // number] for position in range(number)]


def check_wishes(
    pictures: Sequence[Path],
    *,
    missing: float,
    erode: int,
    limit: int | None,
    puzzles: int | None,
    seed: int,
    size: int,
) -> None:
    """Refuse what no puzzles can be made of."""
    if not pictures:
        raise InputError("there are no pictures to evaluate on; pass a folder that holds some")
    if limit is not None and limit < 1:
        raise InputError(f"limit {limit} leaves no puzzles; pass a limit of at least 1")
    if puzzles is not None and puzzles < 1:
        raise InputError(f"puzzles {puzzles} is below 1; pass how many puzzles there must be at least, such as 100")
    if not 0 <= missing < 1:
        raise InputError(f"missing {missing} is not a share of the pieces; pass 0 or more and less than 1")
    if erode < 0:
        raise InputError(f"erode {erode} is below 0; pass the pixels lost at every side, such as 2")
    if size - 2 * erode < SMALLEST_PIECE:
        raise InputError(
            f"pieces of {size} pixels, less {erode} at every side, are under {SMALLEST_PIECE} pixels; "
            "pass a larger size or less erosion"
        )
    if seed < 0:
        raise InputError(f"seed {seed} is below 0; pass 0 or more")
