"""Jigsaw pieces put together: the surest piece next, on a lattice that is found, not given.

A piece that two or more neighbours ask for is surer than one that a single side asks for; flat sides lie at the frame.
What disagrees with its neighbours is taken out again and grown anew. Pieces that nothing asks for are left out.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import count

import torch

from diffassemble.core import Locks, Matches, OutlinePieces, Placements
from diffassemble.outlines.lattice import AROUND, Cell, Evidence, Layout, Placed
from diffassemble.outlines.lattice_confidence import confidences
from diffassemble.outlines.lattice_poses import locked_cells, pose_layouts, rows_and_columns
from diffassemble.outlines.sides import Sides, find_sides

# A piece is placed if its log odds are at least this, where one side alone asks for it that, since a foreign piece may
# fit one side by chance; a part is joined to another from there on.
_LEAST, _LEAST_ALONE, _LEAST_JOIN = 0.5, 1.4, 1.5
# A part of so many pieces is rather joined by a doubtful side than not at all, if all belong to one whole; it is told
# as unsure.
_LARGE, _LEAST_JOIN_LARGE = 6, -1.5
# The log odds of the pair that a new part begins with.
_SEED = 1.0
# Pieces whose neighbours together say less than this of them, or one of them less than that, are taken out; so many
# times at most.
_POOR, _BAD, _ROUNDS = 1.0, -2.0, 6
# Parts of fewer pieces than this are left out. Of parts beside the whole nobody knows where they belong: so sure at
# most.
_SMALLEST, _ELSEWHERE = 2, 0.45
# How many ways to join two parts are looked at.
_WAYS = 8


def grow_lattice(
    pieces: OutlinePieces,
    matches: Matches,
    locks: Locks | None = None,
    several: bool = False,
    until: float = math.inf,
    sides: Sides | None = None,
) -> Placements:
    """Assemble jigsaw pieces along matches of their sides; `locks` stay, and after `until` nothing is improved.

    With `several` every part that holds together is an object of its own; without, the largest one is the whole, and
    where the others belong is not known.
    """
    sides = find_sides(pieces) if sides is None else sides
    evidence = Evidence(matches, sides)
    growth = Growth(evidence, {} if locks is None else locked_cells(sides, locks), several)
    growth.run(until)
    return told(pieces, matches, sides, locks, several, growth)


class Growth:
    """Parts as they grow. `locked` pieces begin the first part and never leave their cells."""

    def __init__(self, evidence: Evidence, locked: dict[Cell, Placed], several: bool = False) -> None:
        self.evidence, self.several = evidence, several
        self.free = {piece for piece in range(len(evidence.known)) if evidence.known[piece]}
        self.layouts: list[Layout] = []
        self.locked = set(locked)
        self.order: dict[int, int] = {}
        self._clock = count()
        # The part with what is locked.
        self.home = self._begin(locked) if locked else None

    def _begin(self, cells: dict[Cell, Placed]) -> Layout:
        layout = Layout(self.evidence)
        self.layouts.append(layout)
        for cell, placed in cells.items():
            self._put(layout, cell, placed)
        return layout

    def _put(self, layout: Layout, cell: Cell, placed: Placed) -> None:
        layout.put(cell, placed)
        self.free.discard(placed.piece)
        self.order[placed.piece] = next(self._clock)

    def _take(self, layout: Layout, cell: Cell) -> None:
        placed = layout.take(cell)
        self.free.add(placed.piece)
        del self.order[placed.piece]

    def run(self, until: float) -> None:
        """Grow parts until nothing fits any more, then take out what fits badly, and grow again."""
        self._fill()
        best, kept = self._total(), self._copy()
        for _ in range(_ROUNDS):
            if time.monotonic() > until or not self._take_poor():
                break
            self._fill()
            total = self._total()
            if total <= best + 1e-6:
                break
            best, kept = total, self._copy()
        self._restore(kept)

    def _total(self) -> float:
        return sum((layout.total for layout in self.layouts), start=0.0)

    def _copy(self) -> tuple[list[dict[Cell, Placed]], dict[int, int]]:
        return [dict(layout.cells) for layout in self.layouts], dict(self.order)

    def _restore(self, kept: tuple[list[dict[Cell, Placed]], dict[int, int]]) -> None:
        self.layouts, self.order = [], {}
        self.free = {piece for piece in range(len(self.evidence.known)) if self.evidence.known[piece]}
        for cells in kept[0]:
            self._begin(cells)
        self.home = self.layouts[0] if self.locked else None
        self.order = kept[1]

    def _fill(self) -> None:
        """Let all parts grow, begin new ones, and join them."""
        for layout in self.layouts:
            self._grow(layout)
        for pair in self._seeds():
            if all(side // 4 in self.free for side in pair):
                one, two = pair
                layout = self._begin({(0, 0): Placed(one // 4, -one % 4), (1, 0): Placed(two // 4, (2 - two) % 4)})
                self._grow(layout)
        while self._join():
            pass
        self.layouts.sort(key=lambda layout: (layout is not self.home, -len(layout)))

    def _seeds(self) -> list[tuple[int, int]]:
        """Pairs of sides that are probable enough to begin with, the most probable first."""
        least = 1 / (1 + math.exp(-_SEED))
        pairs = [pair for pair, probable in self.evidence.probable.items() if probable > least and pair[0] < pair[1]]
        odds = {pair: (self.evidence.probable[pair], self.evidence.partners[pair[0]][pair[1]]) for pair in pairs}
        return sorted(pairs, key=lambda pair: odds[pair], reverse=True)

    def _grow(self, layout: Layout) -> None:
        """Put the surest piece into its cell, again and again."""
        queue: list[tuple[float, Cell, Placed]] = []
        self._look(layout, layout.frontier(), queue)
        while queue:
            told, cell, placed = heapq.heappop(queue)
            if cell in layout.cells:
                continue
            now = self._best(layout, cell)
            if now is None:
                continue
            if now[1] != placed or now[0] < -told - 1e-9:
                heapq.heappush(queue, (-now[0], cell, now[1]))
                continue
            self._put(layout, cell, placed)
            x, y = cell
            self._look(layout, ((x + dx, y + dy) for dx, dy in AROUND), queue)

    def _look(self, layout: Layout, cells: Iterable[Cell], queue: list[tuple[float, Cell, Placed]]) -> None:
        for cell in cells:
            if cell not in layout.cells:
                best = self._best(layout, cell)
                if best is not None:
                    heapq.heappush(queue, (-best[0], cell, best[1]))

    def _best(self, layout: Layout, cell: Cell) -> tuple[float, Placed] | None:
        """The best free piece for a cell, and how far its log odds are above those of all others, if enough."""
        values = [
            (layout.value(cell, placed) + self.evidence.prior, placed)
            for placed in layout.candidates(cell)
            if placed.piece in self.free
        ]
        if not values:
            return None
        most, placed = max(values)
        rivals = 1.0 + sum(math.exp(min(value, 50.0)) for value, other in values if other.piece != placed.piece)
        margin = most - math.log(rivals)
        beside = list(layout.neighbours(cell))
        if len(beside) == 1:
            # One side alone: others may want this piece as well.
            direction, other = beside[0]
            pair = (placed.side(direction), layout.cells[other].side(direction + 2))
            probable = min(max(self.evidence.probable.get(pair, 0.0), 1e-9), 1 - 1e-9)
            margin = min(margin, math.log(probable / (1 - probable)))
        return (margin, placed) if margin >= (_LEAST_ALONE if len(beside) == 1 else _LEAST) else None

    def _take_poor(self) -> bool:
        """Take out pieces that their neighbours, or the frame, speak against; whether there were any."""
        found = False
        for layout in self.layouts:
            held = self.locked if layout is self.home else set()
            poor = [
                cell
                for cell, placed in layout.cells.items()
                if cell not in held and self._is_poor(layout, cell, placed)
            ]
            for cell in poor:
                self._take(layout, cell)
            found = found or bool(poor)
        self._split()
        return found

    def _is_poor(self, layout: Layout, cell: Cell, placed: Placed) -> bool:
        if layout.value(cell, placed) + self.evidence.prior < _POOR:
            return True
        sides = (
            self.evidence.between(placed.side(direction), layout.cells[beside].side(direction + 2))
            for direction, beside in layout.neighbours(cell)
        )
        return min(sides, default=0.0) < _BAD

    def _split(self) -> None:
        """Parts that no longer hold together become several; single pieces are free again."""
        for layout in list(self.layouts):
            held = self.locked if layout is self.home else set()
            groups = connected(layout)
            main = max(groups, key=lambda group: (len(group & held), len(group)), default=set())
            for group in groups:
                if group is main and (len(group) > 1 or group & held):
                    continue
                loose = {cell: layout.cells[cell] for cell in group if cell not in held}
                for cell in loose:
                    self._take(layout, cell)
                if len(loose) > 1:
                    self._begin(loose)
        self.layouts = [layout for layout in self.layouts if len(layout)]

    def _join(self) -> bool:
        """Join the two parts that most speaks for; whether there were two such."""
        where = {
            placed.piece: (part, cell)
            for part, layout in enumerate(self.layouts)
            for cell, placed in layout.cells.items()
        }
        votes: defaultdict[tuple[int, int, int, int, int], float] = defaultdict(float)
        for (own, other), _ in self.evidence.probable.items():
            if own // 4 in where and other // 4 in where and where[own // 4][0] < where[other // 4][0]:
                (one, there), (two, cell) = where[own // 4], where[other // 4]
                stays, moves = self.layouts[one].cells[there], self.layouts[two].cells[cell]
                facing = (own % 4 + stays.turn) % 4
                turn = (facing + 2 - other % 4 - moves.turn) % 4
                x, y = turned(cell, turn)
                dx, dy = AROUND[facing]
                votes[one, two, turn, there[0] + dx - x, there[1] + dy - y] += self.evidence.partners[own][other]
        ways = sorted(votes, key=lambda way: -votes[way])[: _WAYS * 4]
        values = sorted(((self._joined(*way), way) for way in ways), reverse=True)
        values = [(value, way) for value, way in values if value + self.evidence.prior >= self._least_join(way[1])]
        if not values:
            return False
        one, two, turn, x, y = values[0][1]
        mover = self.layouts.pop(two)
        for cell, placed in mover.cells.items():
            at = turned(cell, turn)
            self.layouts[one].put((at[0] + x, at[1] + y), Placed(placed.piece, (placed.turn + turn) % 4))
        self._grow(self.layouts[one])
        return True

    def _least_join(self, part: int) -> float:
        """From which log odds on a part is joined to a larger one."""
        return _LEAST_JOIN if self.several or len(self.layouts[part]) < _LARGE else _LEAST_JOIN_LARGE

    def _joined(self, one: int, two: int, turn: int, x: int, y: int) -> float:
        """What speaks for joining one part to another; parts that collide can't be joined."""
        layout, total = self.layouts[one], 0.0
        for cell, placed in self.layouts[two].cells.items():
            at = turned(cell, turn)
            goal = (at[0] + x, at[1] + y)
            if goal in layout.cells:
                return -math.inf
            moved = Placed(placed.piece, (placed.turn + turn) % 4)
            # That pieces come to lie at the frame says little: they are many, but one shift brings all of them there.
            total += layout.support(goal, moved) + min(layout.framed(goal, moved), 0.0)
        return total


