"""Random generators from seeds."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.core.puzzle import InputError


def seeded(*numbers: int) -> torch.Generator:
    """The generator of this tuple of numbers."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = ((state ^ (number + 0x632BE59BD9B4E019)) * 0xBF58476D1CE4E5B9) % 2**64
        state ^= state >> 29
    return torch.Generator().manual_seed(state % 2**63)


def mixed_seed(*numbers: int | tuple[int, ...]) -> int:
    """A seed of 31 bits for these numbers and tuples of numbers, by the rounds of xxHash."""
    return _mixed(numbers) & 0x7FFFFFFF


def _mixed(part: int | tuple[int | tuple[int, ...], ...]) -> int:
    if isinstance(part, int):
        return part
    state = 2870177450012600261
    for one in part:
        state = (state + _mixed(one) * 14029467366897019727) % 2**64
        state = ((state << 31) | (state >> 33)) % 2**64
        state = state * 11400714785074694791 % 2**64
    return (state + (len(part) ^ 2870177450012600261 ^ 3527539)) % 2**64


def check_seed(seed: int) -> None:
    """Refuse seeds that generators do not take."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is out of range; give a number from 0 to 2^63 − 1")


def random_stream(seed: int, index: int, purpose: int) -> torch.Generator:
    """The generator of one picture or object and purpose (0: cutting, 1: solving, 2: losing)."""
    state = np.random.SeedSequence((seed, index, purpose)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
