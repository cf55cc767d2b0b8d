"""A person's corrections: object, cell and evidence of pieces that were moved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from diffassemble.assembly.locks import realises
from diffassemble.core.matches import Matches
from diffassemble.core.pieces import FragmentPieces, OutlinePieces
from diffassemble.core.placements import Placements
from diffassemble.core.poses import Poses
from diffassemble.core.puzzle import Locks, Puzzle


@dataclass(frozen=True)
class CorrectionConfig:
    """How near a piece must be to a place to be in it; lengths are shares of a piece's longest side."""

    moved: float = 1e-4
    """a pose that differs by more, in any number, was moved"""
    reach: float = 0.15
    """pieces that are nearer belong to one object, as flat pieces that count as touching"""
    shift: float = 0.15
    """a match is realised by pieces that are no farther from its pose than this, as in `outlines.growth`, …"""
    angle: float = 0.2
    """… and are turned from it by no more, in radians"""
    off_cell: float = 0.35
    """a piece is in a cell of a lattice if its centre is nearer to the cell's, in cells, as locked jigsaw pieces are"""
    points: int = 400
    """points of each piece that are compared, at most"""


CORRECTION = CorrectionConfig()


class JoinEvidence(NamedTuple):
    """Two pieces at a relative pose that a match proposes, and the log odds of that match."""

    first: int
    second: int
    log_odds: float


def corrected_placements(
    puzzle: Puzzle,
    found: Placements,
    moves: Poses | None,
    locks: Locks | None,
    matches: Matches | None,
    config: CorrectionConfig,
) -> tuple[Placements, tuple[JoinEvidence, ...]]:
    """Placements in which all that is moved or locked counts as placed by a person, and the matches it realises.

    A moved piece belongs to the object of the nearest piece within reach, to none if there is no such piece, and to the
    only object if nothing else is placed. Its row and column follow from the lattice that the other pieces form.
    """
    poses = found.poses if moves is None else moves
    poses = poses if locks is None else locks.applied(poses)
    apart = (poses.translation - found.poses.translation).abs().amax(1)
    turned = (poses.rotation - found.poses.rotation).abs().amax((1, 2))
    moved = (apart > config.moved) | (turned > config.moved)
    by_person = moved if locks is None else moved | locks.held
    if not bool(by_person.any()):
        return found, ()
    objects, cells = found.objects, found.cells
    if objects is not None and puzzle.lattice is None:
        objects = _objects(puzzle, poses, objects, by_person, moved, config)
        cells = None if cells is None else _cells(poses, cells, objects, moved, config)
    confidence = found.confidence.masked_fill(by_person, torch.nan)
    upright = None if bool(moved.any()) else found.upright
    result = replace(
        found, poses=poses, confidence=confidence, objects=objects, cells=cells, guess=None, upright=upright
    ).with_notes(dict.fromkeys(by_person.nonzero()[:, 0].tolist() if found.notes else (), ""))
    return result, () if matches is None else realised(puzzle, result, matches, by_person, config)


def realised(
    puzzle: Puzzle,
    found: Placements,
    matches: Matches,
    members: Bool[Tensor, "n"],
    config: CorrectionConfig = CORRECTION,
) -> tuple[JoinEvidence, ...]:
    """The matches that some pieces realise with each other or with other placed ones; the likeliest of each pair."""
    placed = torch.tensor(found.placed)
    first, second = matches.first, matches.second
    near = matches[((members[first] | members[second]) & placed[first] & placed[second]).nonzero()[:, 0]]
    scale = 1.0 if puzzle.lattice is None else puzzle.board.pitch
    poses, sizes = (
        Poses(found.poses.rotation, found.poses.translation / scale),
        torch.from_numpy(_sizes(puzzle) / scale),
    )
    reach = config.shift * torch.minimum(sizes[near.first], sizes[near.second])
    near = near[realises(near, poses, reach, config.angle).nonzero()[:, 0]]
    best: dict[tuple[int, int], float] = {}
    for *pair, odds in zip(near.first.tolist(), near.second.tolist(), near.log_odds.tolist(), strict=True):
        one, other = sorted(pair)
        best[one, other] = max(odds, best.get((one, other), odds))
    return tuple(JoinEvidence(*pair, log_odds) for pair, log_odds in sorted(best.items()))


