"""Features of pieces turn with them, exactly: square ones by quarter turns, clouds by any rotation."""

from __future__ import annotations

import pytest
import roma
import torch
from torch import Tensor

from diffassemble.network.encoders.image import ImageBackbone, ImageEncoder, Symmetry
from diffassemble.network.encoders.points import PointBackbone, PointEncoder, find_neighbours
from diffassemble_research.parts import EdgeConvolution, PublishedNetwork

SIZES = (28, 32, 45, 64)
BACKBONES: tuple[ImageBackbone, ...] = ("light", "resnet18")


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
    bent = torch.rand(count, 1, 3, generator=torch.Generator().manual_seed(count))
    shells = shells * torch.linspace(0.1, 0.4, count)[:, None, None] + 0.1 * shells.abs() * bent
    return shells - shells.mean(1, keepdim=True)


@EVERY
@torch.no_grad()
def test_features_turn_as_they_promise(backbone: PointBackbone, symmetry: Symmetry) -> None:
    encoder, points, rotation = PointEncoder(backbone, symmetry, 11), fragments(), roma.random_rotmat(3)
    features = encoder(points)
    assert features.shape == (3, encoder.width) == (3, 36)
    again = encoder(points @ rotation.mT)
    expected = encoder.turned(features, rotation)
    if symmetry == "plain":
        assert (again - expected).abs().mean() > 1e-2
    else:
        torch.testing.assert_close(again, expected, rtol=0, atol=1e-4)
    moves = (again - features)[:, :33].abs().mean()
    assert (moves < 1e-4) == (symmetry == "invariant")
    # The promise would be empty if all fragments were alike.
    assert (features - features.roll(1, 0)).abs().mean() > 1e-2


@EVERY
@torch.no_grad()
def test_features_have_unit_scale_and_depend_on_one_fragment_alone(backbone: PointBackbone, symmetry: Symmetry) -> None:
    encoder, points = PointEncoder(backbone, symmetry, 11), fragments()
    small, large = (encoder(size * points) for size in (0.3, 2.0))
    assert small[:, :33].square().mean().item() == pytest.approx(1, abs=0.15)
    torch.testing.assert_close(small[:, :33], large[:, :33], rtol=0, atol=1e-3)
    # ... but the size is given beside them.
    torch.testing.assert_close(large[:, 33:] - small[:, 33:], torch.full((3, 3), 2 / 0.3).log(), rtol=0, atol=1e-4)
    points = fragments(10, 40)
    alone = encoder(points[8:9, torch.randperm(40)])
    torch.testing.assert_close(encoder(points)[8:9], alone, rtol=1e-4, atol=1e-4)


@EVERY
def test_tiny_and_degenerate_clouds_have_features_and_gradients(backbone: PointBackbone, symmetry: Symmetry) -> None:
    encoder = PointEncoder(backbone, symmetry, 8)
    line = torch.linspace(-1, 1, 5)[None, :, None] * torch.tensor([1.0, 2, 3])
    for points in (torch.zeros(1, 1, 3), torch.zeros(1, 5, 3), line, fragments(1, 3)):
        features = encoder(points)
        assert features.isfinite().all()
        features.square().sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in encoder.parameters())


def test_they_are_those_of_all_pairs_and_the_nearest_is_the_point_itself() -> None:
    points = torch.randn(3, 50, 3)
    rows = find_neighbours(points, 7).rows
    assert rows.shape == (3, 50, 7)
    expected = torch.cdist(points.double(), points.double()).topk(7, largest=False).indices
    assert torch.equal(rows, expected + 50 * torch.arange(3)[:, None, None])
    assert torch.equal(rows[:, :, 0].flatten(), torch.arange(150))


def test_the_published_network_has_the_published_sizes() -> None:
    network = PublishedNetwork(256)
    assert network.neighbours == 20
    shapes = [tuple(p.shape) for name, p in network.named_parameters() if name.endswith("0.weight")]
    assert shapes == [(21, 3), (21, 21), (21, 42), (21, 21), (21, 42), (128, 63)]


@torch.no_grad()
def test_cross_products_tell_left_from_right() -> None:
    """In a mirror, layers without cross products give the mirror image, those with them don't."""
    mirror, vectors, near = (
        torch.tensor([-1.0, 1, 1])[:, None],
        torch.randn(2, 40, 3, 5),
        find_neighbours(torch.randn(2, 40, 3), 6),
    )
    for crosses in (False, True):
        layer = EdgeConvolution(5, 7, 1, crosses)
        alike = torch.allclose(layer(mirror * vectors, near), mirror * layer(vectors, near), atol=1e-4)
        assert alike != crosses
