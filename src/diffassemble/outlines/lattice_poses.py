"""From cells to poses in pixels, and from locked poses to cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.assembly.locks import moved_to_locks
from diffassemble.assembly.pose_graph import relax
from diffassemble.core import Locks, Matches, OutlinePieces, Poses
from diffassemble.core.poses import plane_rotations
from diffassemble.outlines.lattice import Cell, Layout, Placed
from diffassemble.outlines.sides import Sides

# Matches with less than these log odds don't pull at the pieces.
_PULLING = -1.0
# Errors beyond these, of a side's length, pull no harder: at first hardly any, since errors along a tree of hundreds of
# pieces add up, and loops that don't close must not count as outliers.
_TOLERANCES = 1.0, 0.05
# Of a piece's length: pieces that are laid aside lie this far apart; locked poses are so near to their cell at least.
_ASIDE, _NEAR = 0.3, 0.35


def headings(sides: Sides) -> Float[np.ndarray, "n"]:
    """The angle in its own frame at which each piece's first side looks, by all four sides."""
    along = np.roll(sides.corners, -1, 1) - sides.corners
    # A side runs clockwise, a quarter turn ahead of where it looks.
    looks = (along[..., 1] - 1j * along[..., 0]) * np.array([1, -1j, -1, 1j])
    return np.angle((looks / np.maximum(np.abs(looks), 1e-9)).sum(1))


def locked_cells(sides: Sides, locks: Locks) -> dict[Cell, Placed]:
    """In which cells locked pieces stand, seen from the first of them; those that stand in none are left out."""
    held = [piece for piece in locks.held.nonzero().flatten().tolist() if np.isfinite(sides.doubt[piece])]
    if not held:
        return {}
    rotation, translation = locks.poses.rotation.double().numpy(), locks.poses.translation.double().numpy()
    angles = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0]) + headings(sides)
    centres = np.einsum("nij,nj->ni", rotation, sides.corners.mean(1)) + translation
    origin = held[0]
    back = np.exp(-1j * angles[origin])
    lengths = sides.lengths[np.isfinite(sides.doubt)]
    both = np.sort((lengths[:, :2] + lengths[:, 2:]) / 2, 1)
    usual = np.median(both, 0)
    own = sides.lengths[origin]
    # The first and third side are as long as cells are high.
    high, wide = usual if own[0] + own[2] < own[1] + own[3] else usual[::-1]
    cells: dict[Cell, Placed] = {}
    for piece in held:
        turn = (angles[piece] - angles[origin]) / (math.pi / 2)
        place = complex(*(centres[piece] - centres[origin])) * back
        at = np.array([place.real / wide, place.imag / high])
        cell = (round(at[0]), round(at[1]))
        if np.abs(at - cell).max() < _NEAR and abs(turn - round(turn)) < _NEAR and cell not in cells:
            cells[cell] = Placed(piece, round(turn) % 4)
    return cells


def rows_and_columns(poses: Poses, sides: Sides, layouts: Sequence[Layout]) -> Int[Tensor, "n 2"]:
    """Row and column of each piece in its part, from the top left corner as the part lies; −1 for those in none."""
    found = torch.full((len(poses), 2), -1)
    heading = headings(sides)
    for layout in layouts:
        placed = list(layout.cells.values())
        members, turns = [one.piece for one in placed], np.array([one.turn for one in placed])
        rotation = poses.rotation[members].double().numpy()
        angles = np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0]) + heading[members] - turns * (math.pi / 2)
        turn = round(float(np.angle(np.exp(1j * angles).sum())) / (math.pi / 2))
        across_down = np.array([complex(*cell) for cell in layout.cells]) * 1j**turn
        cells = torch.from_numpy(np.stack([across_down.imag, across_down.real], 1).round()).long()
        found[members] = cells - cells.amin(0)
    return found


def pose_layouts(
    pieces: OutlinePieces, matches: Matches, sides: Sides, layouts: Sequence[Layout], locks: Locks | None
) -> Poses:
    """Poses of all pieces: each part relaxed along its matches, the others below, the rest laid aside as given."""
    count = len(pieces)
    held = torch.zeros(count, dtype=torch.bool) if locks is None else locks.held
    number = _match_numbers(matches, count)
    rotation, translation = torch.eye(2).repeat(count, 1, 1), torch.zeros(count, 2)
    blocks: list[Int[Tensor, "_"]] = []
    for layout in layouts:
        members = torch.tensor([placed.piece for placed in layout.cells.values()])
        poses = _on_lattice(sides, layout)
        chosen = _realised(layout, number)
        within = matches[torch.tensor(chosen, dtype=torch.long)]
        where = torch.full((count,), -1)
        where[members] = torch.arange(len(members))
        own = Matches(where[within.first], where[within.second], within.pose, within.slot, within.evidence)
        poses = _along_tree(poses, own)
        fixed = held[members]
        if locks is not None and bool(fixed.any()):
            here = Locks(
                fixed, Poses(locks.poses.rotation[members].double(), locks.poses.translation[members].double())
            )
            poses = here.applied(moved_to_locks(poses, here))
        weights = own.evidence[:, 2].clamp(0.05)
        for tolerance in _TOLERANCES:
            poses = relax(poses, own, fixed, weights, tolerance * sides.length)
        rotation[members], translation[members] = poses.rotation.float(), poses.translation.float()
        blocks.append(members)
    placed = {int(piece) for block in blocks for piece in block}
    blocks += [torch.tensor([piece]) for piece in range(count) if piece not in placed]
    poses = Poses(rotation, translation)
    lay_apart(pieces, poses, blocks, held)
    return poses if locks is None else locks.applied(poses)


