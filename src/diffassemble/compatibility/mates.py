"""Mates of any puzzle."""

from __future__ import annotations

from diffassemble.compatibility.image import image_mates
from diffassemble.puzzle import Mates, Puzzle


def find_mates(puzzle: Puzzle) -> Mates:
    """Which pieces may touch, and how they then lie to each other."""
    return image_mates(puzzle.pixels, puzzle.board.pitch)
