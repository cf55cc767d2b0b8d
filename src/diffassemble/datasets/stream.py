"""An endless stream of puzzles in which every puzzle is a pure function of (seed, step, number).

So a resumed run sees what the uninterrupted one would have seen, and several processes can share out one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from diffassemble.cutting.image import cut_picture
from diffassemble.datasets.augmentation import mirror_and_relight, random_crop, uniform
from diffassemble.datasets.config import DataConfig
from diffassemble.datasets.store import PictureStore
from diffassemble.puzzle import Board, Puzzle

SMALLEST_SIZE = 16
"""fewest pixels a side that pieces are cut with"""


def seeded(*numbers: int) -> torch.Generator:
    """A generator for this tuple of numbers and no other."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = ((state ^ (number + 0x632BE59BD9B4E019)) * 0xBF58476D1CE4E5B9) % 2**64
        state ^= state >> 29
    return torch.Generator().manual_seed(state % 2**63)


@dataclass(frozen=True)
class Portion:
    """One process's part of a batch.

    `first` is the number of its first puzzle in the whole batch. The mean over processes of `weight` times the
    mean over the own puzzles is the mean over the whole batch, also where it can't be shared out evenly. All pieces
    lost `erode` pixels at every side.
    """

    puzzles: list[Puzzle]
    first: int
    weight: float
    erode: int = 0


class PuzzleStream:
    """Batches of puzzles of one grid, one missing share and one erosion each."""

    def __init__(self, store: PictureStore, config: DataConfig, pieces: int, seed: int) -> None:
        self.store, self.config, self.pieces, self.seed = store, config, pieces, seed

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""
        generator = seeded(self.seed, step)
        board = self._board(generator)
        config = self.config
        whole = uniform(0.0, 1.0, generator) < config.whole_share
        missing = 0.0 if whole else uniform(0.0, config.missing, generator)
        worn = uniform(0.0, 1.0, generator) < config.erode_share and config.erode > 0
        erode = int(torch.randint(1, config.erode + 1, (), generator=generator)) if worn else 0
        enlarge = uniform(0.0, 1.0, generator) < 0.5
        numbers, weight = share_out(max(1, self.pieces // board.cells), rank, world)
        puzzles = [self._puzzle(step, number, board, missing, erode, enlarge) for number in numbers]
        return Portion(puzzles, numbers.start, weight, erode)

    def _board(self, generator: torch.Generator) -> Board:
        if uniform(0.0, 1.0, generator) < self.config.favourite_share:
            return Board(self.config.favourite, self.config.favourite)
        low, high = self.config.grids
        rows, cols = (int(x) for x in torch.randint(low, high + 1, (2,), generator=generator))
        if uniform(0.0, 1.0, generator) < 0.5:
            cols = rows
        return Board(rows, cols)

    def _puzzle(self, step: int, number: int, board: Board, missing: float, erode: int, enlarge: bool) -> Puzzle:
        generator = seeded(self.seed, step, number)
        picture = random_crop(self.store.draw(generator), board, self.config.smallest_crop, generator)
        picture = mirror_and_relight(picture, self.config.jitter, generator)
        # Pieces of 32 pixels as in the paper, or, for fine grids, sharp ones of fewer pixels.
        size = 32 if enlarge else max(SMALLEST_SIZE, 32 * 6 // max(6, board.rows, board.cols))
        return cut_picture(picture, board, generator, size=size, missing=missing, erode=erode)


def share_out(total: int, rank: int, world: int) -> tuple[range, float]:
    """The numbers among 0 … total − 1 that fall to process `rank` of `world`, and their weight in the mean.

    A process for which nothing is left gets the first one at no weight, since all must take part in a step.
    """
    first, end = (-(-total * place // world) for place in (rank, rank + 1))
    if first == end:
        return range(1), 0.0
    return range(first, end), (end - first) * world / total
