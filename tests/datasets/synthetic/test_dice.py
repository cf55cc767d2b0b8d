"""Draws stay in their ranges, reach all of them, and repeat with the seed."""

import torch

from diffassemble.fragments.shapes.tools import Dice


def dice(seed: int = 0) -> Dice:
    return Dice(torch.Generator().manual_seed(seed))


def test_ranges() -> None:
    thrown = dice()
    numbers = [thrown.between(2, 5) for _ in range(500)]
    assert min(numbers) >= 2
    assert max(numbers) < 5
    assert abs(sum(numbers) / 500 - 3.5) < 0.2
    assert {thrown.whole(1, 3) for _ in range(100)} == {1, 2, 3}
    assert {thrown.pick("ab") for _ in range(100)} == {"a", "b"}
    assert 120 < sum(thrown.chance(0.3) for _ in range(500)) < 180


def test_the_seed_decides() -> None:
    first, second = dice(4), dice(4)
    assert [first.between(0, 1) for _ in range(5)] == [second.between(0, 1) for _ in range(5)]
