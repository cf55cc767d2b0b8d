"""Worn sides and lost pieces."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.core.damage import erode_pixels, surviving


@settings(deadline=None)
@given(st.integers(0, 4), st.integers(9, 12))
def test_erosion_takes_a_strip_from_every_side(lost: int, size: int) -> None:
    pixels = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    worn = erode_pixels(pixels, lost)
    assert worn.shape == (2, 3, size - 2 * lost, size - 2 * lost)
    assert torch.equal(worn, pixels[:, :, lost : size - lost, lost : size - lost])


@settings(deadline=None)
@given(st.integers(1, 200), st.floats(0, 0.999), st.integers(0, 2**31))
def test_the_share_is_lost_and_nothing_is_kept_twice(count: int, missing: float, seed: int) -> None:
    kept = surviving(count, missing, torch.Generator().manual_seed(seed)).tolist()
    assert len(kept) == max(1, count - round(count * missing))
    assert len(set(kept)) == len(kept)
    assert set(kept) <= set(range(count))


def test_every_piece_is_lost_equally_often() -> None:
    generator = torch.Generator().manual_seed(0)
    kept = torch.cat([surviving(10, 0.3, generator) for _ in range(2000)])
    share = torch.bincount(kept, minlength=10) / 2000
    assert (share - 0.7).abs().max() < 5 * (0.7 * 0.3 / 2000) ** 0.5
