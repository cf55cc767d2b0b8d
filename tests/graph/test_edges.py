"""Edge lists: complete within a puzzle, never across, and thinned evenly."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.core import Matches, Poses
from diffassemble.network.graph.edges import complete_edges, drop_edges, match_edges


@settings(deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_every_piece_hears_every_piece_of_its_puzzle_and_itself(sizes: list[int]) -> None:
    puzzle = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    edges = complete_edges(puzzle)
    found = set(zip(*edges.tolist(), strict=True))
    assert edges.shape[1] == len(found) == sum(size**2 for size in sizes)
    expected = {(i, j) for i in range(sum(sizes)) for j in range(sum(sizes)) if puzzle[i] == puzzle[j]}
    assert found == expected


@pytest.mark.parametrize("share", [0.0, 0.2, 0.8, 1.0])
def test_the_share_is_lost_but_nobody_stops_hearing_itself(share: float) -> None:
    edges = complete_edges(torch.arange(4).repeat_interleave(40))
    kept = drop_edges(edges, share, torch.Generator().manual_seed(0))
    loops, others = kept[0] == kept[1], (edges[0] != edges[1]).sum().item()
    assert loops.sum() == 160
    deviation = (others * share * (1 - share)) ** 0.5
    assert abs((~loops).sum().item() - (1 - share) * others) <= 5 * deviation
    assert set(zip(*kept.tolist(), strict=True)) <= set(zip(*edges.tolist(), strict=True))


def test_the_same_seed_loses_the_same_edges() -> None:
    edges = complete_edges(torch.zeros(12, dtype=torch.long))
    first, again, other = (drop_edges(edges, 0.5, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_most_probable_matches_of_every_side_are_joined_both_ways() -> None:
    first, second = torch.tensor([0, 0, 0, 0, 2]), torch.tensor([1, 2, 3, 1, 3])
    slot, weight = torch.tensor([0, 1, 2, 4, 5]), torch.tensor([0.1, 0.9, 0.5, 0.2, 0.3])
    matches = Matches(first, second, Poses.identity(5, 2), slot, weight[:, None])
    for top, expected in ((1, {(2, 0), (1, 0), (3, 2)}), (2, {(2, 0), (3, 0), (1, 0), (3, 2)}), (0, set())):
        found = set(zip(*match_edges(matches, top, 4).tolist(), strict=True))
        assert found == expected | {(b, a) for a, b in expected}
    assert match_edges(matches[torch.tensor([], dtype=torch.long)], 2, 4).shape == (2, 0)
