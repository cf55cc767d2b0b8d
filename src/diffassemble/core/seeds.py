"""Seeds: the one place where numbers become generators."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.core.puzzle import InputError


def seeded(*numbers: int) -> torch.Generator:
    """A generator for this tuple of numbers and no other."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = ((state ^ (number + 0x632BE59BD9B4E019)) * 0xBF58476D1CE4E5B9) % 2**64
        state ^= state >> 29
    return torch.Generator().manual_seed(state % 2**63)


def check_seed(seed: int) -> None:
    """Refuse seeds that generators do not take."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is out of range; give a number from 0 to 2^63 − 1")


def random_stream(seed: int, index: int, purpose: int) -> torch.Generator:
    """Randomness of its own for each picture or object and purpose (0: cutting, 1: solving, 2: losing)."""
    state = np.random.SeedSequence((seed, index, purpose)).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
