"""Small jigsaw puzzles with tabs, cut once a run."""

from __future__ import annotations

import pytest
import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Puzzle
from diffassemble.outlines.cut import cut_shapes


@pytest.fixture(scope="session")
def jigsaw() -> Puzzle:
    """Five columns and four rows with tabs, pieces about 60 pixels across, turned at random."""
    return cut_shapes(sample(), "tabs", 20, torch.Generator().manual_seed(0), size=60)


def sample() -> Tensor:
    """A sample picture."""
    return torch.from_numpy(data.coffee()).movedim(-1, 0).float() / 255
