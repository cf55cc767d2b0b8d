"""Seeds out of several numbers stay what they are, whatever Python makes of hashes."""

from __future__ import annotations

from diffassemble.core.seeds import mixed_seed


def test_a_mixed_seed_is_told_by_its_numbers_alone() -> None:
    assert mixed_seed(3, 1, (0, 2), (1,)) == 1347466613
    others = {mixed_seed(3, 1, (0,), (2, 1)), mixed_seed(1, 3, (0, 2), (1,)), mixed_seed(3, 1, 0, 2, 1)}
    assert len(others) == 3
    assert all(0 <= seed < 2**31 for seed in others)
