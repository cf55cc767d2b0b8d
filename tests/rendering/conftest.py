"""Puzzles cut from a real picture that ships with scikit-image, and assemblies of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import skimage.data
import torch

from diffassemble.cutting.image import cut_picture
from diffassemble.geometry import Poses
from diffassemble.puzzle import Assembly, Board, Puzzle


@pytest.fixture(scope="session")
def cat() -> torch.Tensor:
    """A photo, (3, 300, 451)."""
    return torch.from_numpy(skimage.data.cat().copy()).movedim(-1, 0).float() / 255


@pytest.fixture
def make_puzzle(cat: torch.Tensor) -> Callable[..., Puzzle]:
    def make(rows: int, cols: int, **options: float) -> Puzzle:
        generator = torch.Generator().manual_seed(0)
        return cut_picture(cat, Board(rows, cols), generator, size=16, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def solved() -> Callable[..., Assembly]:
    """The true assembly of a puzzle, come to by way of the given history."""

    def make(puzzle: Puzzle, history: tuple[Poses, ...] = ()) -> Assembly:
        assert puzzle.truth is not None
        confidence = torch.linspace(0, 1, len(puzzle))
        return Assembly(puzzle.without_truth(), puzzle.truth, confidence, history, "oracle", 0.1)

    return make