def _sizes(puzzle: Puzzle) -> Float64[np.ndarray, "n"]:
    """The longest side of each piece's box, in units of the poses."""
    if puzzle.lattice is not None:
        return np.full(len(puzzle), puzzle.board.pitch)
    return np.array([float((own.amax(0) - own.amin(0)).max()) for own in _clouds(puzzle)])


def _clouds(puzzle: Puzzle) -> Sequence[Tensor]:
    """Points of each piece in its own frame: its outline, or its surface."""
    if isinstance(puzzle.pieces, OutlinePieces):
        return puzzle.pieces.contours
    assert isinstance(puzzle.pieces, FragmentPieces)
    return tuple(puzzle.pieces.points)


def _objects(
    puzzle: Puzzle,
    poses: Poses,
    objects: Int[Tensor, "n"],
    by_person: Bool[Tensor, "n"],
    moved: Bool[Tensor, "n"],
    config: CorrectionConfig,
) -> Int[Tensor, "n"]:
    """The object of each piece after the move."""
    from scipy.spatial import cKDTree

    found = objects.clone()
    unknown = moved | (by_person & (objects < 0))
    found[unknown] = -1
    if bool((found < 0).all()):
        return torch.where(by_person, 0, found)
    clouds = [
        (own[:: max(1, len(own) // config.points)].double() @ turn.double().T + shift.double()).numpy()
        for own, turn, shift in zip(_clouds(puzzle), poses.rotation, poses.translation, strict=True)
    ]
    sizes, waiting = _sizes(puzzle), unknown.nonzero()[:, 0].tolist()
    while waiting:
        known = (found >= 0).nonzero()[:, 0].tolist()
        points = np.concatenate([clouds[piece] for piece in known])
        owner = np.repeat(known, [len(clouds[piece]) for piece in known])
        tree, late = cKDTree(points), []
        for piece in waiting:
            apart, nearest = tree.query(clouds[piece])
            if apart.min() < config.reach * sizes[piece]:
                found[piece] = found[int(owner[nearest[apart.argmin()]])]
            else:
                late.append(piece)
        if len(late) == len(waiting):
            break
        waiting = late
    return found


def _cells(
    poses: Poses,
    cells: Int[Tensor, "n 2"],
    objects: Int[Tensor, "n"],
    moved: Bool[Tensor, "n"],
    config: CorrectionConfig,
) -> Int[Tensor, "n 2"]:
    """Row and column of each piece after the move; −1 for moved pieces that are in no free cell beside the others."""
    found, inside = cells.clone(), (cells[:, 0] >= 0) & ~moved
    centres = poses.translation.double().numpy()
    for number in objects[objects >= 0].unique().tolist():
        own = (objects == number) & inside
        if int(own.sum()) < 2:
            continue
        origin, steps = _lattice(found[own].numpy(), centres[own.numpy()])
        taken = found[own].tolist()
        for piece in (moved & (objects == number)).nonzero()[:, 0].tolist():
            place = np.linalg.solve(steps.T, centres[piece] - origin)
            cell = place.round().astype(int).tolist()
            beside = np.abs(np.array(taken) - cell).max(1).min() == 1
            if beside and np.abs(place - cell).max() < config.off_cell:
                taken.append(cell)
                found[piece], inside[piece] = torch.tensor(cell), True
        own = (objects == number) & inside
        found[own] -= found[own].amin(0)  # counted from the top left cell
    return found.masked_fill(~inside[:, None], -1)


def _lattice(
    cells: Int[np.ndarray, "k 2"], centres: Float64[np.ndarray, "k 2"]
) -> tuple[Float64[np.ndarray, "2"], Float64[np.ndarray, "2 2"]]:
    """Centre of cell (0, 0), and the steps to the next row and to the next column, by least squares.

    Where all cells are in one row or column, the other step is as long and at a right angle.
    """
    spread = [bool(np.ptp(cells[:, axis])) for axis in (0, 1)]
    design = np.column_stack([cells * spread, np.ones(len(cells))])
    down, right, origin = np.linalg.lstsq(design, centres, rcond=None)[0]
    if not spread[0]:
        down = np.array([-right[1], right[0]])
        origin = origin - cells[0, 0] * down
    if not spread[1]:
        right = np.array([down[1], -down[0]])
        origin = origin - cells[0, 1] * right
    return origin, np.stack([down, right])
