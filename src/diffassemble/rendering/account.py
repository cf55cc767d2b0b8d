"""What an assembly is sure of and what it only guesses: pieces, which way is up, what belongs to which object."""

from __future__ import annotations

from collections.abc import Sequence

from diffassemble.core import Assembly

# From this confidence on a place counts as sure, and below that other one as a guess.
SURE, GUESS = 0.9, 0.5
# Below this probability, which way is up counts as a guess.
_UPRIGHT = 0.8
_MOST_NAMES = 12


def account(assembly: Assembly) -> list[tuple[str, str]]:
    """Rows of a heading and names of pieces; of pictures, whose pieces all have a place, only which way is up.

    The names of objects are numbers from 1; they are told where there are several.
    """
    if assembly.objects is None:
        return [] if assembly.upright is None else [("upright", _upright_words(assembly))]
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


def upright_note(assembly: Assembly) -> str | None:
    """What to know about which way is up, if it is not sure; nothing where it is, or where what is locked tells it."""
    if assembly.puzzle.lattice is None or assembly.puzzle.locks is not None:
        return None
    if assembly.upright is None:
        return "which way is up is not known"
    return "which way is up is a guess" if assembly.upright < _UPRIGHT else None


def _upright_words(assembly: Assembly) -> str:
    note = upright_note(assembly)
    return f"{100 * (assembly.upright or 0):.0f} % sure" + (f"; {note}" if note else "")


def listed(names: Sequence[str]) -> str:
    """Names one after another, the first dozen and how many more there are."""
    more = len(names) - _MOST_NAMES
    text = ", ".join(names[:_MOST_NAMES])
    return f"{text} and {more} more" if more > 0 else text
