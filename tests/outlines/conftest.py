"""Small jigsaw puzzles with tabs, cut once a run, and pieces that lie on a table to be photographed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from skimage import data
from torch import Tensor

from diffassemble.core import Puzzle
from diffassemble.outlines.cut import cut_shapes


@pytest.fixture(scope="session")
def jigsaw() -> Puzzle:
    """Five columns and four rows with tabs, pieces about 60 pixels across, turned at random."""
    return cut_shapes(coffee(), "tabs", 20, torch.Generator().manual_seed(0), size=60)


@pytest.fixture(scope="session")
def sample() -> Tensor:
    """A sample picture."""
    return coffee()


def coffee() -> Tensor:
    """A picture that comes with scikit-image."""
    return torch.from_numpy(data.coffee()).movedim(-1, 0).float() / 255


def on_a_table(
    puzzle: Puzzle, table: tuple[int, int, int] = (64, 96, 152), columns: int = 0, dimmed: float = 0.15
) -> Image.Image:
    """The pieces as they are listed, in rows from the top left, with light from the left, grain, and soft edges."""
    textures = puzzle.outlines.textures
    pitch = int(1.06 * max(max(texture.shape[1:]) for texture in textures)) + 24
    columns = columns or math.ceil(math.sqrt(1.3 * len(textures)))
    rows = math.ceil(len(textures) / columns)
    whole = Image.new("RGB", (columns * pitch + 24, rows * pitch + 24), table)
    for index, texture in enumerate(textures):
        piece = Image.fromarray(texture.movedim(0, -1).contiguous().numpy())
        row, column = divmod(index, columns)
        left, top = ((pitch - length) // 2 + 12 for length in piece.size)
        whole.paste(piece, (column * pitch + left, row * pitch + top), piece)
    seen = np.asarray(whole.filter(ImageFilter.GaussianBlur(0.5)), float)
    light = 1 - dimmed * np.arange(whole.width)[None, :, None] / whole.width
    noisy = seen * light + np.random.default_rng(0).normal(0, 1.5, seen.shape)
    return Image.fromarray(noisy.clip(0, 255).round().astype(np.uint8))


@pytest.fixture(scope="session")
def lay() -> Callable[..., Image.Image]:
    """What lays the pieces of a puzzle on a table and photographs them."""
    return on_a_table
