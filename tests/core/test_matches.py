"""Matches are chosen whole."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core import Matches, Poses


@pytest.fixture
def matches() -> Matches:
    generator = torch.Generator().manual_seed(0)
    relative = Poses(torch.randn(6, 3, 3, generator=generator), torch.randn(6, 3, generator=generator))
    first, second, slot = torch.arange(18).view(3, 6)
    return Matches(first, second, relative, slot, torch.rand(6, 4, generator=generator))


@pytest.mark.parametrize("index", [torch.tensor([4, 0, 0]), torch.arange(6) % 2 == 0, torch.zeros(0, dtype=torch.long)])
def test_indexing_chooses_whole_matings(matches: Matches, index: torch.Tensor) -> None:
    chosen = matches[index]
    assert len(chosen) == len(matches.first[index])
    for part in ("first", "second", "slot", "evidence"):
        assert torch.equal(getattr(chosen, part), getattr(matches, part)[index])
    assert torch.equal(chosen.relative.rotation, matches.relative.rotation[index])
    assert torch.equal(chosen.relative.translation, matches.relative.translation[index])


def test_weight_is_the_probability_that_the_first_channel_tells(matches: Matches) -> None:
    assert torch.equal(matches.weight, matches.evidence[:, 0])
    assert torch.equal(matches[torch.tensor([3, 1])].weight, matches.evidence[[3, 1], 0])
