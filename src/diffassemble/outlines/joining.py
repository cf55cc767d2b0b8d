"""Pieces joined to groups: what a join would bring into contact, what speaks for it, and where all stand after it.

Poses are complex numbers (turn and place) in working pixels. Every group has a frame of its own, in which its pieces
stand. A join moves one group by a match; whatever else then touches across the two groups is evidence, for or against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Complex128, Float32, Float64, Int64

from diffassemble.core import Matches, Poses
from diffassemble.outlines.arc_model import ArcModel
from diffassemble.outlines.contact import FEATURES, describe, overlap, refine
from diffassemble.outlines.pose_graph import complex_of, poses_of, relax
from diffassemble.outlines.rims import MARGIN, STRAIGHT_ODDS, Rims, only_straight

# A pair may overlap by this share of the smaller one's area.
COLLISION = 0.05
# A contact that follows from a join counts from this length on, in units of a piece, and within these bounds.
SHORTEST = 0.08
AGAINST, FOR = -4.0, 5.0
# How far a contact that follows may lie from its best fit: working pixels, radians.
NEARBY, NEARLY = 9.0, 0.12


class Ways(NamedTuple):
    """Matches in working pixels: if `second` stands at (turn, place), `first` stands at that times (turn, shift)."""

    first: Int64[np.ndarray, "m"]
    second: Int64[np.ndarray, "m"]
    turn: Complex128[np.ndarray, "m"]
    shift: Complex128[np.ndarray, "m"]
    logit: Float64[np.ndarray, "m"]


class Touch(NamedTuple):
    """Two pieces that touch: how the first lies in the frame of the second, and the log odds that it does."""

    first: int
    second: int
    turn: complex
    shift: complex
    logit: float


@dataclass
class Assessment:
    """What is known of a match as a join: pairs looked at, contacts that follow, and whether pieces would collide."""

    touches: dict[tuple[int, int], Touch] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    collides: bool = False


class Groups:
    """Groups of pieces that grow by joins; the state of one attempt at a puzzle."""

    def __init__(self, rims: Rims, model: ArcModel, ways: Ways, held: Bool[np.ndarray, "n"], poses: Poses) -> None:
        """All pieces by themselves, but those that are held, which are one group and stand at `poses`."""
        count = len(rims.cells)
        self.rims, self.model, self.ways, self.held = rims, model, ways, held
        self.label = np.arange(count)
        self.turn = np.ones(count, np.complex128)
        self.place = np.zeros(count, np.complex128)
        if held.any():
            self.label[held] = np.flatnonzero(held)[0]
            turn, place = complex_of(poses)
            self.turn[held], self.place[held] = turn[held], place[held] * rims.scale
        starts = rims.start
        middles = [rims.points[starts[i] : starts[i + 1]] for i in range(count)]
        self.radius = np.array([np.hypot(*rim.T).max() for rim in middles])
        self.area = np.array([_area(rim) for rim in middles])
        self.touches: list[Touch] = []
        self.known: dict[int, Assessment] = {}

    def evidence(self, way: int) -> float:
        """Log odds of a match as a join, with all contacts that follow from it; −∞ if pieces would collide."""
        first, second = int(self.ways.first[way]), int(self.ways.second[way])
        known = self.known.setdefault(way, Assessment())
        if known.collides:
            return -np.inf
        turn, shift = self.motion(way)
        movers, stayers = (np.flatnonzero(self.label == self.label[piece]) for piece in (first, second))
        turns, places = turn * self.turn[movers], turn * self.place[movers] + shift
        far = np.abs(places[:, None] - self.place[stayers]) - self.radius[movers][:, None] - self.radius[stayers]
        for a, b in zip(*np.nonzero(far < MARGIN), strict=True):
            pair = (int(movers[a]), int(stayers[b]))
            if pair == (first, second) or pair in known.seen:
                continue
            known.seen.add(pair)
            back = np.conj(self.turn[pair[1]])
            touch = self._follow(*pair, back * turns[a], back * (places[a] - self.place[pair[1]]))
            if touch is None:
                known.collides = True
                return -np.inf
            if touch.logit != 0:
                known.touches[pair] = touch
        return float(self.ways.logit[way] + sum(touch.logit for touch in known.touches.values()))

    def _follow(self, first: int, second: int, turn: complex, shift: complex) -> Touch | None:
        """What the contact of two pieces says at a pose that follows from others; nothing if they collide."""
        found = self.contact(first, second, turn, shift)
        if found is None:
            return None
        turned, moved, numbers = found
        if numbers[0, 0] < SHORTEST:
            return Touch(first, second, turned, moved, 0.0)
        logit = float(np.clip(self.model.judge("following", numbers)[0], AGAINST, FOR))
        return Touch(first, second, turned, moved, logit)

    def contact(
        self, first: int, second: int, turn: complex, shift: complex
    ) -> tuple[complex, complex, Float32[np.ndarray, "1 f"]] | None:
        """The best fit near a pose, and the numbers that describe it; nothing if the pieces collide."""
        rims = self.rims
        pose = np.array([[turn.real, turn.imag, shift.real, shift.imag]], np.float32)
        smaller = min(self.area[first], self.area[second])
        if overlap(rims, first, second, pose[0]) / smaller > 3 * COLLISION:
            return None
        settled = pose.copy()
        refine(rims, first, second, settled, 6, 9.0)
        turned, moved = complex(settled[0, 0], settled[0, 1]), complex(settled[0, 2], settled[0, 3])
        if abs(moved - shift) > NEARBY or abs(np.angle(turned * np.conj(turn))) > NEARLY:
            settled, turned, moved = pose, turn, shift
        if overlap(rims, first, second, settled[0]) / smaller > COLLISION:
            return None
        numbers, arcs = np.zeros((1, FEATURES), np.float32), np.zeros((1, 2), np.int64)
        describe(rims, first, second, settled, numbers, arcs)
        return turned, moved, numbers

    def told(self, touch: Touch) -> float:
        """The log odds of a contact as they count for confidence: edges that are only straight fit anywhere."""
        if touch.logit <= STRAIGHT_ODDS:
            return touch.logit
        turn, shift = complex(touch.turn), complex(touch.shift)
        pose = np.array([[turn.real, turn.imag, shift.real, shift.imag]], np.float32)
        numbers, arcs = np.zeros((1, FEATURES), np.float32), np.zeros((1, 2), np.int64)
        describe(self.rims, touch.first, touch.second, pose, numbers, arcs)
        straight = only_straight(self.rims, np.array([touch.first]), np.array([touch.second]), arcs)[0]
        return STRAIGHT_ODDS if straight else touch.logit

    def motion(self, way: int) -> tuple[complex, complex]:
        """How the first piece's group moves into the frame of the second's."""
        first, second = self.ways.first[way], self.ways.second[way]
        turn = self.turn[second] * self.ways.turn[way] * np.conj(self.turn[first])
        place = self.turn[second] * self.ways.shift[way] + self.place[second]
        return turn, place - turn * self.place[first]

    def join(self, way: int) -> None:
        """Join two groups along a match, and let all contacts of the new group find their balance."""
        first, second = int(self.ways.first[way]), int(self.ways.second[way])
        turn, shift = self.motion(way)
        mover, stayer = self.label[first], self.label[second]
        movers = self.label == mover
        if self.held[movers].any():  # what is held stays: the other group moves instead
            turn, shift = np.conj(turn), -np.conj(turn) * shift
            mover, stayer = stayer, mover
            movers = self.label == mover
        self.place[movers] = turn * self.place[movers] + shift
        self.turn[movers] *= turn
        self.label[movers] = stayer
        own = Touch(first, second, self.ways.turn[way], self.ways.shift[way], float(self.ways.logit[way]))
        self.touches.append(own)
        self.touches.extend(self.known[way].touches.values())
        self._relax(np.flatnonzero(self.label == stayer))

    def _relax(self, members: Int64[np.ndarray, "k"]) -> None:
        """Move the pieces of a group to where its contacts agree best."""
        index = {int(piece): number for number, piece in enumerate(members)}
        inside = [touch for touch in self.touches if touch.first in index and touch.logit > 0]
        if len(inside) < len(members):  # a tree holds as it is
            return
        matches = matches_of([replace_pieces(touch, index) for touch in inside])
        held = torch.from_numpy(self.held[members])
        if not held.any():
            held[0] = True
        weights = torch.tensor([touch.logit for touch in inside]).sigmoid()
        poses = relax(poses_of(self.turn[members], self.place[members]), matches, held, weights)
        self.turn[members], self.place[members] = complex_of(poses)


def replace_pieces(touch: Touch, index: dict[int, int]) -> Touch:
    """The same contact, its pieces numbered anew."""
    return touch._replace(first=index[touch.first], second=index[touch.second])


def matches_of(touches: list[Touch]) -> Matches:
    """Contacts as matches, in working pixels."""
    first, second = (torch.tensor([touch[side] for touch in touches]) for side in range(2))
    relative = poses_of(np.array([touch.turn for touch in touches]), np.array([touch.shift for touch in touches]))
    count = len(touches)
    return Matches(first, second, relative, torch.zeros(count, dtype=torch.long), torch.ones(count, 3))


def _area(rim: np.ndarray) -> float:
    x, y = rim.T.astype(float)
    return float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2)
