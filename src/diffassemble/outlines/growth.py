"""Growth of free outlines: the constraint is that pieces don't overlap; contacts that a join implies are evidence.

A join moves one group of pieces by a match; all further contacts between the two groups follow from it. A network
judges each of these: its log odds are added, and collisions forbid the join. Likely matches that the best assembly
contradicts are tried as the beginning of others (`assembly.growth`).

Inside this module poses are turns and places as complex numbers in working pixels, as in `pose_graph`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Complex128, Float32, Float64, Int64

from diffassemble.assembly.confidence import calibration, weakest_join
from diffassemble.assembly.growth import Attempt, Constraint, GrowthPolicy, grown
from diffassemble.assembly.locks import realises
from diffassemble.assembly.pose_graph import complex_of, poses_of, relax
from diffassemble.core import Locks, Matches, OutlinePieces, Placements, Poses
from diffassemble.core.contours import signed_area
from diffassemble.core.thresholds import SURE
from diffassemble.outlines.arcs import ArcModel, bundled_model, contacts_at
from diffassemble.outlines.contact import overlap, refine, separation
from diffassemble.outlines.lattice_answer import lay_apart
from diffassemble.outlines.rims import MARGIN, RIMS, RimConfig, Rims, only_straight, rims_of


@dataclass(frozen=True)
class FreeGrowthConfig:
    """Growth of free outlines; lengths are working pixels (`rims`), angles radians, evidence log odds.

    Chosen on torn and broken training photographs; rows of docs/decisions/016 show what the rules are worth.
    """

    rims: RimConfig = RIMS
    hopeless: float = -5.0
    """matches below are not tried"""
    least: float = -2.5
    """joins below are not made; pieces without a join are unplaced"""
    least_several: float = 0.0
    """the same if pieces may be of several wholes"""
    rivals: int = 6
    """attempts that begin with a match that the best assembly contradicts; time is proportional to it"""
    rival: float = -1.0
    """log odds that such a match needs"""
    realised: tuple[float, float] = (0.15, 0.2)
    """distance, in units of a piece, and angle within which poses realise a match"""
    collision: float = 0.05
    """share of the smaller piece's area that a pair may overlap; before refinement three times as much"""
    shortest: float = 0.08
    """length of an implied contact from which on it is evidence, in units of a piece"""
    bounds: tuple[float, float] = (-4.0, 5.0)
    """log odds of an implied contact, at least and at most: worn rims must not outweigh several that fit"""
    settled: tuple[float, float] = (9.0, 0.12)
    """distance and angle by which refinement may move an implied contact"""
    pulling: float = 0.0
    """log odds from which a contact pulls at the poses of a group"""
    straight_share: float = 0.7
    """contacts of which more is straight on both sides are no evidence for confidence: such edges fit anywhere"""
    gap_contacts: tuple[int, int] = (3, 24)
    """the usual gap of matches is measured on at least and at most so many, …"""
    gap_bounds: tuple[float, float] = (1.6, 28.0)
    """… smaller gaps count as none, rims farther apart are not compared"""
    mostly: float = 0.5
    """where a smaller share of all pieces is sure, parts of the whole may be joined wrongly: no piece is sure then"""


FREE_GROWTH = FreeGrowthConfig()


class Contact(NamedTuple):
    """Two pieces that touch: turn and shift of the first in the frame of the second, and log odds that it is true.

    `counted` are the log odds that count for confidence: contacts of straight edges alone are no evidence there.
    """

    first: int
    second: int
    turn: complex
    shift: complex
    log_odds: float
    counted: float


@dataclass
class Groups:
    """Groups of n pieces: their labels, poses in the frame of each group, contacts, and total log odds.

    `implied` has the contacts that each examined match implies by pairs, or nothing if pieces would collide.
    """

    label: Int64[np.ndarray, "n"]
    turn: Complex128[np.ndarray, "n"]
    place: Complex128[np.ndarray, "n"]
    contacts: list[Contact] = field(default_factory=list)
    implied: dict[int, dict[tuple[int, int], Contact] | None] = field(default_factory=dict)
    total: float = 0.0


