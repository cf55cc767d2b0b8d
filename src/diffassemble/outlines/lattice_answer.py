"""Jigsaw pieces put together: cells of locked pieces, growth on the lattice, poses in pixels, confidence and notes."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.assembly.confidence import calibration, weakest_group
from diffassemble.assembly.growth import best_first
from diffassemble.assembly.layout import in_rows
from diffassemble.assembly.locks import moved_to_locks
from diffassemble.assembly.pose_graph import relax
from diffassemble.core import Locks, Matches, OutlinePieces, Placements, Poses
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.outlines.lattice import (
    LATTICE,
    Cell,
    LatticeConfig,
    LatticeConstraint,
    Part,
    Placed,
    SideEvidence,
    around,
    frontier,
    neighbours,
)
from diffassemble.outlines.sides import Sides, find_sides


def grow_lattice(
    pieces: OutlinePieces,
    matches: Matches,
    locks: Locks | None = None,
    several: bool = False,
    sides: Sides | None = None,
    config: LatticeConfig = LATTICE,
) -> Placements:
    """Assemble jigsaw pieces along matches of their sides; `locks` stay.

    With `several` every part that holds together is an object of its own; without, the largest one is the whole, and
    the place of the others is unknown.
    """
    # 1. Growth.
    sides = find_sides(pieces) if sides is None else sides
    evidence = SideEvidence(matches, sides, config)
    locked = {} if locks is None else locked_cells(sides, locks, config.near_cell)
    constraint = LatticeConstraint(evidence, locked, several)
    state = constraint.begin()
    deque(best_first(constraint, state, -math.inf), maxlen=0)
    # 2. Objects: the largest part, with locked pieces if there are any, comes first.
    parts = [part for number, part in state.parts.items() if not state.loose(number)]
    home = state.parts.get(state.home)
    parts.sort(key=lambda part: (part is not home, -len(part)))
    count = len(pieces)
    smallest = 2.0 if several else max(2.0, config.smallest * math.sqrt(count))
    kept = parts[:1] + [part for part in parts[1:] if len(part) >= smallest]
    # 3. Confidence and notes.
    objects, sure = torch.full((count,), -1), torch.zeros(count)
    reasons = "no four corners were found on its outline", "no side fits that of another piece well enough"
    notes = [f"unplaced: {reasons[known]}" for known in evidence.known]
    held_by = {
        placed.piece: sum(evidence.fit(around(part, cell), placed)) for part in parts for cell, placed in part.items()
    }
    for number, part in enumerate(parts):
        size = len(part)
        for placed, (found, note) in zip(part.values(), judged(part, evidence, held_by), strict=True):
            if number >= len(kept):
                notes[placed.piece] = f"unplaced: fits {size - 1} other piece{'s' * (size > 2)} only"
                continue
            if number > 0 and not several:
                found = min(found, calibration("tabs", "elsewhere").ceiling)
                note = f"one of {size} pieces that fit together, but their place in the whole is unknown"
            objects[placed.piece], sure[placed.piece], notes[placed.piece] = number, found, note
    if locks is not None:
        sure, objects = torch.where(locks.held, 1.0, sure), torch.where(locks.held, 0, objects)
        notes = ["" if held else note for held, note in zip(locks.held.tolist(), notes, strict=True)]
    # 4. Poses, cells and the order of growth.
    poses = pose_parts(pieces, matches, sides, parts, locks, evidence)
    order = torch.full((count,), count)
    order[list(state.where)] = torch.arange(len(state.where))
    order[objects < 0] = count
    return Placements(poses, sure, objects, rows_and_columns(poses, sides, kept), tuple(notes), order=order)


def judged(part: Part, evidence: SideEvidence, held_by: dict[int, float]) -> list[tuple[float, str]]:
    """Confidence and note of each piece of a part; `held_by` are the log odds by which pieces are held where they are.

    The strength of a place is the least of its margin over all rivals and of the weakest group around it.
    """
    number = {cell: index for index, cell in enumerate(part)}
    fits = [evidence.fit(around(part, cell), placed) for cell, placed in part.items()]
    contacts = [
        (number[cell], number[beside], odds)
        for cell, sides in zip(part, fits, strict=True)
        for (_, beside), odds in zip(neighbours(part, cell), sides, strict=True)
        if cell < beside
    ]
    strength = np.minimum(weakest_group(len(part), contacts, evidence.prior), margins(part, evidence, held_by))
    found = []
    for sides, sure in zip(fits, calibration("tabs")(strength).tolist(), strict=True):
        poor = sum(odds < evidence.config.bad for odds in sides)
        if len(sides) < 2:
            found.append((min(sure, calibration("tabs", "one_side").ceiling), "joined by one side only"))
        else:
            found.append((sure, f"fits {poor} of its {len(sides)} neighbours badly" if poor else ""))
    return found


def margins(part: Part, evidence: SideEvidence, held_by: dict[int, float]) -> Float[np.ndarray, "k"]:
    """How far the log odds of each piece are above those of all others in its cell, and of itself in free cells.

    A rival that has a place itself counts by what would be won by moving it.
    """
    elsewhere: defaultdict[int, float] = defaultdict(float)
    for cell in frontier(part, part):
        for placed, value in evidence.candidates(around(part, cell)).items():
            elsewhere[placed.piece] += math.exp(min(value, 50.0))
    found = []
    for cell, placed in part.items():
        rivals = 1.0 + elsewhere[placed.piece]
        for other, value in evidence.candidates(around(part, cell)).items():
            if other.piece != placed.piece:
                rivals += math.exp(min(value - max(held_by.get(other.piece, 0.0), 0.0), 50.0))
        found.append(held_by[placed.piece] + evidence.prior - math.log(rivals))
    return np.array(found)


def headings(sides: Sides) -> Float[np.ndarray, "n"]:
    """The angle in its own frame at which each piece's first side looks, by all four sides."""
    along = np.roll(sides.corners, -1, 1) - sides.corners
    # A side runs clockwise, a quarter turn ahead of where it looks.
    looks = (along[..., 1] - 1j * along[..., 0]) * np.array([1, -1j, -1, 1j])
    return np.angle((looks / np.maximum(np.abs(looks), 1e-9)).sum(1))


