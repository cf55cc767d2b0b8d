"""Mates are chosen whole."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core import Mates, Poses


@pytest.fixture
def mates() -> Mates:
    generator = torch.Generator().manual_seed(0)
    relative = Poses(torch.randn(6, 3, 3, generator=generator), torch.randn(6, 3, generator=generator))
    first, second, slot = torch.arange(18).view(3, 6)
    return Mates(first, second, relative, slot, torch.rand(6, 4, generator=generator))


@pytest.mark.parametrize("index", [torch.tensor([4, 0, 0]), torch.arange(6) % 2 == 0, torch.zeros(0, dtype=torch.long)])
def test_indexing_chooses_whole_matings(mates: Mates, index: torch.Tensor) -> None:
    chosen = mates[index]
    assert len(chosen) == len(mates.first[index])
    for part in ("first", "second", "slot", "evidence"):
        assert torch.equal(getattr(chosen, part), getattr(mates, part)[index])
    assert torch.equal(chosen.relative.rotation, mates.relative.rotation[index])
    assert torch.equal(chosen.relative.translation, mates.relative.translation[index])


def test_weight_is_the_probability_that_the_first_channel_tells(mates: Mates) -> None:
    assert torch.equal(mates.weight, mates.evidence[:, 0])
    assert torch.equal(mates[torch.tensor([3, 1])].weight, mates.evidence[[3, 1], 0])
