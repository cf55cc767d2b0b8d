"""What the page says about an answer."""

from __future__ import annotations

from diffassemble.core import Assembly
from diffassemble.kinds import kind_of
from diffassemble.rendering.account import account


def summary(assembly: Assembly) -> str:
    """How many pieces are right, if the truth is known, else how many are sure."""
    puzzle, count = assembly.puzzle, len(assembly.puzzle)
    sure = int((assembly.confidence >= 0.5).sum())
    doubt = f"{sure} of {count} pieces with a confidence of one half or more"
    doubt = "; ".join([doubt, *(f"{heading}: {words}" for heading, words in account(assembly) if heading == "upright")])
    if puzzle.truth is None:
        return doubt
    kind = kind_of(puzzle)
    right, free = kind.count_right(assembly, puzzle.truth)
    turned = f" ({free} {kind.free})" if free > right else ""
    return f"**{right} of {count} pieces right**{turned}; {doubt}"


def time_left(done: float, seconds: float) -> str:
    """How long it may still take, in words."""
    if done <= 0.02:
        return "working"
    left = seconds / done * (1 - done)
    return f"about {left:.0f} s left" if left < 100 else f"about {left / 60:.0f} min left"
