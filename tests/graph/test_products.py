"""Products along edges against plain loops, and their gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from diffassemble.network.graph.edges import sorted_edges
from diffassemble.network.graph.layout import Incidence, common, summed

COUNT, GROUPS, WIDTH = 9, 3, 4


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def some_edges() -> Tensor:
    """Random edges; node 4 neither hears nor is heard."""
    pairs = torch.randint(0, COUNT, (2, 30), generator=torch.Generator().manual_seed(0))
    return sorted_edges(pairs[:, (pairs != 4).all(0)], COUNT)


def test_edges_by_receiver_and_by_sender_are_the_same_matrix_and_its_transpose() -> None:
    edges = some_edges()
    incidence, values = Incidence.of(edges, COUNT), random(edges.shape[1])
    matrix = torch.zeros(COUNT, COUNT)
    matrix[edges[1], edges[0]] = values
    assert torch.equal(incidence.forth(values).to_dense(), matrix)
    assert torch.equal(incidence.reversed(values).to_dense(), matrix.T)


def test_both_products_and_their_gradients_are_those_of_gathered_copies() -> None:
    edges = some_edges()
    (sender, receiver), incidence = edges, Incidence.of(edges, COUNT)
    one, other = (random(COUNT, GROUPS, WIDTH, seed=seed).requires_grad_() for seed in (1, 2))
    weights = random(edges.shape[1], GROUPS, seed=3).requires_grad_()
    gathered = (one[receiver] * other[sender]).sum(-1)
    added = torch.zeros(COUNT, GROUPS, WIDTH).index_add(0, receiver, weights[..., None] * other[sender])
    for found, expected in ((common(one, other, incidence), gathered), (summed(weights, other, incidence), added)):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        aim = random(*expected.shape, seed=4)
        inputs = [one, other, weights]
        slopes = [torch.autograd.grad((part * aim).sum(), inputs, allow_unused=True) for part in (found, expected)]
        for ours, theirs in zip(*slopes, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("bfloat16")
def test_half_precision_is_widened() -> None:
    edges = some_edges()
    incidence, nodes = Incidence.of(edges, COUNT), random(COUNT, GROUPS, WIDTH).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        assert common(nodes, nodes, incidence).dtype == torch.float32
        assert summed(random(edges.shape[1], GROUPS).bfloat16(), nodes, incidence).dtype == torch.float32
