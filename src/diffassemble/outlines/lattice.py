"""Jigsaw pieces on a lattice that is found, not given: growth along matches of their sides, and confidence.

A cell is (column, row); directions are 0 right, 1 down, 2 left, 3 up. A piece turned by q quarter turns shows its side
s in direction (s + q) % 4. Sides are numbered 4·piece + side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from diffassemble.assembly.growth import Constraint
from diffassemble.core import Matches
from diffassemble.outlines.sides import FLAT, Sides

AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1))
Cell = tuple[int, int]


@dataclass(frozen=True)
class LatticeConfig:
    """When pieces and parts are joined, and how they become an answer.

    Log odds were chosen on made puzzles and photographed training pieces (docs/decisions/010-lattice-growth.md).
    """

    least: float = 0.5
    """log odds over all rivals for a cell that a piece needs"""
    least_merge: float = 1.5
    """log odds that two parts need"""
    large: int = 6
    """a part of so many pieces, all being of one whole, is rather joined by a doubtful side than not at all:"""
    least_merge_large: float = -1.5
    """then this suffices"""
    merge_from: float = 0.0
    """sides propose to merge two parts if their own log odds are above this"""
    contradiction: float = -4.0
    """log odds of a tab and a hole are at least this: dust on one side must not outweigh three that fit"""
    impossible: float = -9.0
    """log odds of two tabs, two holes, or a flat side beside a piece"""
    bad: float = -2.0
    """log odds below which a piece is noted to fit a neighbour badly"""
    shares: tuple[float, float] = (0.1, 0.95)
    """bounds of the estimated share of sides that have a partner"""
    near_cell: float = 0.35
    """a locked piece is in a cell if it is so near to it, in sides and in quarter turns"""
    least_weight: float = 0.05
    """matches pull by their quality, but at least so much"""
    smallest: float = 0.67
    """unless there are several wholes, smaller parts beside the whole than this times √n pieces are unplaced"""
    gap: float = 0.3
    """parts and unplaced pieces are laid so far apart, in roots of a piece's area"""


LATTICE = LatticeConfig()


class Placed(NamedTuple):
    """A piece and by how many quarter turns it is turned."""

    piece: int
    turn: int

    def side(self, direction: int) -> int:
        """The number of the side it shows in this direction."""
        return 4 * self.piece + (direction - self.turn) % 4


class Fill(NamedTuple):
    """A join: the best loose piece for a free cell of a part."""

    part: int
    cell: Cell


class Merge(NamedTuple):
    """A join: the parts of two sides, so that these face each other."""

    own: int
    other: int


Join = Fill | Merge
Part = dict[Cell, Placed]
"""pieces in cells that hold together"""
Around = list[tuple[int, int]]
"""directions in which a cell has a neighbour, and the side by which that faces it"""


def neighbours(part: Part, cell: Cell) -> Iterator[tuple[int, Cell]]:
    """Directions in which a piece is beside a cell, and its cell."""
    for direction, (dx, dy) in enumerate(AROUND):
        beside = (cell[0] + dx, cell[1] + dy)
        if beside in part:
            yield direction, beside


def around(part: Part, cell: Cell) -> Around:
    """The sides that face a cell."""
    return [(direction, part[beside].side(direction + 2)) for direction, beside in neighbours(part, cell)]


def frontier(part: Part, cells: Iterable[Cell]) -> list[Cell]:
    """Free cells beside some cells of a part, each once."""
    beside = dict.fromkeys((x + dx, y + dy) for x, y in cells for dx, dy in AROUND)
    return [cell for cell in beside if cell not in part]


