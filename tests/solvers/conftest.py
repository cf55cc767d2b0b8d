"""Puzzles, and those who know their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import skimage.data
import torch
from torch import Tensor

from diffassemble.core import Board, Puzzle, Step
from diffassemble.network.batch import PuzzleBatch
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Condition, Denoiser
from diffassemble.squares.cut import cut_picture


@pytest.fixture
def cut() -> Callable[..., Puzzle]:
    """Cut one of the photos that scikit-image brings with it."""

    def make(rows: int, cols: int, missing: float = 0.0, seed: int = 0, name: str = "coffee") -> Puzzle:
        picture = torch.from_numpy(getattr(skimage.data, name)()).movedim(-1, 0).float() / 255
        generator = torch.Generator().manual_seed(seed)
        return cut_picture(picture, Board(rows, cols), generator, size=16, missing=missing)

    return make


class Oracle(Denoiser):
    """Predicts the truth whatever the noise; sample k is turned as a whole by `wholes[k]` quarter turns."""

    def __init__(self, puzzle: Puzzle, wholes: tuple[int, ...] = (0,), times: int = 300) -> None:
        super().__init__(ModelConfig(features=4, width=16, layers=1, heads=2, pose_width=8, time_width=8, times=times))
        assert puzzle.truth is not None
        self.puzzle = puzzle
        placements = [puzzle.board.turned(*puzzle.board.snap(puzzle.truth), by) for by in wholes]
        self.answers = torch.stack([self.space.to_vector(board.poses(*rest)) for board, *rest in placements], 1)

    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Condition:
        same = batch.content[:, None] == self.puzzle.pieces.pixels[None]
        self.listed = same.flatten(2).all(-1).int().argmax(1)
        return super().condition(batch, generator)

    def forward(self, noisy: Tensor, time: Tensor, condition: Condition) -> Tensor:
        return self.answers[self.listed].expand_as(noisy)


@pytest.fixture
def oracle() -> type[Oracle]:
    return Oracle


@dataclass(frozen=True)
class ReadingOrder:
    """Knows the pieces' order and turns, and lays them row by row on whatever board it gets."""

    puzzle: Puzzle
    name: str = "reading order"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        assert self.puzzle.truth is not None
        cells, turns = self.puzzle.board.snap(self.puzzle.truth)
        yield Step(puzzle.board.poses(cells.argsort().argsort(), turns), 1.0)


@pytest.fixture
def reading_order() -> type[ReadingOrder]:
    return ReadingOrder
