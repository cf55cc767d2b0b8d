"""Chance in small words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

T = TypeVar("T")
Number = float | int


@dataclass(frozen=True)
class Dice:
    """Draws numbers and choices from one generator."""

    generator: torch.Generator

    def between(self, low: Number, high: Number) -> float:
        """Any number between two, all equally probable."""
        return low + (high - low) * float(torch.rand((), generator=self.generator, dtype=torch.double))

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def chance(self, probability: Number) -> bool:
        """True with this probability."""
        return self.between(0, 1) < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of several, all equally probable."""
        return options[self.whole(0, len(options) - 1)]
