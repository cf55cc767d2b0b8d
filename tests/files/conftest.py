"""Pictures, fragments and puzzles to write, and ways to be denied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

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


@pytest.fixture
def denied() -> Callable[[Path], AbstractContextManager[None]]:
    """A block in which a folder may be neither read nor written, even if root runs the tests."""

    @contextmanager
    def block(folder: Path) -> Iterator[None]:
        user = os.geteuid()
        folder.chmod(0)
        if user == 0:
            os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(user)
            folder.chmod(0o755)

    return block
