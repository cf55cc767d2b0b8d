"""Mates of any puzzle."""

from __future__ import annotations

from diffassemble.compatibility.image import image_mates
from diffassemble.compatibility.judging import Judge, judged_mates
from diffassemble.puzzle import Mates, Puzzle


def find_mates(puzzle: Puzzle, judge: Judge | None = None, keep: int = 8) -> Mates:
    """Which pieces may touch, and how they then lie to each other: the `keep` best partners of every side.

    Without a judge, border gradients alone say so.
    """
    if judge is None:
        return image_mates(puzzle.pixels, puzzle.board.pitch, keep)
    return judged_mates(puzzle.pixels, puzzle.board.pitch, judge, keep)
