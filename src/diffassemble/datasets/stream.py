"""An endless stream of puzzles in which every puzzle is a pure function of (seed, step, index).

So a resumed run sees what the uninterrupted one would have seen, and several processes can share out one batch.
"""

from __future__ import annotations

import torch

from diffassemble.cutting.image import cut_picture
from diffassemble.datasets.augmentation import mirror_and_relight, random_crop, uniform
from diffassemble.datasets.config import DataConfig
from diffassemble.datasets.store import PictureStore
from diffassemble.puzzle import Board, Puzzle


def seeded(*numbers: int) -> torch.Generator:
    """A generator for this tuple of numbers and no other."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = ((state ^ (number + 0x632BE59BD9B4E019)) * 0xBF58476D1CE4E5B9) % 2**64
        state ^= state >> 29
    return torch.Generator().manual_seed(state % 2**63)


class PuzzleStream:
    """Batches of puzzles of one grid, one missing share and one erosion each."""

    def __init__(self, store: PictureStore, config: DataConfig, pieces: int, seed: int) -> None:
        self.store, self.config, self.pieces, self.seed = store, config, pieces, seed

    def batch(self, step: int, rank: int = 0, world: int = 1) -> tuple[list[Puzzle], int]:
        """This process's share of the batch at `step`, and the index of its first puzzle in the whole batch."""
        generator = seeded(self.seed, step)
        board = self._board(generator)
        config = self.config
        whole = uniform(0, 1, generator) < config.whole_share
        missing = 0.0 if whole else uniform(0, config.missing, generator)
        worn = uniform(0, 1, generator) < config.erode_share
        erode = int(torch.randint(1, config.erode + 1, (), generator=generator)) if worn else 0
        own = max(1, self.pieces // (board.cells * world))
        first = rank * own
        indices = range(first, first + own)
        enlarge = uniform(0, 1, generator) < 0.5
        return [self._puzzle(step, i, board, missing, erode, enlarge) for i in indices], first

    def _board(self, generator: torch.Generator) -> Board:
        if uniform(0, 1, generator) < self.config.favourite_share:
            return Board(self.config.favourite, self.config.favourite)
        low, high = self.config.grids
        rows, cols = (int(x) for x in torch.randint(low, high + 1, (2,), generator=generator))
        if uniform(0, 1, generator) < 0.5:
            cols = rows
        return Board(rows, cols)

    def _puzzle(self, step: int, index: int, board: Board, missing: float, erode: int, enlarge: bool) -> Puzzle:
        generator = seeded(self.seed, step, index)
        picture = random_crop(self.store.draw(generator), board, self.config.smallest_crop, generator)
        picture = mirror_and_relight(picture, self.config.jitter, generator)
        # Pieces of 32 pixels as in the paper, or, for fine grids, sharp ones of fewer pixels.
        size = 32 if enlarge else max(16, 32 * 6 // max(6, board.rows, board.cols))
        return cut_picture(picture, board, generator, size=size, missing=missing, erode=erode)