class OutlineOverlap(Constraint[Groups, int]):
    """Joins are numbers of matches: those of two groups that would not overlap, with all contacts that they imply."""

    def __init__(
        self,
        rims: Rims,
        model: ArcModel,
        matches: Matches,
        locks: Locks | None = None,
        config: FreeGrowthConfig = FREE_GROWTH,
    ) -> None:
        count = len(rims.cells)
        self.model, self.config = model, config
        kept = matches[matches.log_odds > config.hopeless]
        pose = Poses(kept.pose.rotation, kept.pose.translation * rims.scale)
        self.matches, (self.turn, self.shift) = replace(kept, pose=pose), complex_of(pose)
        self.first, self.second, self.log_odds = kept.first.numpy(), kept.second.numpy(), kept.log_odds.numpy()
        self.rims = rims._replace(gap=self._usual_gap(rims))
        self.held = np.zeros(count, bool) if locks is None else locks.held.numpy()
        self.locked = complex_of(Poses.identity(count, 2) if locks is None else locks.poses)
        self.radius = np.array([np.hypot(*rims.of(piece).T).max() for piece in range(count)])
        self.area = np.array([signed_area(rims.of(piece).astype(float)) for piece in range(count)])

    def _usual_gap(self, rims: Rims) -> float:
        """The median distance of rims in likely matches, 0 if they touch."""
        (fewest, most), (narrowest, farthest) = self.config.gap_contacts, self.config.gap_bounds
        sure = [one for one in np.argsort(-self.log_odds, kind="stable")[:most] if self.log_odds[one] > 1]
        poses = as_rows(self.turn, self.shift)
        apart = [separation(rims, self.first[one], self.second[one], poses[one], farthest) for one in sure]
        gap = float(np.median(apart)) if len(apart) >= fewest else 0.0
        return gap if gap >= narrowest else 0.0

    def begin(self) -> Groups:
        """Every piece alone, but the locked ones, which are one group at their places."""
        count = len(self.held)
        state = Groups(np.arange(count), np.ones(count, np.complex128), np.zeros(count, np.complex128))
        if self.held.any():
            state.label[self.held] = np.flatnonzero(self.held)[0]
            state.turn[self.held] = self.locked[0][self.held]
            state.place[self.held] = self.locked[1][self.held] * self.rims.scale
        return state

    def proposals(self, state: Groups) -> range:
        """All matches."""
        return range(len(self.first))

    def evidence(self, state: Groups, join: int) -> float:
        """Log odds of a match and of all contacts that it implies; −∞ within a group, or if pieces would collide."""
        pair = first, second = int(self.first[join]), int(self.second[join])
        known = state.implied.setdefault(join, {})
        if known is None or state.label[first] == state.label[second]:
            return -math.inf
        turn, shift = self._motion(state, join)
        movers, stayers = (np.flatnonzero(state.label == state.label[piece]) for piece in pair)
        turns, places = turn * state.turn[movers], turn * state.place[movers] + shift
        far = np.abs(places[:, None] - state.place[stayers]) - self.radius[movers][:, None] - self.radius[stayers]
        for a, b in zip(*np.nonzero(far < MARGIN), strict=True):
            other = int(movers[a]), int(stayers[b])
            if other == pair or other in known:
                continue
            back = np.conj(state.turn[other[1]])
            pose = self.settled(*other, back * turns[a], back * (places[a] - state.place[other[1]]))
            if pose is None:
                state.implied[join] = None
                return -math.inf
            known[other] = self._contact(*other, pose)
        return float(self.log_odds[join]) + sum(contact.log_odds for contact in known.values())

    def settled(self, first: int, second: int, turn: complex, shift: complex) -> Float32[np.ndarray, "1 4"] | None:
        """The best fit near a pose of two pieces; nothing if the pieces collide."""
        pose = as_rows(np.array([turn]), np.array([shift]))
        smaller = min(self.area[first], self.area[second])
        if overlap(self.rims, first, second, pose[0]) / smaller > 3 * self.config.collision:
            return None
        moved = pose.copy()
        refine(self.rims, first, second, moved, 6, 9.0)
        by, angle = complex(*(moved - pose)[0, 2:]), np.angle(complex(*moved[0, :2]) * np.conj(turn))
        if abs(by) > self.config.settled[0] or abs(angle) > self.config.settled[1]:
            moved = pose
        if overlap(self.rims, first, second, moved[0]) / smaller > self.config.collision:
            return None
        return moved

    def _contact(
        self, first: int, second: int, pose: Float32[np.ndarray, "1 4"], log_odds: float | None = None
    ) -> Contact:
        """The contact at a pose, judged as an implied one if its log odds are not known; short ones are no evidence."""
        features, arcs = contacts_at(self.rims, np.array([first]), np.array([second]), pose)
        if log_odds is None:
            judged = self.model.judge("following", features) if features[0, 0] >= self.config.shortest else [0.0]
            log_odds = float(np.clip(judged[0], *self.config.bounds))
        flat = log_odds > 0 and only_straight(self.rims, first, second, arcs[0], self.config.straight_share)
        c, s, x, y = pose[0].astype(float)
        return Contact(first, second, complex(c, s), complex(x, y), log_odds, 0.0 if flat else log_odds)

    def _motion(self, state: Groups, join: int) -> tuple[complex, complex]:
        """The motion of the first piece's group into the frame of the second's."""
        first, second = self.first[join], self.second[join]
        turn = state.turn[second] * self.turn[join] * np.conj(state.turn[first])
        place = state.turn[second] * self.shift[join] + state.place[second]
        return turn, place - turn * state.place[first]

    def join(self, state: Groups, join: int) -> list[int]:
        """Move one group to the other and relax the contacts of both; returns the matches of the new group."""
        first, second = int(self.first[join]), int(self.second[join])
        state.total += self.evidence(state, join)
        turn, shift = self._motion(state, join)
        mover, stayer = state.label[first], state.label[second]
        if self.held[state.label == mover].any():  # locked pieces stay: the other group moves
            turn, shift = np.conj(turn), -np.conj(turn) * shift
            mover, stayer = stayer, mover
        movers = state.label == mover
        state.place[movers] = turn * state.place[movers] + shift
        state.turn[movers] *= turn
        state.label[movers] = stayer
        pose = as_rows(self.turn[[join]], self.shift[[join]])
        state.contacts.append(self._contact(first, second, pose, float(self.log_odds[join])))
        state.contacts += (state.implied[join] or {}).values()
        self._relax(state, int(stayer))
        inside = [state.label[pieces] == stayer for pieces in (self.first, self.second)]
        return np.flatnonzero(inside[0] ^ inside[1]).tolist()

    def _relax(self, state: Groups, label: int) -> None:
        """Move the pieces of a group to where its contacts agree best, if there are more than join them."""
        members = np.flatnonzero(state.label == label)
        inside = [
            one for one in state.contacts if state.label[one.first] == label and one.log_odds > self.config.pulling
        ]
        if len(inside) < len(members):
            return
        first, second, turn, shift, log_odds, _ = (np.array(column) for column in zip(*inside, strict=True))
        number = np.zeros(len(self.held), np.int64)
        number[members] = np.arange(len(members))
        chance = torch.from_numpy(log_odds).sigmoid()
        links = Matches(
            torch.from_numpy(number[first]),
            torch.from_numpy(number[second]),
            poses_of(turn, shift),
            torch.zeros(len(chance), dtype=torch.long),
            chance[:, None].repeat(1, 3),
        )
        held = torch.from_numpy(self.held[members])
        poses = relax(poses_of(state.turn[members], state.place[members]), links, held, chance)
        state.turn[members], state.place[members] = complex_of(poses)

    def total(self, state: Groups) -> float:
        """Log odds of all joins, each at its time."""
        return state.total

    def contradicted(self, state: Groups) -> list[int]:
        """Likely matches that the poses don't realise, the likeliest first; locked pieces contradict nothing."""
        near, angle = self.config.realised
        realised = realises(self.matches, poses_of(state.turn, state.place), near * self.rims.unit, angle).numpy()
        realised &= state.label[self.first] == state.label[self.second]
        realised |= self.held[self.first] & self.held[self.second]
        doubted = np.flatnonzero(~realised & (self.log_odds > self.config.rival))
        return doubted[np.argsort(-self.log_odds[doubted], kind="stable")].tolist()

    def strengths(self, grown: Attempt[Groups, int], objects: Int64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
        """The weakest cut between each piece and the core of its object, in log odds; −∞ for single pieces."""
        strength = np.full(len(objects), -np.inf)
        contacts = grown.state.contacts
        for number in range(objects.max() + 1):
            members = np.flatnonzero(objects == number)
            at = {int(piece): index for index, piece in enumerate(members)}
            joins = [(int(self.first[made.join]), int(self.second[made.join])) for made in grown.joins]
            strength[members] = weakest_join(
                len(members),
                [(at[one], at[two]) for one, two in joins if one in at],
                [(at[one.first], at[one.second], one.counted) for one in contacts if one.first in at],
            )
        return strength


def grow_free(
    pieces: OutlinePieces,
    matches: Matches,
    locks: Locks | None = None,
    several: bool = False,
    until: float = math.inf,
    model: ArcModel | None = None,
    config: FreeGrowthConfig = FREE_GROWTH,
) -> Placements:
    """Join pieces along matches, best first; locked ones stay. No further attempt begins after `until`.

    Unplaced pieces have object −1. Groups are numbered, the one with locked pieces first, then the largest; unless the
    pieces may be of `several` wholes, the place of the others in the whole is unknown.
    """
    # 1. Growth.
    constraint = OutlineOverlap(rims_of(pieces, config.rims), model or bundled_model(), matches, locks, config)
    least = config.least_several if several else config.least
    found = grown(constraint, GrowthPolicy(least=least, rivals=config.rivals, until=until))
    # 2. Objects.
    state, count = found.state, len(pieces)
    labels, sizes = np.unique(state.label, return_counts=True)
    area = np.array([constraint.area[state.label == label].sum() for label in labels])
    locked = np.array([bool(constraint.held[state.label == label].any()) for label in labels])
    chosen = [k for k in np.lexsort((-area, ~locked)) if sizes[k] > 1 or locked[k] or count == 1]
    objects = np.full(count, -1)
    for number, k in enumerate(chosen):
        objects[state.label == labels[k]] = number
    # 3. Confidence.
    strength = constraint.strengths(found, objects)
    confidence = calibration("free")(strength)
    if np.mean(confidence >= SURE) < config.mostly:
        confidence = calibration("free", "mostly_unsure")(strength)
    elsewhere = objects > 0 if not several else np.zeros(count, bool)
    confidence = np.where(elsewhere, np.minimum(confidence, calibration("free", "elsewhere")(strength)), confidence)
    confidence[objects < 0] = 0.0
    notes = np.where(elsewhere, "joined to other pieces, but their place in the whole is unknown", "")
    notes = np.where(objects < 0, "unplaced: no piece fits well enough", notes)
    # 4. Poses: objects and unplaced pieces apart from each other; and the order of growth.
    poses = poses_of(state.turn, state.place / constraint.rims.scale)
    poses = Poses(poses.rotation.float(), poses.translation.float())
    blocks = [np.flatnonzero(objects == number) for number in range(len(chosen))]
    blocks += [np.array([piece]) for piece in np.flatnonzero(objects < 0)]
    lay_apart(pieces, poses, [torch.from_numpy(block) for block in blocks], torch.from_numpy(constraint.held))
    order = np.full(count, len(found.joins))
    for number, made in reversed(list(enumerate(found.joins))):
        order[[constraint.first[made.join], constraint.second[made.join]]] = number
    sure = torch.from_numpy(confidence).float()
    return Placements(
        poses, sure, torch.from_numpy(objects), notes=tuple(notes.tolist()), order=torch.from_numpy(order)
    )


def as_rows(turn: Complex128[np.ndarray, "m"], shift: Complex128[np.ndarray, "m"]) -> Float32[np.ndarray, "m 4"]:
    """Poses as kernels read them: (cosine, sine, x, y)."""
    return np.stack([turn.real, turn.imag, shift.real, shift.imag], 1).astype(np.float32)
