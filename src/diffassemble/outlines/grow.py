"""The solver `grow`: flat pieces are compared once, and grown together in the way of their family, best first."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int

from diffassemble.core import Matches, Placements, Poses, Puzzle
from diffassemble.core.solver import Step, in_content_order
from diffassemble.outlines.arcs import match_arcs
from diffassemble.outlines.growth import grow_free
from diffassemble.outlines.lattice_growth import grow_lattice
from diffassemble.outlines.lattice_poses import lay_apart, lay_aside
from diffassemble.outlines.matches import families, family
from diffassemble.outlines.sides import find_sides
from diffassemble.outlines.strips import looks_like_strips, match_strips, order_strips
from diffassemble.outlines.tabs import match_tabs
from diffassemble.outlines.upright import Look, stand_up

# Steps in which the growth is shown.
_SHOWN = 24


@dataclass(frozen=True)
class GrowSolver:
    """Joins pieces along the matches of their outlines; what fits nowhere lies beside, with confidence 0.

    After `budget` seconds nothing is improved any more. With `several` the pieces may be of more than one whole.
    `upright` knows which way is up; without it, or with pieces locked, the whole stays as it was put together.
    """

    budget: float = math.inf
    several: bool = False
    upright: Look | None = None
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
        if self.upright is not None and puzzle.locks is None:
            grown = stand_up(self.upright, puzzle.outlines, grown)
        yield from growing(apart, grown)


def grow(puzzle: Puzzle, several: bool = False, until: float = math.inf, matches: Matches | None = None) -> Placements:
    """Grow pieces in the way of their family; who has compared them already gives the `matches`."""
    pieces = puzzle.outlines
    if several and matches is None and len(groups := families(pieces)) > 1:
        return _beside_each_other(puzzle, groups, until)
    if looks_like_strips(pieces):
        matches = match_strips(pieces) if matches is None else matches
        return order_strips(pieces, matches, puzzle.locks, several, until)
    sides = find_sides(pieces)
    if family(pieces, sides) == "tabs":
        matches = match_tabs(pieces, sides) if matches is None else matches
        return grow_lattice(pieces, matches, puzzle.locks, several, until, sides)
    return grow_free(pieces, match_arcs(pieces) if matches is None else matches, puzzle.locks, several, until)


def _beside_each_other(puzzle: Puzzle, groups: list[Int[np.ndarray, "_"]], until: float) -> Placements:
    """Puzzles of several families, each grown by itself; the wholes are numbered by how many pieces they have."""
    count = len(puzzle)
    rotation, translation = torch.eye(2).repeat(count, 1, 1), torch.zeros(count, 2)
    sure, own, cells = torch.zeros(count), torch.full((count,), -1), torch.full((count, 2), -1)
    order, notes, wholes, locks = torch.zeros(count, dtype=torch.long), [""] * count, 0, puzzle.locks
    for members in map(torch.from_numpy, groups):
        part = puzzle.reordered(members)
        held = part.locks is not None and bool(part.locks.held.any())
        grown = grow(part if held else replace(part, locks=None), True, until)
        rotation[members], translation[members] = grown.poses.rotation, grown.poses.translation
        sure[members] = grown.confidence
        own[members] = torch.where(grown.numbers < 0, -1, grown.numbers + wholes)
        cells[members] = -1 if grown.cells is None else grown.cells
        order[members] = (torch.zeros_like(members) if grown.order is None else grown.order) + int(order.max())
        for piece, note in zip(members.tolist(), grown.notes or ("",) * len(grown), strict=True):
            notes[piece] = note
        wholes = int(own.max()) + 1
    fixed = torch.zeros(count, dtype=torch.bool) if locks is None else locks.held
    blocks = [(own == number).nonzero().flatten() for number in range(wholes)]
    blocks.sort(key=lambda block: (not bool(fixed[block].any()), -len(block)))
    for number, block in enumerate(blocks):
        own[block] = number
    single = [piece.reshape(1) for piece in (own < 0).nonzero().flatten()]
    poses = Poses(rotation, translation)
    lay_apart(puzzle.outlines, poses, [*blocks, *single], fixed)
    return Placements(poses, sure, own, cells, tuple(notes), order=order)


def growing(apart: Poses, grown: Placements) -> Iterator[Step]:
    """The growth from pieces lying apart to the answer, in a few steps."""
    if grown.order is not None:
        ranks = grown.order.argsort(stable=True).argsort()
        placed = int((grown.numbers >= 0).sum())
        for shown in range(1, _SHOWN):
            there = (ranks < placed * shown / _SHOWN) & (grown.numbers >= 0)
            poses = Poses(
                torch.where(there[:, None, None], grown.poses.rotation, apart.rotation),
                torch.where(there[:, None], grown.poses.translation, apart.translation),
            )
            yield Step(poses, done=shown / _SHOWN)
    yield Step.last(grown)
