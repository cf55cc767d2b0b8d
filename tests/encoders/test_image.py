"""Features turn with the piece: exactly, at any piece size; the ablations' variants do not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.core import InputError, turn_pixels
from diffassemble.network.encoders.image import ImageBackbone, ImageEncoder, Patches

SIZES = (28, 32, 45, 64)
BACKBONES: tuple[ImageBackbone, ...] = ("light", "resnet18")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def pieces(size: int, count: int = 3) -> Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(size))


def clockwise(pixels: Tensor) -> Tensor:
    return turn_pixels(pixels, torch.ones(len(pixels), dtype=torch.long))


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


def test_equivariance_is_of_the_form_and_not_of_the_start() -> None:
    """It holds for any weights, so also after training."""
    encoder, pixels = ImageEncoder("light", "equivariant", 8), pieces(32)
    optimizer = torch.optim.SGD(encoder.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        encoder(pixels).square().sum().backward()
        optimizer.step()
    slots = encoder(pixels)
    torch.testing.assert_close(encoder(clockwise(pixels)), slots.roll(-1, 1), rtol=1e-5, atol=1e-5)


def test_a_plain_resnet_is_refused() -> None:
    with pytest.raises(InputError, match="use backbone 'light'"):
        ImageEncoder("resnet18", "plain", 8)


@torch.no_grad()
def test_patches_are_a_strided_convolution() -> None:
    layer, maps = Patches(4, 3, 5), torch.rand(2, 8, 12, 3)
    kernel = layer.linear.weight.view(5, 4, 4, 3).permute(0, 3, 1, 2)
    expected = torch.nn.functional.conv2d(maps.permute(0, 3, 1, 2), kernel, layer.linear.bias, stride=4)
    torch.testing.assert_close(layer(maps).permute(0, 3, 1, 2), expected, rtol=1e-5, atol=1e-5)
