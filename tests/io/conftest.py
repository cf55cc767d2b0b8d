"""A picture and a puzzle to write."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.squares.cut import cut_picture


@pytest.fixture
def picture() -> Tensor:
    """Random 8-bit colours."""
    return torch.randint(0, 256, (3, 24, 32), generator=torch.Generator().manual_seed(0)).float() / 255


@pytest.fixture
def puzzle(picture: Tensor) -> Puzzle:
    """A shuffled and turned 3×4 puzzle of 8-pixel pieces that fill the picture."""
    return cut_picture(picture, Board(3, 4), torch.Generator().manual_seed(1))
