"""The solver `grow`: flat pieces are compared once, and grown together in the way of their family, best first."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from diffassemble.core import Matches, Poses, Puzzle
from diffassemble.core.solver import Step, in_content_order
from diffassemble.outlines.arcs import match_arcs
from diffassemble.outlines.grown import Grown
from diffassemble.outlines.growth import grow_free
from diffassemble.outlines.lattice_growth import grow_lattice
from diffassemble.outlines.lattice_poses import lay_aside
from diffassemble.outlines.matches import family
from diffassemble.outlines.sides import find_sides
from diffassemble.outlines.strips import looks_like_strips, match_strips, order_strips
from diffassemble.outlines.tabs import match_tabs

# Steps in which the growth is shown.
_SHOWN = 24


@dataclass(frozen=True)
class GrowSolver:
    """Joins pieces along the matches of their outlines; what fits nowhere lies beside, with confidence 0.

    After `budget` seconds nothing is improved any more. With `several` the pieces may be of more than one whole.
    """

    budget: float = math.inf
    several: bool = False
    name: str = "grow"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the pieces lying apart, the whole as it grows, and the answer with confidences.

        Nothing is drawn by the generator, and the answer does not depend on the order in which pieces are listed.
        """
        until = time.monotonic() + self.budget
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, until))

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        apart = lay_aside(puzzle.outlines)
        yield Step(apart, done=0.0)
        grown = grow(puzzle, self.several, until)
        yield from growing(apart, grown)


def grow(puzzle: Puzzle, several: bool = False, until: float = math.inf, matches: Matches | None = None) -> Grown:
    """Grow pieces in the way of their family; who has compared them already gives the `matches`."""
    pieces = puzzle.outlines
    if looks_like_strips(pieces):
        matches = match_strips(pieces) if matches is None else matches
        return order_strips(pieces, matches, puzzle.locks, several, until)
    sides = find_sides(pieces)
    if family(pieces, sides) == "tabs":
        matches = match_tabs(pieces, sides) if matches is None else matches
        return grow_lattice(pieces, matches, puzzle.locks, several, until, sides)
    return grow_free(pieces, match_arcs(pieces) if matches is None else matches, puzzle.locks, several, until)


def growing(apart: Poses, grown: Grown) -> Iterator[Step]:
    """The growth from pieces lying apart to the answer, in a few steps."""
    if grown.order is not None:
        ranks = grown.order.argsort(stable=True).argsort()
        placed = int((grown.objects >= 0).sum())
        for shown in range(1, _SHOWN):
            there = (ranks < placed * shown / _SHOWN) & (grown.objects >= 0)
            poses = Poses(
                torch.where(there[:, None, None], grown.poses.rotation, apart.rotation),
                torch.where(there[:, None], grown.poses.translation, apart.translation),
            )
            yield Step(poses, done=shown / _SHOWN)
    yield Step(grown.poses, 1.0, grown.confidence, grown.objects, notes=grown.notes)
