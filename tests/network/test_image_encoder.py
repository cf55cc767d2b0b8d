"""Features of square pieces turn with them, exactly."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.network.encoders.image import ImageBackbone, ImageEncoder

SIZES = (28, 32, 45, 64)
BACKBONES: tuple[ImageBackbone, ...] = ("light", "resnet18")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def pieces(size: int, count: int = 3) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(size))


def clockwise(pixels: Tensor) -> Tensor:
    return torch.rot90(pixels, -1, (-2, -1))


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("size", SIZES)
@torch.no_grad()
def test_turning_a_piece_shifts_its_slots_or_is_not_seen(backbone: ImageBackbone, size: int) -> None:
    encoder, pixels = ImageEncoder(backbone, "equivariant", 12), pieces(size)
    slots = encoder(pixels)
    assert slots.shape == (3, 4, 12)
    torch.testing.assert_close(encoder(clockwise(pixels)), slots.roll(-1, 1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(encoder(pixels[1:2]), slots[1:2], rtol=1e-5, atol=1e-5)
    # The promise would be empty if all slots or all pieces were alike.
    assert (slots - slots.roll(1, 1)).abs().mean() > 1e-3
    assert (slots - slots.roll(1, 0)).abs().mean() > 1e-3
    blind = ImageEncoder(backbone, "invariant", 12)
    same = blind(pixels)
    torch.testing.assert_close(blind(clockwise(pixels)), same, rtol=1e-5, atol=1e-5)
    assert torch.equal(same[:, :1].expand_as(same), same)
    assert (same - same.roll(1, 0)).abs().mean() > 1e-3


@torch.no_grad()
def test_the_plain_variant_is_neither() -> None:
    encoder, pixels = ImageEncoder("light", "plain", 12), pieces(32)
    slots, turned = encoder(pixels), encoder(clockwise(pixels))
    assert slots.shape == (3, 4, 12)
    for shift in range(4):
        assert (turned - slots.roll(shift, 1)).abs().mean() > 1e-3
