"""Worn pieces are still the same pieces."""

from __future__ import annotations

import pytest
import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Board
from diffassemble.squares.cut import tiles
from diffassemble.training.pictures import blur, compress, wear


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def pieces() -> Tensor:
    """Pieces of 28 pixels of a photo."""
    picture = torch.from_numpy(data.chelsea()).movedim(-1, 0).float() / 255
    return tiles(picture[:, :280, :420], Board(10, 15))[::10]


def test_how_often_pieces_are_worn(pieces: Tensor) -> None:
    assert torch.equal(wear(pieces, 0.0, generator(0)), pieces)
    worn = [wear(pieces, 1.0, generator(seed)) for seed in range(24)]
    untouched = sum(torch.equal(some, pieces) for some in worn)
    assert 0 < untouched < 12  # an eighth, on the average
    assert all(some.shape == pieces.shape and some.min() >= 0 and some.max() <= 1 for some in worn)
    assert max(float((some - pieces).abs().mean()) for some in worn) < 0.1


def test_wear_follows_from_the_generator(pieces: Tensor) -> None:
    assert torch.equal(wear(pieces, 1.0, generator(3)), wear(pieces, 1.0, generator(3)))


@pytest.mark.parametrize("size", [5, 16, 28])
def test_each_piece_is_compressed_for_itself(pieces: Tensor, size: int) -> None:
    cut = pieces[..., :size, :size]
    together = compress(cut, 60)
    assert torch.equal(together, torch.cat([compress(piece, 60) for piece in cut.split(1)]))
    assert 0 < (together - cut).abs().mean() < 0.05
    assert (compress(cut, 95) - cut).abs().mean() < (together - cut).abs().mean()


def test_blur_keeps_flat_pieces_and_softens_others(pieces: Tensor) -> None:
    flat = torch.full((2, 3, 6, 6), 0.3)
    torch.testing.assert_close(blur(flat, 0.2), flat)
    torch.testing.assert_close(blur(pieces, 0.0), pieces)
    assert blur(pieces, 0.25).diff(dim=-1).abs().mean() < pieces.diff(dim=-1).abs().mean()
