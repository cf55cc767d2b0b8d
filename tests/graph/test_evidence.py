"""Evidence along edges says what one row of features for every edge would say."""

from __future__ import annotations

import torch

from diffassemble.core import Matches, Poses
from diffassemble.network.graph.edges import sorted_edges
from diffassemble.network.graph.layout import find_evidence

COUNT, GROUPS, SLOTS, CHANNELS = 8, 3, 5, 2


def made(seed: int) -> tuple[torch.Tensor, Matches, torch.Generator]:
    generator = torch.Generator().manual_seed(seed)
    edges = sorted_edges(torch.randint(0, COUNT, (2, 40), generator=generator), COUNT)
    key = torch.randperm(COUNT * COUNT * SLOTS, generator=generator)[:60]
    evidence = torch.rand(60, CHANNELS, generator=generator)
    first, second, slot = key // SLOTS // COUNT, key // SLOTS % COUNT, key % SLOTS
    return edges, Matches(first, second, Poses.identity(60, 2), slot, evidence), generator


def test_only_matches_with_an_edge_are_heard() -> None:
    edges, matches, _ = made(0)
    evidence = find_evidence(edges, COUNT, matches, SLOTS)
    listed = set(zip(*edges.flip(0).tolist(), strict=True))
    expected = [pair in listed for pair in zip(matches.first.tolist(), matches.second.tolist(), strict=True)]
    assert len(evidence.edge) == sum(expected)
    assert torch.equal(edges[1, evidence.edge], evidence.receiver)
    assert torch.equal(evidence.values, matches.evidence[torch.tensor(expected)])


def test_asking_and_hearing_are_products_with_the_features() -> None:
    edges, matches, generator = made(1)
    evidence = find_evidence(edges, COUNT, matches, SLOTS)
    features = evidence.features(edges.shape[1])
    logits = torch.randn(edges.shape[1], GROUPS, generator=generator)
    asked = torch.randn(COUNT, GROUPS, SLOTS * CHANNELS, generator=generator)
    expected = logits + torch.einsum("ega,ea->eg", asked[edges[1]], features)
    torch.testing.assert_close(evidence.ask(logits, asked), expected)
    heard = torch.zeros(COUNT, GROUPS, SLOTS * CHANNELS)
    heard.index_add_(0, edges[1], logits[..., None] * features[:, None])
    torch.testing.assert_close(evidence.hear(logits, COUNT), heard)
