"""Features of square pieces turn with them, exactly."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.network.encoders.image import (
    GroupConvolution,
    ImageBackbone,
    ImageEncoder,
    LiftingConvolution,
)

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
def test_turning_a_piece_shifts_its_slots(backbone: ImageBackbone, size: int) -> None:
    encoder, pixels = ImageEncoder(backbone, "equivariant", 12), pieces(size)
    slots = encoder(pixels)
    assert slots.shape == (3, 4, 12)
    torch.testing.assert_close(encoder(clockwise(pixels)), slots.roll(-1, 1), rtol=1e-5, atol=1e-5)
    # The promise would be empty if all slots or all pieces were alike.
    assert (slots - slots.roll(1, 1)).abs().mean() > 1e-3
    assert (slots - slots.roll(1, 0)).abs().mean() > 1e-3


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("size", SIZES)
@torch.no_grad()
def test_the_invariant_variant_does_not_see_turns(backbone: ImageBackbone, size: int) -> None:
    encoder, pixels = ImageEncoder(backbone, "invariant", 12), pieces(size)
    slots = encoder(pixels)
    torch.testing.assert_close(encoder(clockwise(pixels)), slots, rtol=1e-5, atol=1e-5)
    assert torch.equal(slots[:, :1].expand_as(slots), slots)
    assert (slots - slots.roll(1, 0)).abs().mean() > 1e-3


@torch.no_grad()
def test_the_plain_variant_is_neither() -> None:
    encoder, pixels = ImageEncoder("light", "plain", 12), pieces(32)
    slots, turned = encoder(pixels), encoder(clockwise(pixels))
    assert slots.shape == (3, 4, 12)
    for shift in range(4):
        assert (turned - slots.roll(shift, 1)).abs().mean() > 1e-3


@pytest.mark.parametrize("backbone", BACKBONES)
@torch.no_grad()
def test_pieces_are_encoded_one_by_one(backbone: ImageBackbone) -> None:
    encoder, pixels = ImageEncoder(backbone, "equivariant", 12), pieces(32)
    torch.testing.assert_close(encoder(pixels)[1:2], encoder(pixels[1:2]), rtol=1e-5, atol=1e-5)


def turned(maps: Tensor) -> Tensor:
    """What turning the picture clockwise does to maps with a turn axis."""
    return clockwise(maps.roll(-1, 2))


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("size", [6, 7])
def test_lifting(kernel: int, size: int) -> None:
    layer, pixels = LiftingConvolution(3, 5, kernel), random(2, 3, size, size)
    maps = layer(pixels)
    assert maps.shape == (2, 5, 4, size, size)
    torch.testing.assert_close(layer(clockwise(pixels)), turned(maps), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("size", [6, 7])
def test_convolution(kernel: int, size: int) -> None:
    layer, maps = GroupConvolution(3, 5, kernel), random(2, 3, 4, size, size)
    assert layer(maps).shape == (2, 5, 4, size, size)
    torch.testing.assert_close(layer(turned(maps)), turned(layer(maps)), rtol=1e-5, atol=1e-5)


def test_the_four_slots_of_a_lifted_picture_are_its_four_turns() -> None:
    """Slot k at the middle is the filter's answer to the picture turned on by k."""
    layer, pixels = LiftingConvolution(3, 5), random(1, 3, 7, 7)
    middle = layer(pixels)[0, :, :, 3, 3]
    for turn in range(4):
        seen = torch.rot90(pixels, -turn, (-2, -1))
        torch.testing.assert_close(layer(seen)[0, :, 0, 3, 3], middle[:, turn], rtol=1e-5, atol=1e-5)
