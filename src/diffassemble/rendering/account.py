"""Which pieces an assembly is sure of, which it only guesses, which it left out, and what belongs to which object."""

from __future__ import annotations

from collections.abc import Sequence

from diffassemble.core import Assembly

# From this confidence on a place counts as sure, and below that other one as a guess.
SURE, GUESS = 0.9, 0.5
_MOST_NAMES = 12


def account(assembly: Assembly) -> list[tuple[str, str]]:
    """Rows of a heading and names of pieces; of pieces of pictures, which all have a place, none.

    The names of objects are numbers from 1; they are told where there are several.
    """
    if assembly.objects is None:
        return []
    rows = list(zip(assembly.puzzle.names, assembly.confidence.tolist(), assembly.objects, strict=True))
    count = max(assembly.objects) + 1
    told = []
    if count > 1:
        for number in range(count):
            told.append((f"object {number + 1}", listed([name for name, _, own in rows if own == number])))
    placed = [(name, sure) for name, sure, own in rows if own >= 0]
    told.append(("sure", listed([name for name, sure in placed if sure >= SURE])))
    told.append(("likely", listed([f"{name} ({sure:.2f})" for name, sure in placed if GUESS <= sure < SURE])))
    told.append(("only guessed", listed([f"{name} ({sure:.2f})" for name, sure in placed if sure < GUESS])))
    told.append(("left out, fits nowhere", listed([name for name, _, own in rows if own < 0])))
    return [(heading, names) for heading, names in told if names]


def listed(names: Sequence[str]) -> str:
    """Names one after another, the first dozen and how many more there are."""
    more = len(names) - _MOST_NAMES
    text = ", ".join(names[:_MOST_NAMES])
    return f"{text} and {more} more" if more > 0 else text
