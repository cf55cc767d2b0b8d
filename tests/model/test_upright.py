"""Turning a picture shifts the logits; the network can learn which way is up; forbidden turns are never given."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from diffassemble.squares.upright import Upright, UprightConfig, upright_turn

SMALL = UprightConfig(size=16, stem=8, widths=(16, 16), dropout=0.0)


@pytest.fixture
def model() -> Upright:
    """Any weights will do; these are larger than at the start, so that turns differ clearly."""
    torch.manual_seed(0)
    model = Upright(SMALL).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def noise(height: int, width: int) -> Tensor:
    return torch.rand(3, 3, height, width, generator=torch.Generator().manual_seed(height))


def turned(pictures: Tensor, turns: int) -> Tensor:
    return torch.rot90(pictures, -turns, (-2, -1))


def bright_above(count: int, seed: int) -> Tensor:
    """Pictures that fade from light above to dark below, with noise."""
    generator = torch.Generator().manual_seed(seed)
    fading = torch.linspace(0.8, 0.2, 16)[:, None].expand(count, 3, 16, 16)
    return (fading + 0.1 * torch.randn(count, 3, 16, 16, generator=generator)).clamp(0, 1)


@pytest.mark.parametrize("shape", [(16, 16), (64, 64), (33, 33), (48, 30)])
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_turning_a_picture_shifts_its_logits(model: Upright, shape: tuple[int, int], training: bool) -> None:
    model.train(training)
    pictures = noise(*shape)
    logits = model(pictures)
    for turns in range(4):
        torch.testing.assert_close(model(turned(pictures, turns)), logits.roll(-turns, 1), rtol=1e-5, atol=1e-5)
    # The promise would be empty if all turns were alike.
    assert (logits - logits.roll(1, 1)).abs().mean() > 1e-3


@torch.no_grad()
def test_a_mirror_image_needs_the_opposite_turn(model: Upright) -> None:
    for picture in noise(24, 24):
        assert upright_turn(model, picture.flip(-1)) == -upright_turn(model, picture) % 4


def test_learns_which_way_is_up() -> None:
    torch.manual_seed(0)
    model = Upright(SMALL)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(40):
        loss = F.cross_entropy(model(bright_above(16, step)), torch.zeros(16, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    for picture in bright_above(8, 1000):
        for turns in range(4):
            assert upright_turn(model, turned(picture, turns)) == -turns % 4


@torch.no_grad()
def test_only_allowed_turns_are_given(model: Upright) -> None:
    for picture in noise(20, 30):
        assert upright_turn(model, picture, allowed=(0, 2)) in (0, 2)
        assert upright_turn(model, picture, allowed=(3,)) == 3
    for picture in noise(24, 24):
        best = upright_turn(model, picture)
        assert upright_turn(model, picture, allowed=((best + 1) % 4, best)) == best
