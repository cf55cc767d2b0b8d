"""Every layer commutes with quarter turns: new slot k is the turned old slot k + 1."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from diffassemble.network.encoders.image import GroupConvolution, GroupNorm, LiftingConvolution, ResidualBlock, halve


def clockwise(pixels: Tensor) -> Tensor:
    return torch.rot90(pixels, -1, (-2, -1))


def turned(maps: Tensor) -> Tensor:
    """What turning the picture clockwise does to maps with a turn axis."""
    return clockwise(maps.roll(-1, 2))


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


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


def test_norm() -> None:
    layer, maps = GroupNorm(3), 5 + 2 * random(2, 3, 4, 6, 6)
    normal = layer(maps)
    torch.testing.assert_close(normal.mean((1, 2, 3, 4)), torch.zeros(2), rtol=0, atol=1e-5)
    torch.testing.assert_close(normal.var((1, 2, 3, 4), unbiased=False), torch.ones(2), rtol=0, atol=1e-3)
    nn.init.normal_(layer.scale)
    nn.init.normal_(layer.shift)
    torch.testing.assert_close(layer(turned(maps)), turned(layer(maps)), rtol=1e-5, atol=1e-5)
    # Other pieces of the batch are not seen.
    torch.testing.assert_close(layer(maps[:1]), layer(maps)[:1])


def test_halving_takes_means() -> None:
    maps = random(2, 3, 4, 6, 6)
    half = halve(maps)
    assert half.shape == (2, 3, 4, 3, 3)
    torch.testing.assert_close(half[1, 2, 3, 0, 1], maps[1, 2, 3, :2, 2:4].mean())
    torch.testing.assert_close(halve(turned(maps)), turned(half), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("channels_out", [3, 5])
@pytest.mark.parametrize("shrink", [False, True])
def test_residual_block(channels_out: int, shrink: bool) -> None:
    block, maps = ResidualBlock(3, channels_out, shrink), random(2, 3, 4, 8, 8)
    out = block(maps)
    assert out.shape == (2, channels_out, 4, 4 if shrink else 8, 4 if shrink else 8)
    torch.testing.assert_close(block(turned(maps)), turned(out), rtol=1e-5, atol=1e-5)
