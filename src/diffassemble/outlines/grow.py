"""The solver `grow`: flat pieces are compared once, in the way of their family, grown together, best first, and turned
upright, if the whole is about a rectangle."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Int

from diffassemble.assembly.answer import turned_cells
from diffassemble.core import Matches, OutlinePieces, Placements, Poses, Puzzle
from diffassemble.core.poses import plane_rotations
from diffassemble.core.solver import Step, in_content_order
from diffassemble.outlines.arcs import match_arcs
from diffassemble.outlines.growth import grow_free
from diffassemble.outlines.lattice_answer import grow_lattice, lay_apart, lay_aside
from diffassemble.outlines.sides import FLAT, Sides, find_sides
from diffassemble.outlines.strip_sides import looks_like_strips, strip_like
from diffassemble.outlines.strips import match_strips, order_strips
from diffassemble.outlines.tabs import match_tabs

Family = Literal["tabs", "strips", "free"]
UprightJudge = Callable[[OutlinePieces, Poses, Bool[np.ndarray, "n"]], tuple[int, float]]
"""clockwise quarter turns that make the chosen pieces upright at these poses, and the probability of that"""


@dataclass(frozen=True)
class FamilyConfig:
    """How pieces are sorted into families."""

    doubt: float = 3.0
    """pieces whose four sides are doubted more are no jigsaw pieces: photographed and made ones are below 2, nearly all
    fresco fragments, torn and broken pieces above 4"""
    fewest: int = 4
    """so many pieces may be a puzzle of their own among others of another family"""
    share: float = 0.12
    """and at least this share of all"""
    rectangular: float = 0.85
    """a whole is a rectangle if it fills this share of the smallest one around it"""


FAMILIES = FamilyConfig()
SHOWN = 24
"""steps in which the growth is shown"""


@dataclass(frozen=True)
class GrowSolver:
    """Joins pieces along the matches of their outlines; unplaced ones are laid beside, with confidence 0.

    After `budget` seconds nothing is improved any more. With `several` the pieces may be of more than one whole.
    `upright` knows which way is up; without it, or with pieces locked, the whole stays as it was put together.
    """

    budget: float = math.inf
    several: bool = False
    upright: UprightJudge | None = None
    name: str = "grow"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the pieces apart, the whole as it grows, and the answer with confidences.

        Nothing is drawn by the generator, and the answer does not depend on the order in which pieces are listed.
        """
        until = time.monotonic() + self.budget
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, until))

    def _ordered_steps(self, puzzle: Puzzle, until: float) -> Iterator[Step]:
        apart = lay_aside(puzzle.outlines)
        yield Step(apart, done=0.0)
        grown = grow(puzzle, self.several, until)
        pictured = puzzle.outlines.coloured and not looks_like_strips(puzzle.outlines)  # strips are pages of text
        if self.upright is not None and puzzle.locks is None and pictured:
            grown = turned_upright(self.upright, puzzle.outlines, grown)
        yield from growing(apart, grown)


def family(pieces: OutlinePieces, sides: Sides | None = None) -> Family:
    """Whether pieces are jigsaw pieces with tabs, strips, or of any outline: what most of them are."""
    if looks_like_strips(pieces):
        return "strips"
    return "tabs" if float(np.mean(_jigsaw_like(find_sides(pieces) if sides is None else sides))) > 0.5 else "free"


def _jigsaw_like(sides: Sides) -> np.ndarray:
    return (sides.doubt < FAMILIES.doubt) & (sides.shapes != FLAT).any(1)


def families(pieces: OutlinePieces) -> list[Int[np.ndarray, "_"]]:
    """Pieces of several puzzles by their families, the most numerous first.

    A few that look like another family are of any outline, if there are such, or else odd ones among the most.
    """
    strips = strip_like(pieces)
    jigsaw = _jigsaw_like(find_sides(pieces)) & ~strips
    groups = [jigsaw, strips, ~jigsaw & ~strips]
    enough = [group.sum() >= max(FAMILIES.fewest, FAMILIES.share * len(pieces)) for group in groups]
    home = 2 if enough[2] else int(np.argmax([group.sum() for group in groups]))
    for number, group in enumerate(groups):
        if not enough[number] and number != home:
            groups[home], groups[number] = groups[home] | group, np.zeros_like(group)
    return sorted((np.flatnonzero(group) for group in groups if group.any()), key=len, reverse=True)


def find_matches(puzzle: Puzzle) -> Matches:
    """How every two pieces may fit each other, compared in the way of their family."""
    pieces = puzzle.outlines
    if looks_like_strips(pieces):
        return match_strips(pieces)
    sides = find_sides(pieces)
    return match_tabs(pieces, sides) if family(pieces, sides) == "tabs" else match_arcs(pieces)


