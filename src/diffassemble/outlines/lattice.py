"""Jigsaw pieces on a lattice: what two sides say to each other, and pieces in cells whose number nobody told.

A cell is (column, row); directions are 0 right, 1 down, 2 left, 3 up. A piece turned by q quarter turns shows its side
s in direction (s + q) % 4. Sides are numbered 4·piece + side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from diffassemble.core import Matches
from diffassemble.outlines.sides import FLAT, Sides

AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1))
Cell = tuple[int, int]
# A tab and a hole never speak against each other more than this: dust on one side must not outweigh three that fit.
# Then log odds of sides that can't fit; and of a piece that stands where the frame says it can't, or as the frame
# demands.
DUSTY, _IMPOSSIBLE, _OFF_FRAME, _ON_FRAME = -4.0, -9.0, -6.0, 1.5


class Placed(NamedTuple):
    """A piece and by how many quarter turns it is turned."""

    piece: int
    turn: int

    def side(self, direction: int) -> int:
        """The number of the side it shows in this direction."""
        return 4 * self.piece + (direction - self.turn) % 4


class Evidence:
    """What is known of sides: log odds of pairs, and which of them are flat.

    Matches tell the odds of a pair against all wrong partners of a side together. Here, log odds are those of two sides
    that face each other anyway; who chose the piece for its place among all others takes off `prior`, the log odds that
    any one piece belongs there before anything was compared.
    """

    def __init__(self, matches: Matches, sides: Sides) -> None:
        self.shapes = [int(shape) for shape in sides.shapes.ravel()]
        self.known = np.isfinite(sides.doubt)
        self.partners: list[dict[int, float]] = [{} for _ in self.shapes]
        self.probable: dict[tuple[int, int], float] = {}
        many = math.log(max(2, sum(shape != FLAT for shape in self.shapes) / 2))
        one = (4 * matches.first + matches.slot // 4).tolist()
        two = (4 * matches.second + matches.slot % 4).tolist()
        quality, chance = matches.quality_log_odds.tolist(), matches.probability.tolist()
        for own, other, odds, probable in zip(one, two, quality, chance, strict=True):
            self.partners[own][other] = max(odds + many, DUSTY)
            self.probable[own, other] = probable
        open_sides = max(1, sum(shape != FLAT for shape in self.shapes))
        share = min(0.95, max(0.1, sum(matches.probability.tolist()) / open_sides))
        self.prior = math.log(share / (1 - share)) - many

    def between(self, own: int, other: int) -> float:
        """Log odds of two sides that would face each other."""
        odds = self.partners[own].get(other)
        if odds is not None:
            return odds
        return DUSTY if self.shapes[own] == -self.shapes[other] != FLAT else _IMPOSSIBLE


class Layout:
    """Pieces in cells that hold together; where flat sides look, there is the frame."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.cells: dict[Cell, Placed] = {}
        # How many flat sides look in each direction at each place along it, and how many pieces stand there.
        self._flat: list[Counter[int]] = [Counter() for _ in AROUND]
        self._taken: list[Counter[int]] = [Counter() for _ in AROUND]
        self.frame: list[int | None] = [None] * 4
        self.reach: list[int] = [0] * 4

    def __len__(self) -> int:
        return len(self.cells)

    def put(self, cell: Cell, placed: Placed) -> None:
        """Put a piece into a free cell."""
        self.cells[cell] = placed
        self._count(cell, placed, 1)

    def take(self, cell: Cell) -> Placed:
        """Take the piece out of a cell."""
        placed = self.cells.pop(cell)
        self._count(cell, placed, -1)
        return placed

    def _count(self, cell: Cell, placed: Placed, by: int) -> None:
        for direction, (dx, dy) in enumerate(AROUND):
            at = cell[0] * dx + cell[1] * dy
            taken, flat = self._taken[direction], self._flat[direction]
            taken[at] += by
            if not taken[at]:
                del taken[at]
            self.reach[direction] = max(taken, default=0)
            if self.evidence.shapes[placed.side(direction)] == FLAT:
                flat[at] += by
                # Most flat sides know where the frame is; of as many, those further out.
                most = max(((count, place) for place, count in flat.items() if count > 0), default=None)
                self.frame[direction] = None if most is None else most[1]

    def neighbours(self, cell: Cell) -> Iterator[tuple[int, Cell]]:
        """Directions in which a piece stands beside a cell, and its cell."""
        for direction, (dx, dy) in enumerate(AROUND):
            beside = (cell[0] + dx, cell[1] + dy)
            if beside in self.cells:
                yield direction, beside

    def support(self, cell: Cell, placed: Placed) -> float:
        """The log odds by all neighbours of a piece in this cell."""
        total = 0.0
        for direction, beside in self.neighbours(cell):
            total += self.evidence.between(placed.side(direction), self.cells[beside].side(direction + 2))
        return total

    def framed(self, cell: Cell, placed: Placed) -> float:
        """The log odds by what is known of the frame."""
        total = 0.0
        for direction, (dx, dy) in enumerate(AROUND):
            at, line = cell[0] * dx + cell[1] * dy, self.frame[direction]
            flat = self.evidence.shapes[placed.side(direction)] == FLAT
            if line is None:
                total += _OFF_FRAME if flat and self.reach[direction] > at else 0.0
            elif at == line:
                total += _ON_FRAME if flat else _OFF_FRAME
            elif at > line or flat:
                total += _OFF_FRAME
        return total

    def value(self, cell: Cell, placed: Placed) -> float:
        """The log odds of a piece in this cell, the piece itself left out of account if it stands there."""
        return self.support(cell, placed) + self.framed(cell, placed)

    def candidates(self, cell: Cell) -> set[Placed]:
        """All that any neighbour of a cell asks for."""
        found = set()
        for direction, beside in self.neighbours(cell):
            for other in self.evidence.partners[self.cells[beside].side(direction + 2)]:
                found.add(Placed(other // 4, (direction - other % 4) % 4))
        return found

    def frontier(self) -> set[Cell]:
        """Free cells beside pieces."""
        beside = {(x + dx, y + dy) for x, y in self.cells for dx, dy in AROUND}
        return beside - self.cells.keys()

    @property
    def total(self) -> float:
        """The log odds of all pieces in their cells together."""
        pairs = sum(self.support(cell, placed) for cell, placed in self.cells.items()) / 2
        frame = sum(self.framed(cell, placed) for cell, placed in self.cells.items())
        return pairs + frame + self.evidence.prior * (len(self) - 1)