class SideEvidence:
    """Log odds of pairs of sides that face each other, packed for growth.

    `partners[s][t]` are those of sides s and t whatever the rivals. Whoever chooses a piece for a cell among all others
    adds `prior`, the log odds that any one piece belongs there before anything was compared.
    """

    def __init__(self, matches: Matches, sides: Sides, config: LatticeConfig = LATTICE) -> None:
        self.config = config
        self.shapes: list[int] = sides.shapes.ravel().tolist()
        self.known: list[bool] = np.isfinite(sides.doubt).tolist()
        outer = max(1, int((sides.shapes != FLAT).sum()))
        many = math.log(max(2, outer / 2))
        self.partners: list[dict[int, float]] = [{} for _ in self.shapes]
        self.match: dict[tuple[int, int], int] = {}
        one, two = 4 * matches.first + matches.slot // 4, 4 * matches.second + matches.slot % 4
        quality = matches.quality_log_odds.tolist()
        for number, (own, other, odds) in enumerate(zip(one.tolist(), two.tolist(), quality, strict=True)):
            self.partners[own][other] = max(odds + many, config.contradiction)
            self.match[own, other] = number
        self.chance: list[float] = matches.log_odds.tolist()
        share = float(np.clip(float(matches.probability.sum()) / outer, *config.shares))
        self.prior = math.log(share / (1 - share)) - many

    def fit(self, facing: Around, placed: Placed) -> list[float]:
        """Log odds of a piece in a cell by each neighbour."""
        found = []
        for direction, other in facing:
            own = placed.side(direction)
            odds = self.partners[own].get(other)
            if odds is None:
                fits = self.shapes[own] == -self.shapes[other] != FLAT
                odds = self.config.contradiction if fits else self.config.impossible
            found.append(odds)
        return found

    def candidates(self, facing: Around) -> dict[Placed, float]:
        """All pieces that fit a side around a cell, and their log odds there."""
        asked = (Placed(other // 4, (way - other) % 4) for way, side in facing for other in self.partners[side])
        return {placed: sum(self.fit(facing, placed)) + self.prior for placed in dict.fromkeys(asked)}


@dataclass
class Lattice:
    """Parts by their numbers, and the part and cell of every piece, those joined last at the end.

    A piece that is a part alone is loose, unless it is locked: locked pieces are in the part `home`.
    """

    parts: dict[int, Part]
    where: dict[int, tuple[int, Cell]]
    made: int = 0
    home: int = -1

    def loose(self, number: int) -> bool:
        """Whether a part is a loose piece."""
        return len(self.parts[number]) == 1 and number != self.home

    def add(self, part: Part) -> int:
        """The number of a further part."""
        self.parts[self.made] = part
        self.where.update({placed.piece: (self.made, cell) for cell, placed in part.items()})
        self.made += 1
        return self.made - 1

    def put(self, number: int, cells: dict[Cell, Placed]) -> None:
        """Put pieces into free cells of a part."""
        for cell, placed in cells.items():
            self.parts[number][cell] = placed
            del self.where[placed.piece]
            self.where[placed.piece] = (number, cell)


class LatticeConstraint(Constraint[Lattice, Join]):
    """Growth on a lattice: a cell holds one piece, and the evidence is that of all sides that meet.

    Pieces that are `locked` never leave their cells. Unless there are `several` wholes, large parts may be joined in
    doubt.
    """

    def __init__(self, evidence: SideEvidence, locked: dict[Cell, Placed], several: bool) -> None:
        self.packed, self.locked, self.several = evidence, locked, several
        self.config = evidence.config

    def begin(self) -> Lattice:
        """All pieces loose, but the locked ones."""
        state = Lattice({}, {})
        if self.locked:
            state.home = state.add(dict(self.locked))
        for piece, known in enumerate(self.packed.known):
            if known and piece not in state.where:
                state.add({(0, 0): Placed(piece, 0)})
        return state

    def proposals(self, state: Lattice) -> Iterator[Join]:
        """All free cells beside pieces, and likely pairs of sides of parts."""
        for number, part in state.parts.items():
            yield from (Fill(number, cell) for cell in frontier(part, part))
        for number, part in state.parts.items():
            yield from self._merges(state, number, part.values())

    def _merges(self, state: Lattice, number: int, pieces: Iterable[Placed]) -> Iterator[Merge]:
        """Likely pairs of sides of these pieces of a part and of other parts."""
        for placed in () if state.loose(number) else pieces:
            for own in range(4 * placed.piece, 4 * placed.piece + 4):
                for other, odds in self.packed.partners[own].items():
                    there = state.where[other // 4][0]
                    if odds > self.config.merge_from and there != number and not state.loose(there):
                        yield Merge(min(own, other), max(own, other))

    def evidence(self, state: Lattice, join: Join) -> float:
        """Log odds of the best piece for a cell over all rivals, or of all sides that meet between two parts."""
        return self._best(state, join)[0] if isinstance(join, Fill) else self._moved(state, join)[0]

    def _best(self, state: Lattice, join: Fill) -> tuple[float, Placed | None]:
        part, nothing = state.parts.get(join.part), (-math.inf, None)
        if part is None or join.cell in part:
            return nothing
        facing = around(part, join.cell)
        values = {
            placed: value
            for placed, value in self.packed.candidates(facing).items()
            if (number := state.where[placed.piece][0]) != join.part and state.loose(number)
        }
        if not values:
            return nothing
        most, best = max((value, placed) for placed, value in values.items())
        rivals = sum(math.exp(min(value, 50.0)) for placed, value in values.items() if placed.piece != best.piece)
        margin = most - math.log1p(rivals)
        if len(facing) == 1:  # other sides may fit this piece, too
            direction, side = facing[0]
            margin = min(margin, self.packed.chance[self.packed.match[side, best.side(direction)]])
        return (margin, best) if margin >= self.config.least else nothing

    def _moved(self, state: Lattice, join: Merge) -> tuple[float, int, int, dict[Cell, Placed]]:
        """Log odds of joining two parts, which one stays, which one moves, and where to; parts must not collide."""
        own, other = join
        if self._stays(state, other // 4) > self._stays(state, own // 4):
            own, other = other, own
        (stays, there), (moves, cell) = state.where[own // 4], state.where[other // 4]
        impossible = -math.inf, stays, moves, dict[Cell, Placed]()
        if stays == moves or state.loose(moves):
            return impossible
        home, guest = state.parts[stays], state.parts[moves]
        facing = (own + home[there].turn) % 4
        turn = (facing + 2 - other - guest[cell].turn) % 4
        (x, y), (dx, dy) = turned(cell, turn), AROUND[facing]
        x, y = there[0] + dx - x, there[1] + dy - y
        moved = {}
        for old, placed in guest.items():
            goal = turned(old, turn)
            moved[goal[0] + x, goal[1] + y] = Placed(placed.piece, (placed.turn + turn) % 4)
        if not home.keys().isdisjoint(moved):
            return impossible
        total = self.packed.prior
        for goal, placed in moved.items():
            total += sum(self.packed.fit(around(home, goal), placed))
        doubtful = not self.several and len(moved) >= self.config.large
        least = self.config.least_merge_large if doubtful else self.config.least_merge
        return (total, stays, moves, moved) if total >= least else impossible

    def _stays(self, state: Lattice, piece: int) -> tuple[bool, int, int]:
        """The part of the piece for which this is larger stays where it is."""
        number = state.where[piece][0]
        return number == state.home, len(state.parts[number]), -number

    def join(self, state: Lattice, join: Join) -> list[Join]:
        """Make a join; new are the cells beside what moved, and pairs of its sides with those of other parts."""
        if isinstance(join, Fill):
            _, placed = self._best(state, join)
            assert placed is not None
            number, moved = join.part, {join.cell: placed}
            del state.parts[state.where[placed.piece][0]]
            fresh = [*state.parts[number].values(), placed] if state.loose(number) else [placed]
        else:
            _, number, gone, moved = self._moved(state, join)
            del state.parts[gone]
            fresh = list(moved.values())
        state.put(number, moved)
        beside = frontier(state.parts[number], moved)
        return [*(Fill(number, cell) for cell in beside), *self._merges(state, number, fresh)]


def turned(cell: Cell, turn: int) -> Cell:
    """A cell after clockwise quarter turns about the origin."""
    x, y = cell
    for _ in range(turn % 4):
        x, y = -y, x
    return x, y