def turned(cell: Cell, turn: int) -> Cell:
    """A cell after quarter turns about the first one, clockwise as seen."""
    x, y = cell
    for _ in range(turn % 4):
        x, y = -y, x
    return x, y


def connected(layout: Layout) -> list[set[Cell]]:
    """Groups of cells that hold together by neighbours."""
    left, groups = set(layout.cells), []
    while left:
        ahead, group = [left.pop()], set()
        while ahead:
            cell = ahead.pop()
            group.add(cell)
            for _, beside in layout.neighbours(cell):
                if beside in left:
                    left.discard(beside)
                    ahead.append(beside)
        groups.append(group)
    return groups


def told(
    pieces: OutlinePieces,
    matches: Matches,
    sides: Sides,
    locks: Locks | None,
    several: bool,
    growth: Growth,
) -> Placements:
    """What is said of the parts: poses, confidence, objects and notes."""
    layouts, total = growth.layouts, len(pieces)
    objects, sure = torch.full((total,), -1), torch.zeros(total)
    notes = [_unplaced(growth.evidence, piece) for piece in range(total)]
    known = confidences(layouts)
    number, numbered = 0, []
    for part, layout in enumerate(layouts):
        apart = part > 0 and not several
        if len(layout) < (_SMALLEST if not apart else max(_SMALLEST, math.sqrt(total) / 1.5)) and part > 0:
            for placed in layout.cells.values():
                notes[placed.piece] = f"left out: fits {len(layout) - 1} other pieces, which fit nowhere"
            continue
        for cell, placed in layout.cells.items():
            objects[placed.piece], sure[placed.piece] = number, known[placed.piece]
            notes[placed.piece] = _note(layout, cell)
            if apart:
                sure[placed.piece] = min(known[placed.piece], _ELSEWHERE)
                notes[placed.piece] = (
                    f"one of {len(layout)} pieces that hold together, but where they belong is not known"
                )
        number += 1
        numbered.append(layout)
    if locks is not None:
        sure, objects = torch.where(locks.held, 1.0, sure), torch.where(locks.held, 0, objects)
        notes = ["" if locks.held[piece] else note for piece, note in enumerate(notes)]
    order = torch.tensor([growth.order.get(piece, total) for piece in range(total)])
    poses = pose_layouts(pieces, matches, sides, layouts, locks)
    cells = rows_and_columns(poses, sides, numbered)
    return Placements(poses, sure, objects, cells, tuple(notes), order=order)


def _unplaced(evidence: Evidence, piece: int) -> str:
    if not evidence.known[piece]:
        return "left out: no four corners were found on its outline"
    return "left out: no side of it fits any other surely enough"


def _note(layout: Layout, cell: Cell) -> str:
    """Why a piece is not surer, if so."""
    placed = layout.cells[cell]
    sides = [
        layout.evidence.between(placed.side(direction), layout.cells[beside].side(direction + 2))
        for direction, beside in layout.neighbours(cell)
    ]
    if len(sides) == 1:
        return "held by one side only"
    poor = sum(odds < _BAD for odds in sides)
    return f"{poor} of its {len(sides)} neighbours fit it badly" if poor else ""
