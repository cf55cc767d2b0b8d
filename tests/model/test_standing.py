"""Axes that a fragment's vectors tell turn with the fragment, and what it is like does not."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core import InputError
from diffassemble.fragments.breaking import random_rotations
from diffassemble.network.denoiser import Standing
from diffassemble.network.encoders import make_encoder


def test_axes_turn_with_the_fragment_and_its_shape_does_not() -> None:
    generator = torch.Generator().manual_seed(0)
    encoder = make_encoder("vn_dgcnn", "equivariant", 8)
    standing = Standing(encoder, 16)
    torch.nn.init.normal_(standing.weights.weight, generator=generator)
    points = torch.randn(3, 60, 3, generator=generator)
    turn = random_rotations(3, generator)
    nodes = torch.randn(3, 1, 16, generator=generator)
    with torch.no_grad():
        plain, turned = encoder(points), encoder(points @ turn.mT)
        assert torch.allclose(standing.shape(plain), standing.shape(turned), atol=1e-3)
        wanted = standing.axes(nodes, plain[:, None]) @ turn.mT[:, None]
        assert torch.allclose(standing.axes(nodes, turned[:, None]), wanted, atol=1e-3)
        assert float(wanted.norm()) > 0.1


def test_features_that_cannot_turn_are_refused() -> None:
    with pytest.raises(InputError, match="equivariant encoder of points"):
        Standing(make_encoder("light", "equivariant", 8), 16)
    with pytest.raises(InputError, match="equivariant encoder of points"):
        Standing(make_encoder("vn_dgcnn", "invariant", 8), 16)
