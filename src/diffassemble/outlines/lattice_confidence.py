"""How sure each piece of a lattice is: by its neighbours against all rivals, and by what holds its surroundings.

A piece may fit its neighbours perfectly and be wrong with all of them. So a piece is no surer than any group around it,
in the order in which groups hold together, is held by the rest.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable

from diffassemble.outlines.lattice import Cell, Layout

# Confidence is the logistic function of these times the least log odds.
_SLOPE, _SHIFT = 0.9, -0.4
# A piece that one side alone holds is never surer than this: a foreign piece may fit one side by chance.
_ONE_SIDE = 0.88


def confidences(layouts: Iterable[Layout]) -> dict[int, float]:
    """The probability that each placed piece stands where it should beside the others of its part."""
    parts = list(layouts)
    at_home = {placed.piece: layout.value(cell, placed) for layout in parts for cell, placed in layout.cells.items()}
    sure = {}
    for layout in parts:
        held, margin = group_odds(layout), margins(layout, at_home)
        for cell, placed in layout.cells.items():
            logit = _SLOPE * min(held[cell], margin[cell]) + _SHIFT
            found = 1 / (1 + math.exp(-min(max(logit, -30.0), 30.0)))
            alone = sum(1 for _ in layout.neighbours(cell)) < 2
            sure[placed.piece] = min(found, _ONE_SIDE) if alone else found
    return sure


def margins(layout: Layout, at_home: dict[int, float]) -> dict[Cell, float]:
    """How far the log odds of each piece are above those of all others in its cell, and of itself in free cells.

    A rival that stands elsewhere counts by what would be won by moving it: `at_home` says what holds pieces where they
    are.
    """
    prior = layout.evidence.prior
    elsewhere: defaultdict[int, float] = defaultdict(float)
    for cell in layout.frontier():
        for placed in layout.candidates(cell):
            elsewhere[placed.piece] += math.exp(min(layout.value(cell, placed) + prior, 50.0))
    found = {}
    for cell, placed in layout.cells.items():
        rivals = 1.0 + elsewhere[placed.piece]
        for other in layout.candidates(cell):
            if other.piece != placed.piece:
                gain = layout.value(cell, other) - max(at_home.get(other.piece, 0.0), 0.0)
                rivals += math.exp(min(gain + prior, 50.0))
        found[cell] = layout.value(cell, placed) + prior - math.log(rivals)
    return found


def group_odds(layout: Layout) -> dict[Cell, float]:
    """Of each cell, the least log odds by which any group around it is held by all others of the part.

    Groups are made by joining, again and again, the two that most speaks for; those of more than half of all pieces are
    what the others are held by.
    """
    evidence = layout.evidence
    between: dict[Cell, dict[Cell, float]] = {cell: {} for cell in layout.cells}
    for cell, placed in layout.cells.items():
        for direction, beside in layout.neighbours(cell):
            odds = evidence.between(placed.side(direction), layout.cells[beside].side(direction + 2))
            between[cell][beside] = odds
    members = {cell: [cell] for cell in layout.cells}
    least = dict.fromkeys(layout.cells, math.inf)
    queue = [(-odds, one, two) for one, others in between.items() for two, odds in others.items() if one < two]
    heapq.heapify(queue)

    def weigh(group: Cell) -> None:
        if 2 * len(members[group]) <= len(layout):
            held = sum(between[group].values()) + evidence.prior
            for cell in members[group]:
                least[cell] = min(least[cell], held)

    for cell in layout.cells:
        weigh(cell)
    while queue:
        told, one, two = heapq.heappop(queue)
        if one not in members or two not in members or between[one].get(two) != -told:
            continue
        if len(members[one]) < len(members[two]):
            one, two = two, one
        members[one] += members.pop(two)
        del between[one][two], between[two][one]
        for other, odds in between.pop(two).items():
            del between[other][two]
            total = between[one].get(other, 0.0) + odds
            between[one][other] = between[other][one] = total
            heapq.heappush(queue, (-total, min(one, other), max(one, other)))
        weigh(one)
    return least
