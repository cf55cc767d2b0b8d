"""Features turn with the fragment, exactly; the ablations' variants do not; size is known, other fragments are not."""

from __future__ import annotations

import pytest
import roma
import torch
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.network.encoders.image import Symmetry
from diffassemble.network.encoders.points import PLAIN_NETWORKS, VECTOR_NETWORKS, PointBackbone, PointEncoder, extents

KINDS: list[tuple[PointBackbone, Symmetry]] = [
    ("vn_dgcnn", "equivariant"),
    ("vn_dgcnn_published", "equivariant"),
    ("vn_dgcnn", "invariant"),
    ("vn_dgcnn_published", "invariant"),
    ("dgcnn", "plain"),
    ("pointnet", "plain"),
]
EVERY = pytest.mark.parametrize(("backbone", "symmetry"), KINDS)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def fragments(count: int = 3, points: int = 120) -> Tensor:
    """Bent shells of different shapes and sizes, about their means."""
    drawn = torch.randn(count, points, 3, generator=torch.Generator().manual_seed(points))
    shells = drawn / drawn.norm(dim=-1, keepdim=True)
    shells = shells * torch.tensor([1.0, 0.7, 0.3]) + 0.3 * shells.roll(1, -1).square()
    shells = shells * torch.linspace(0.1, 0.4, count)[:, None, None] + 0.1 * shells.abs() * torch.rand(
        count, 1, 3, generator=torch.Generator().manual_seed(count)
    )
    return shells - shells.mean(1, keepdim=True)


def turns(count: int) -> Tensor:
    return roma.random_rotmat(count)


@EVERY
@torch.no_grad()
def test_features_turn_as_they_promise(backbone: PointBackbone, symmetry: Symmetry) -> None:
    encoder, points, rotation = PointEncoder(backbone, symmetry, 10), fragments(), turns(3)
    features = encoder(points)
    assert features.shape == (3, encoder.width) == (3, 33)
    again = encoder(points @ rotation.mT)
    expected = encoder.turned(features, rotation)
    if symmetry == "plain":
        assert (again - expected).abs().mean() > 1e-2
    else:
        torch.testing.assert_close(again, expected, rtol=0, atol=1e-4)
    moves = (again - features)[:, :30].abs().mean()
    assert (moves < 1e-4) == (symmetry == "invariant")
    # The promise would be empty if all fragments were alike.
    assert (features - features.roll(1, 0)).abs().mean() > 1e-2


@EVERY
@torch.no_grad()
def test_features_start_at_unit_scale_whatever_the_size(backbone: PointBackbone, symmetry: Symmetry) -> None:
    encoder, points = PointEncoder(backbone, symmetry, 10), fragments()
    small, large = (encoder(size * points) for size in (0.3, 2.0))
    assert small[:, :30].square().mean().item() == pytest.approx(1, abs=0.15)
    torch.testing.assert_close(small[:, :30], large[:, :30], rtol=0, atol=1e-3)
    # ... but the size is told beside them.
    torch.testing.assert_close(large[:, 30:] - small[:, 30:], torch.full((3, 3), 2 / 0.3).log(), rtol=0, atol=1e-4)


@EVERY
@torch.no_grad()
def test_fragments_are_encoded_one_by_one(backbone: PointBackbone, symmetry: Symmetry) -> None:
    encoder, points = PointEncoder(backbone, symmetry, 8), fragments(10, 40)
    torch.testing.assert_close(encoder(points)[8:9], encoder(points[8:9]), rtol=1e-4, atol=1e-4)


@EVERY
def test_tiny_and_degenerate_clouds_have_features_and_gradients(backbone: PointBackbone, symmetry: Symmetry) -> None:
    encoder = PointEncoder(backbone, symmetry, 8)
    line = torch.linspace(-1, 1, 5)[None, :, None] * torch.tensor([1.0, 2, 3])
    for points in (torch.zeros(1, 1, 3), torch.zeros(1, 5, 3), line, fragments(1, 3)):
        features = encoder(points)
        assert features.isfinite().all()
        features.square().sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in encoder.parameters())


def test_equivariance_is_of_the_form_and_not_of_the_start() -> None:
    """It holds for any weights, so also after training."""
    encoder, points, rotation = PointEncoder("vn_dgcnn", "equivariant", 8), fragments(), turns(3)
    optimizer = torch.optim.SGD(encoder.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (encoder(points)[:, :4] - 1).square().sum().backward()
        optimizer.step()
    with torch.no_grad():
        expected = encoder.turned(encoder(points), rotation)
        torch.testing.assert_close(encoder(points @ rotation.mT), expected, rtol=0, atol=1e-4)


@torch.no_grad()
def test_large_clouds_are_thinned_by_the_light_network() -> None:
    encoder, points = PointEncoder("vn_dgcnn", "equivariant", 8), fragments(2, 600)
    torch.testing.assert_close(encoder(points)[:, :24], encoder(points[:, :256])[:, :24])


def test_extents_are_those_of_a_box() -> None:
    sides = torch.tensor([0.1, 0.3, 0.8])
    box = sides * (torch.rand(1, 20_000, 3, generator=torch.Generator().manual_seed(0)) - 0.5)
    spread = (sides / 12**0.5).log() + 2.5
    torch.testing.assert_close(extents(box @ turns(1).mT)[0], spread, rtol=0, atol=0.03)


def test_networks_that_cannot_keep_a_promise_refuse_it() -> None:
    for name in VECTOR_NETWORKS:
        with pytest.raises(InputError, match="use 'dgcnn' or 'pointnet'"):
            PointEncoder(name, "plain", 8)
    for name in PLAIN_NETWORKS:
        with pytest.raises(InputError, match="use 'vn_dgcnn' or 'vn_dgcnn_published'"):
            PointEncoder(name, "invariant", 8)
