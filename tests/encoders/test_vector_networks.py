"""Whole networks turn with the cloud, and see its surface."""

from __future__ import annotations

import roma
import torch

from diffassemble.network.encoders.points import LightNetwork, Pooling, PublishedNetwork, surface_vectors
from diffassemble.network.encoders.vector_neurons import find_neighbours

POINTS = torch.randn(2, 60, 3, generator=torch.Generator().manual_seed(0))
TURN = roma.rotvec_to_rotmat(torch.tensor([0.4, -1.1, 2.0]))


@torch.no_grad()
def test_vectors_turn_with_the_points() -> None:
    torch.manual_seed(0)
    near = find_neighbours(POINTS, 8)
    for network in (PublishedNetwork(10), LightNetwork(10), LightNetwork(7)):
        vectors = network(POINTS, near)
        again = network(POINTS @ TURN.T, near)
        assert vectors.shape == (2, 3, network.pooling.vectors)
        torch.testing.assert_close(again, TURN @ vectors, rtol=0, atol=1e-4)


def test_the_published_network_has_the_published_sizes() -> None:
    network = PublishedNetwork(256)
    assert network.neighbours == 20
    shapes = [tuple(p.shape) for name, p in network.named_parameters() if name.endswith("0.weight")]
    assert shapes == [(21, 3), (21, 21), (21, 42), (21, 21), (21, 42), (128, 63)]


@torch.no_grad()
def test_in_a_plane_what_lies_in_the_surface_has_no_part_along_its_normal() -> None:
    flat = torch.cat(
        [torch.rand(1, 80, 2, generator=torch.Generator().manual_seed(0)), torch.full((1, 80, 1), 0.7)], -1
    )
    vectors = surface_vectors(flat, find_neighbours(flat, 9))
    assert vectors.shape == (1, 80, 3, 6)
    torch.testing.assert_close(vectors[:, :, 2, 1:4], torch.zeros(1, 80, 3), rtol=0, atol=1e-5)
    assert vectors[:, :, :2, 1:4].square().mean() > 0.1


@torch.no_grad()
def test_both_ways_of_pooling_are_there() -> None:
    torch.manual_seed(0)
    pooling, vectors = Pooling(5, 8), torch.randn(2, 30, 3, 5)
    pooled = pooling(vectors)
    assert pooled.shape == (2, 3, 8)
    assert not torch.allclose(pooled[..., :4], pooled[..., 4:], atol=1e-2)
