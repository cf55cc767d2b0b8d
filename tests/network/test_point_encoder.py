"""Features of clouds turn with them, exactly."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import roma
import torch
from torch import Tensor, nn

from diffassemble.network.encoders.image import Symmetry
from diffassemble.network.encoders.points import (
    DGCNN,
    LightNetwork,
    PointBackbone,
    PointEncoder,
    PointNet,
    PublishedNetwork,
    extents,
)
from diffassemble.network.encoders.vector_neurons import (
    EdgeConvolution,
    ReceiverConvolution,
    SoftMaximum,
    VectorLayer,
    VectorLeakyReLU,
    find_neighbours,
    unit_scale,
)

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


def test_extents_are_those_of_a_box() -> None:
    sides = torch.tensor([0.1, 0.3, 0.8])
    box = sides * (torch.rand(1, 20_000, 3, generator=torch.Generator().manual_seed(0)) - 0.5)
    spread = (sides / 12**0.5).log() + 2.5
    torch.testing.assert_close(extents(box @ turns(1).mT)[0], spread, rtol=0, atol=0.03)


POINTS = torch.randn(2, 60, 3, generator=torch.Generator().manual_seed(0))


def encode(network: nn.Module, points: torch.Tensor) -> torch.Tensor:
    return network(points, find_neighbours(points, 8))


@torch.no_grad()
def test_the_order_of_points_does_not_matter_but_their_places_do() -> None:
    torch.manual_seed(0)
    for network in (DGCNN(6), PointNet(6)):
        features = encode(network, POINTS)
        assert features.shape == (2, 6)
        shuffled = POINTS[:, torch.randperm(60)]
        torch.testing.assert_close(encode(network, shuffled), features, rtol=1e-4, atol=1e-5)
        assert (encode(network, POINTS.flip(-1)) - features).abs().mean() > 1e-3


NEIGHBOURS_POINTS = torch.randn(3, 50, 3, generator=torch.Generator().manual_seed(0))


def test_they_are_those_of_all_pairs_and_the_nearest_is_the_point_itself() -> None:
    rows = find_neighbours(NEIGHBOURS_POINTS, 7).rows
    assert rows.shape == (3, 50, 7)
    expected = torch.cdist(NEIGHBOURS_POINTS.double(), NEIGHBOURS_POINTS.double()).topk(7, largest=False).indices
    assert torch.equal(rows, expected + 50 * torch.arange(3)[:, None, None])
    assert torch.equal(rows[:, :, 0].flatten(), torch.arange(150))


VECTOR_NETWORKS_POINTS = torch.randn(2, 60, 3, generator=torch.Generator().manual_seed(0))
TURN = roma.rotvec_to_rotmat(torch.tensor([0.4, -1.1, 2.0]))


@torch.no_grad()
def test_vectors_turn_with_the_points() -> None:
    torch.manual_seed(0)
    near = find_neighbours(VECTOR_NETWORKS_POINTS, 8)
    for network in (PublishedNetwork(10), LightNetwork(10), LightNetwork(7)):
        vectors = network(VECTOR_NETWORKS_POINTS, near)
        again = network(VECTOR_NETWORKS_POINTS @ TURN.T, near)
        assert vectors.shape == (2, 3, network.pooling.vectors)
        torch.testing.assert_close(again, TURN @ vectors, rtol=0, atol=1e-4)


def test_the_published_network_has_the_published_sizes() -> None:
    network = PublishedNetwork(256)
    assert network.neighbours == 20
    shapes = [tuple(p.shape) for name, p in network.named_parameters() if name.endswith("0.weight")]
    assert shapes == [(21, 3), (21, 21), (21, 42), (21, 21), (21, 42), (128, 63)]


VECTOR_NEURONS_POINTS = torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0))
NEAR = find_neighbours(VECTOR_NEURONS_POINTS, 6)
VECTORS = torch.randn(2, 40, 3, 5, generator=torch.Generator().manual_seed(1))
VECTOR_NEURONS_TURN = roma.rotvec_to_rotmat(torch.tensor([0.4, -1.1, 2.0]))


def turned(vectors: Tensor) -> Tensor:
    return torch.einsum("ab,...bc->...ac", VECTOR_NEURONS_TURN, vectors)


def assert_turns(layer: Callable[[Tensor], Tensor]) -> None:
    out = layer(VECTORS)
    torch.testing.assert_close(layer(turned(VECTORS)), turned(out), rtol=1e-4, atol=1e-4)
    assert out.abs().mean() > 0.01


@torch.no_grad()
def test_layers_of_points_turn() -> None:
    for layer in (VectorLayer(5, 7), VectorLeakyReLU(5), SoftMaximum(5), unit_scale):
        assert_turns(layer)


@pytest.mark.parametrize("make", [lambda: EdgeConvolution(5, 7, 2, crosses=True), lambda: ReceiverConvolution(5, 7)])
@torch.no_grad()
def test_layers_of_neighbours_turn(make: Callable[[], nn.Module]) -> None:
    layer = make()
    assert layer(VECTORS, NEAR).shape == (2, 40, 3, 7)
    assert_turns(lambda vectors: layer(vectors, NEAR))


@torch.no_grad()
def test_cross_products_tell_left_from_right() -> None:
    """In a mirror, layers without cross products give the mirror image, those with them don't."""
    mirror = torch.tensor([-1.0, 1, 1])[:, None]
    for crosses in (False, True):
        layer = EdgeConvolution(5, 7, 1, crosses)
        alike = torch.allclose(layer(mirror * VECTORS, NEAR), mirror * layer(VECTORS, NEAR), atol=1e-4)
        assert alike != crosses