def grow(puzzle: Puzzle, several: bool = False, until: float = math.inf) -> Placements:
    """Compare and grow pieces in the way of their family."""
    pieces = puzzle.outlines
    if several and len(groups := families(pieces)) > 1:
        return _beside_each_other(puzzle, groups, until)
    if looks_like_strips(pieces):
        return order_strips(pieces, match_strips(pieces), puzzle.locks, several, until)
    sides = find_sides(pieces)
    if family(pieces, sides) == "tabs":
        return grow_lattice(pieces, match_tabs(pieces, sides), puzzle.locks, several, sides)
    return grow_free(pieces, match_arcs(pieces), puzzle.locks, several, until)


def _beside_each_other(puzzle: Puzzle, groups: list[Int[np.ndarray, "_"]], until: float) -> Placements:
    """Puzzles of several families, each grown separately; the wholes are numbered by how many pieces they have."""
    count, locks = len(puzzle), puzzle.locks
    held = torch.zeros(count, dtype=torch.bool) if locks is None else locks.held
    found = Placements(Poses.identity(count, 2), torch.zeros(count))
    own, cells, order = torch.full((count,), -1), torch.full((count, 2), -1), torch.zeros(count, dtype=torch.long)
    notes: dict[int, str] = {}
    for members in map(torch.from_numpy, groups):
        part = puzzle.reordered(members)
        grown = grow(part if held[members].any() else replace(part, locks=None), True, until)
        found.poses.rotation[members], found.poses.translation[members] = grown.poses.rotation, grown.poses.translation
        found.confidence[members] = grown.confidence
        own[members] = torch.where(grown.numbers < 0, -1, grown.numbers + own.max() + 1)
        cells[members] = -1 if grown.cells is None else grown.cells
        order[members] = (0 if grown.order is None else grown.order) + order.max()
        notes |= dict(zip(members.tolist(), grown.notes or (), strict=False))
    blocks = [(own == number).nonzero().flatten() for number in range(int(own.max()) + 1)]
    blocks.sort(key=lambda block: (not bool(held[block].any()), -len(block)))
    for number, block in enumerate(blocks):
        own[block] = number
    lay_apart(puzzle.outlines, found.poses, [*blocks, *(own < 0).nonzero()], held)
    return replace(found, objects=own, cells=cells, order=order).with_notes(notes)


def growing(apart: Poses, grown: Placements) -> Iterator[Step]:
    """The growth from pieces that are apart to the answer, in a few steps."""
    if grown.order is not None:
        ranks = grown.order.argsort(stable=True).argsort()
        placed = int((grown.numbers >= 0).sum())
        for shown in range(1, SHOWN):
            there = (ranks < placed * shown / SHOWN) & (grown.numbers >= 0)
            poses = Poses(
                torch.where(there[:, None, None], grown.poses.rotation, apart.rotation),
                torch.where(there[:, None], grown.poses.translation, apart.translation),
            )
            yield Step(poses, done=shown / SHOWN)
    yield Step.last(grown)


def turned_upright(judge: UprightJudge, pieces: OutlinePieces, grown: Placements) -> Placements:
    """The same placements with every object turned upright; `upright` is the probability of the least sure one.

    Objects that are no rectangles stay as they are: the network was trained on quarter turns of rectangular pictures.
    """
    from trimesh.bounds import oriented_bounds_2D

    cells = None if grown.cells is None else grown.cells.clone()
    poses = Poses(grown.poses.rotation.clone(), grown.poses.translation.clone())
    blocks, found = [], []
    for number in range(int(grown.numbers.max()) + 1):
        own = grown.numbers == number
        blocks.append(own.nonzero().flatten())
        outlines = [curve for curve, inside in zip(pieces.placed_contours(poses), own.tolist(), strict=True) if inside]
        straighten, size = oriented_bounds_2D(np.concatenate(outlines))
        if len(blocks[-1]) < 2 or float(pieces.areas[own].sum()) < FAMILIES.rectangular * size.prod():
            continue
        slant = (math.pi / 4 - math.atan2(straighten[1, 0], straighten[0, 0])) % (math.pi / 2) - math.pi / 4
        turns, sure = judge(pieces, _turned(poses, -slant), own.numpy())
        turned = _turned(poses, turns * math.pi / 2 - slant)
        poses.rotation[own], poses.translation[own] = turned.rotation[own], turned.translation[own]
        if cells is not None:
            cells[own] = turned_cells(cells[own], grown.numbers[own], turns)
        found.append(sure)
    if not found:
        return grown
    lay_apart(pieces, poses, [*blocks, *(grown.numbers < 0).nonzero()], torch.zeros(len(pieces), dtype=torch.bool))
    return replace(grown, poses=poses, cells=cells, upright=min(found))


def _turned(poses: Poses, angle: float) -> Poses:
    """All poses turned clockwise as seen about one point."""
    turn = plane_rotations(torch.tensor([angle]))[0].to(poses.rotation)
    return Poses(turn @ poses.rotation, poses.translation @ turn.T)