def locked_cells(sides: Sides, locks: Locks, near: float) -> dict[Cell, Placed]:
    """The cells of locked pieces, seen from the first of them; those that are in none are left out."""
    held = [piece for piece in locks.held.nonzero().flatten().tolist() if np.isfinite(sides.doubt[piece])]
    if not held:
        return {}
    turns = angles(locks.poses) + headings(sides)
    centres = np.einsum("nij,nj->ni", locks.poses.rotation.double().numpy(), sides.corners.mean(1))
    centres += locks.poses.translation.double().numpy()
    origin, lengths = held[0], sides.lengths[np.isfinite(sides.doubt)]
    short, long = np.median(np.sort((lengths[:, :2] + lengths[:, 2:]) / 2, 1), 0)
    own = sides.lengths[origin]
    # The first and third side are as long as cells are high.
    size = np.array([long, short] if own[0] + own[2] < own[1] + own[3] else [short, long])
    cells: dict[Cell, Placed] = {}
    for piece in held:
        turn = (turns[piece] - turns[origin]) / (math.pi / 2)
        place = complex(*(centres[piece] - centres[origin])) * np.exp(-1j * turns[origin])
        at = np.array([place.real, place.imag]) / size
        cell = (round(at[0]), round(at[1]))
        off = max(float(np.abs(at - cell).max()), abs(turn - round(turn)))
        if off < near and cell not in cells:
            cells[cell] = Placed(piece, round(turn) % 4)
    return cells


def rows_and_columns(poses: Poses, sides: Sides, parts: Sequence[Part]) -> Int[Tensor, "n 2"]:
    """Row and column of each piece in its part, from the top left corner of the part as it is posed; −1 elsewhere."""
    found = torch.full((len(poses), 2), -1)
    seen = angles(poses) + headings(sides)
    for part in parts:
        members, turns = np.array(list(part.values())).T
        turn = round(float(np.angle(np.exp(1j * (seen[members] - turns * (math.pi / 2))).sum())) / (math.pi / 2))
        across_down = np.array([complex(*cell) for cell in part]) * 1j**turn
        cells = torch.from_numpy(np.stack([across_down.imag, across_down.real], 1).round()).long()
        found[members] = cells - cells.amin(0)
    return found


