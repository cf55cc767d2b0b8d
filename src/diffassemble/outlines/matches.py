"""Which family flat pieces are of, and how they are compared: each family has its own way to Matches."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Int

from diffassemble.core import Matches, OutlinePieces, Puzzle
from diffassemble.outlines.arcs import match_arcs
from diffassemble.outlines.sides import FLAT, Sides, find_sides
from diffassemble.outlines.strip_sides import looks_like_strips, strip_like
from diffassemble.outlines.strips import match_strips
from diffassemble.outlines.tabs import match_tabs

Family = Literal["tabs", "strips", "free"]
# Doubt in a piece's four sides from which on it is no jigsaw piece: those of photographed and made puzzles are below 2,
# nearly all fresco fragments, torn and broken pieces above 4.
_DOUBT = 3.0
# So many pieces, and this share of all, may be a puzzle of their own among others of another family.
_FEW, _SHARE = 4, 0.12


def family(pieces: OutlinePieces, sides: Sides | None = None) -> Family:
    """Whether pieces are jigsaw pieces with tabs, strips, or of any outline: what most of them are."""
    if looks_like_strips(pieces):
        return "strips"
    sides = find_sides(pieces) if sides is None else sides
    bulging = (sides.shapes != FLAT).any(1)
    if float(np.mean((sides.doubt < _DOUBT) & bulging)) > 0.5:
        return "tabs"
    return "free"


def families(pieces: OutlinePieces) -> list[Int[np.ndarray, "_"]]:
    """Pieces of several puzzles by their families, the most numerous first.

    A few that look like another family are of any outline, if there are such, or else odd ones among the most.
    """
    strips, sides = strip_like(pieces), find_sides(pieces)
    jigsaw = (sides.doubt < _DOUBT) & (sides.shapes != FLAT).any(1) & ~strips
    groups = [jigsaw, strips, ~jigsaw & ~strips]
    enough = [group.sum() >= max(_FEW, _SHARE * len(pieces)) for group in groups]
    home = 2 if enough[2] else int(np.argmax([group.sum() for group in groups]))
    for number, group in enumerate(groups):
        if not enough[number] and number != home:
            groups[home], groups[number] = groups[home] | group, np.zeros_like(group)
    return sorted((np.flatnonzero(group) for group in groups if group.any()), key=len, reverse=True)


def find_matches(puzzle: Puzzle) -> Matches:
    """How every two pieces may lie to each other, by the way of their family."""
    pieces = puzzle.outlines
    if looks_like_strips(pieces):
        return match_strips(pieces)
    sides = find_sides(pieces)
    if family(pieces, sides) == "tabs":
        return match_tabs(pieces, sides)
    return match_arcs(pieces)
