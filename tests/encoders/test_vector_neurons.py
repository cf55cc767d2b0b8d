"""Every layer turns with its input, and its non-linearity is one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import roma
import torch
from torch import Tensor, nn

from diffassemble.network.encoders.vector_neurons import (
    EdgeConvolution,
    Invariants,
    ReceiverConvolution,
    SoftMaximum,
    VectorLayer,
    VectorLeakyReLU,
    find_neighbours,
    unit_scale,
)

POINTS = torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0))
NEAR = find_neighbours(POINTS, 6)
VECTORS = torch.randn(2, 40, 3, 5, generator=torch.Generator().manual_seed(1))
TURN = roma.rotvec_to_rotmat(torch.tensor([0.4, -1.1, 2.0]))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def turned(vectors: Tensor) -> Tensor:
    return torch.einsum("ab,...bc->...ac", TURN, vectors)


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


@torch.no_grad()
def test_vectors_along_their_direction_stay_and_those_against_it_shrink_to_a_fifth() -> None:
    layer = VectorLeakyReLU(1)
    vector = torch.tensor([[3.0], [0], [4.0]])
    for sign, left in ((1.0, 1.0), (-1.0, 0.2)):
        layer.direction.weight.fill_(sign)
        torch.testing.assert_close(layer(vector), left * vector, rtol=1e-3, atol=0)


@torch.no_grad()
def test_the_light_convolution_is_the_mean_over_cut_messages() -> None:
    layer = ReceiverConvolution(5, 7)
    own, direction = layer.receive(VECTORS).chunk(2, -1)
    direction = direction / (direction.square().sum(2, keepdim=True) + 1e-3).sqrt()
    messages = NEAR.vectors(layer.send(VECTORS)) + own[:, :, :, None]
    along = (messages * direction[:, :, :, None]).sum(2, keepdim=True)
    expected = (messages - 0.8 * along.clamp(max=0) * direction[:, :, :, None]).mean(3)
    torch.testing.assert_close(layer(VECTORS, NEAR), expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_pooling_lies_between_the_points_and_invariants_do_not_turn() -> None:
    pooled = SoftMaximum(5)(VECTORS)
    assert (pooled <= VECTORS.amax(1)).all()
    assert (pooled >= VECTORS.amin(1)).all()
    layer = Invariants(5)
    assert layer(pooled).shape == (2, 15)
    torch.testing.assert_close(layer(turned(pooled)), layer(pooled), rtol=1e-4, atol=1e-4)