def _match_numbers(matches: Matches, count: int) -> dict[tuple[int, int], int]:
    """Which match is that of two sides."""
    one = (4 * matches.first + matches.slot // 4).tolist()
    two = (4 * matches.second + matches.slot % 4).tolist()
    odds = matches.evidence[:, 2].double().clamp(1e-6, 1 - 1e-6).logit().tolist()
    found = enumerate(zip(one, two, odds, strict=True))
    return {(own, other): index for index, (own, other, pulls) in found if pulls > _PULLING}


def _realised(layout: Layout, number: dict[tuple[int, int], int]) -> list[int]:
    """The matches that a layout shows, each in one direction, those with most odds first."""
    found = []
    for cell, placed in layout.cells.items():
        for direction, beside in layout.neighbours(cell):
            pair = (placed.side(direction), layout.cells[beside].side(direction + 2))
            if cell < beside and pair in number:
                found.append((-layout.evidence.between(*pair), number[pair]))
    return [match for _, match in sorted(found)]


def _on_lattice(sides: Sides, layout: Layout) -> Poses:
    """Poses as if all cells were alike, in the order of the layout's cells."""
    pieces = np.array([placed.piece for placed in layout.cells.values()])
    turns = np.array([placed.turn for placed in layout.cells.values()])
    lengths = sides.lengths[pieces]
    # Sides that look up or down are as long as cells are wide.
    level = (turns % 2 == 0)[:, None]
    wide = float(np.median(np.where(level, lengths[:, 1::2], lengths[:, ::2])))
    high = float(np.median(np.where(level, lengths[:, ::2], lengths[:, 1::2])))
    rotation = plane_rotations(torch.from_numpy(turns * (math.pi / 2) - headings(sides)[pieces]))
    middles = torch.from_numpy(sides.corners[pieces].mean(1))
    cells = torch.tensor(list(layout.cells), dtype=torch.double) * torch.tensor([wide, high], dtype=torch.double)
    return Poses(rotation, cells - (rotation @ middles[..., None])[..., 0])


def _along_tree(poses: Poses, matches: Matches) -> Poses:
    """Poses composed along the surest matches; groups that these hold together stay where they were on the whole."""
    count = len(poses)
    group = list(range(count))
    members = {piece: [piece] for piece in range(count)}
    rotation, translation = poses.rotation.clone(), poses.translation.clone()
    for first, second, turn, shift in zip(
        matches.first.tolist(),
        matches.second.tolist(),
        matches.pose.rotation.double(),
        matches.pose.translation.double(),
        strict=True,
    ):
        if group[first] == group[second]:
            continue
        # If the second stands at T, then the first stands at T @ relative.
        goal, place = rotation[second] @ turn, rotation[second] @ shift + translation[second]
        mover, by = first, goal @ rotation[first].T
        offset = place - by @ translation[first]
        if len(members[group[first]]) > len(members[group[second]]):
            mover, by, offset = second, by.T, -(by.T @ offset)
        moved = torch.tensor(members.pop(group[mover]))
        home = group[second if mover == first else first]
        rotation[moved], translation[moved] = by @ rotation[moved], translation[moved] @ by.T + offset
        members[home] += moved.tolist()
        for piece in moved.tolist():
            group[piece] = home
    found = Poses(rotation, translation)
    for chosen in members.values():
        index = torch.tensor(chosen)
        here = Locks(torch.ones(len(index), dtype=torch.bool), poses[index])
        back = moved_to_locks(found[index], here)
        rotation[index], translation[index] = back.rotation, back.translation
    return Poses(rotation, translation)


def lay_aside(pieces: OutlinePieces) -> Poses:
    """All pieces in rows beside each other, turned as they were given."""
    poses = Poses.identity(len(pieces), 2)
    blocks = [torch.tensor([piece]) for piece in range(len(pieces))]
    lay_apart(pieces, poses, blocks, torch.zeros(len(pieces), dtype=torch.bool))
    return poses


def lay_apart(pieces: OutlinePieces, poses: Poses, blocks: Sequence[Int[Tensor, "_"]], held: Bool[Tensor, "n"]) -> None:
    """Lay parts and single pieces in rows below the first part, in place; blocks with locked pieces stay."""
    translation = poses.translation
    boxes = []
    for block in blocks:
        every = torch.cat([pieces.contours[i] @ poses.rotation[i].T + translation[i] for i in block.tolist()])
        boxes.append(torch.stack([every.min(0).values, every.max(0).values]))
    gap = _ASIDE * float(pieces.areas.median().sqrt())
    stays = [bool(held[block].any()) for block in blocks]
    if not any(stays):
        translation[blocks[0]] -= boxes[0][0]
        boxes[0], stays[0] = boxes[0] - boxes[0][0], True
    fixed = torch.stack([box for box, stay in zip(boxes, stays, strict=True) if stay])
    low, high = fixed[:, 0].min(0).values, fixed[:, 1].max(0).values
    widest = max(float(high[0] - low[0]), 1.5 * math.sqrt(float(pieces.areas.sum())))
    x, y, row = float(low[0]), float(high[1]) + gap, 0.0
    for block, (least, most), stay in zip(blocks, boxes, stays, strict=True):
        if stay:
            continue
        wide, tall = (most - least).tolist()
        if x > float(low[0]) and x + wide > float(low[0]) + widest:
            x, y, row = float(low[0]), y + row + gap, 0.0
        translation[block] += torch.tensor([x, y]) - least
        x, row = x + wide + gap, max(row, tall)
