"""Which family flat pieces are of, and how they are compared: each family has its own way to Matches."""

from __future__ import annotations

from typing import Literal

import numpy as np

from diffassemble.core import Matches, OutlinePieces, Puzzle
from diffassemble.outlines.arcs import match_arcs
from diffassemble.outlines.sides import FLAT, Sides, find_sides
from diffassemble.outlines.strips import looks_like_strips, match_strips
from diffassemble.outlines.tabs import match_tabs

Family = Literal["tabs", "strips", "free"]
# Doubt in a piece's four sides from which on it is no jigsaw piece: those of photographed and made puzzles are below 2,
# nearly all fresco fragments, torn and broken pieces above 4.
_DOUBT = 3.0


def family(pieces: OutlinePieces, sides: Sides | None = None) -> Family:
    """Whether pieces are jigsaw pieces with tabs, strips, or of any outline: what most of them are."""
    if looks_like_strips(pieces):
        return "strips"
    sides = find_sides(pieces) if sides is None else sides
    bulging = (sides.shapes != FLAT).any(1)
    if float(np.mean((sides.doubt < _DOUBT) & bulging)) > 0.5:
        return "tabs"
    return "free"


def find_matches(puzzle: Puzzle) -> Matches:
    """How every two pieces may lie to each other, by the way of their family."""
    pieces = puzzle.outlines
    if looks_like_strips(pieces):
        return match_strips(pieces)
    sides = find_sides(pieces)
    if family(pieces, sides) == "tabs":
        return match_tabs(pieces, sides)
    return match_arcs(pieces)