def pose_parts(
    pieces: OutlinePieces,
    matches: Matches,
    sides: Sides,
    parts: Sequence[Part],
    locks: Locks | None,
    evidence: SideEvidence,
) -> Poses:
    """Poses of all pieces: those of each part agree with all its matches at once; parts and loose pieces lie apart."""
    count = len(pieces)
    held = torch.zeros(count, dtype=torch.bool) if locks is None else locks.held
    poses = Poses.identity(count, 2)
    blocks: list[Int[Tensor, "_"]] = []
    for part in parts:
        members = torch.tensor([placed.piece for placed in part.values()])
        own = _matches_within(part, matches, evidence)
        found = _on_lattice(sides, part)
        fixed = held[members]
        if locks is not None and bool(fixed.any()):
            wanted = locks.poses[members]
            here = Locks(fixed, Poses(wanted.rotation.double(), wanted.translation.double()))
            found = here.applied(moved_to_locks(found, here))
        weights = own.evidence[:, 2].clamp(evidence.config.least_weight)
        found = relax(found, own, fixed, weights, math.inf)
        poses.rotation[members], poses.translation[members] = found.rotation.float(), found.translation.float()
        blocks.append(members)
    placed = torch.cat([*blocks, torch.zeros(0, dtype=torch.long)])
    loose = torch.ones(count, dtype=torch.bool).index_fill(0, placed, False).nonzero()
    lay_apart(pieces, poses, [*blocks, *loose], held)
    return poses if locks is None else locks.applied(poses)


def _matches_within(part: Part, matches: Matches, evidence: SideEvidence) -> Matches:
    """The matches that a part realises, each in one direction; pieces are numbered in the order of its cells."""
    number = {cell: index for index, cell in enumerate(part)}
    found = []
    for cell, placed in part.items():
        for direction, beside in neighbours(part, cell):
            match = evidence.match.get((placed.side(direction), part[beside].side(direction + 2)))
            if cell < beside and match is not None:
                found.append((number[cell], number[beside], match))
    first, second, chosen = torch.tensor(found, dtype=torch.long).reshape(-1, 3).unbind(1)
    return replace(matches[chosen], first=first, second=second)


def _on_lattice(sides: Sides, part: Part) -> Poses:
    """Poses as if all cells were alike, in the order of the part's cells."""
    members, turns = np.array(list(part.values())).T
    # Sides that look up or down are as long as cells are wide.
    lengths = np.stack([np.roll(own, turn) for own, turn in zip(sides.lengths[members], turns, strict=True)])
    size = torch.tensor([float(np.median(lengths[:, 1::2])), float(np.median(lengths[:, ::2]))], dtype=torch.double)
    rotation = plane_rotations(torch.from_numpy(turns * (math.pi / 2) - headings(sides)[members]))
    middles = torch.from_numpy(sides.corners[members].mean(1))
    cells = torch.tensor(list(part), dtype=torch.double) * size
    return Poses(rotation, cells - (rotation @ middles[..., None])[..., 0])


def lay_aside(pieces: OutlinePieces) -> Poses:
    """All pieces in rows beside each other, turned as they were given."""
    poses = Poses.identity(len(pieces), 2)
    lay_apart(pieces, poses, list(torch.arange(len(pieces))[:, None]), torch.zeros(len(pieces), dtype=torch.bool))
    return poses


def lay_apart(pieces: OutlinePieces, poses: Poses, blocks: Sequence[Int[Tensor, "_"]], held: Bool[Tensor, "n"]) -> None:
    """Lay parts and single pieces in rows below the first part, in place; blocks with locked pieces stay."""
    outlines = pieces.placed_contours(poses)
    every = [np.concatenate([outlines[piece] for piece in block.tolist()]) for block in blocks]
    low, high = (np.stack([getattr(points, name)(0) for points in every]) for name in ("min", "max"))
    stays = np.array([bool(held[block].any()) for block in blocks])
    if not stays.any():  # the first one comes to the origin
        poses.translation[blocks[0]] -= torch.from_numpy(low[0]).float()
        low[0], high[0], stays[0] = 0.0, high[0] - low[0], True
    gap = LATTICE.gap * float(pieces.areas.median().sqrt())
    least, most = low[stays].min(0), high[stays].max(0)
    length = max(float(most[0] - least[0]), 1.5 * math.sqrt(float(pieces.areas.sum())))
    moves = np.flatnonzero(~stays)
    shifts = in_rows(low[moves], high[moves], (float(least[0]), float(most[1]) + gap), gap, length)
    for block, shift in zip(moves.tolist(), shifts, strict=True):
        poses.translation[blocks[block]] += torch.from_numpy(shift).float()
