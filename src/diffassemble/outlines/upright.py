"""Which way is up, asked of what pieces of any outline were put together to, if that is about a rectangle."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from diffassemble.assembly.answer import turned_cells
from diffassemble.core import OutlinePieces, Placements, Poses
from diffassemble.core.poses import plane_rotations
from diffassemble.outlines.lattice_poses import lay_apart
from diffassemble.outlines.strip_sides import looks_like_strips

Look = Callable[[OutlinePieces, Poses, Bool[np.ndarray, "n"]], tuple[int, float]]
"""Clockwise quarter turns that make the chosen pieces upright at these poses, and the probability of that."""
# How much of the smallest rectangle around it a whole fills, if its sides tell how it stands.
_RECTANGULAR = 0.85


def stand_up(look: Look, pieces: OutlinePieces, grown: Placements) -> Placements:
    """The same placements with every object turned upright; `upright` is the probability of the least sure one.

    A whole that is no rectangle stays as it is: nobody knows how it stood. Silhouettes show no picture, and of pages
    of text, which are shredded to strips, the network has learnt nothing.
    """
    if not pieces.coloured or looks_like_strips(pieces):
        return grown
    cells = None if grown.cells is None else grown.cells.clone()
    poses = Poses(grown.poses.rotation.clone(), grown.poses.translation.clone())
    blocks, least = [], None
    for number in range(int(grown.numbers.max()) + 1):
        own = grown.numbers == number
        blocks.append(own.nonzero().flatten())
        found = _upright_poses(look, pieces, poses, own) if len(blocks[-1]) > 1 else None
        if found is None:
            continue
        turned, turns, sure = found
        poses.rotation[own], poses.translation[own] = turned.rotation[own], turned.translation[own]
        if cells is not None:
            cells[own] = turned_cells(cells[own], grown.numbers[own], turns)
        least = sure if least is None else min(least, sure)
    if least is None:
        return grown
    blocks += [piece.reshape(1) for piece in (grown.numbers < 0).nonzero().flatten()]
    lay_apart(pieces, poses, blocks, torch.zeros(len(pieces), dtype=torch.bool))
    return replace(grown, poses=poses, cells=cells, upright=least)


def _upright_poses(
    look: Look, pieces: OutlinePieces, poses: Poses, own: Bool[Tensor, "n"]
) -> tuple[Poses, int, float] | None:
    """Poses turned so that one whole is upright, by how many quarters beyond what makes it straight, and how surely."""
    inside = own.numpy()
    points = np.concatenate([curve for curve, here in zip(pieces.placed_contours(poses), inside, strict=True) if here])
    lean, filled = _rectangle(points, float(pieces.areas[own].sum()))
    if filled < _RECTANGULAR:
        return None
    straight = _turned(poses, -lean)
    turns, sure = look(pieces, straight, inside)
    return _turned(straight, turns * math.pi / 2), turns, sure


def _turned(poses: Poses, angle: float) -> Poses:
    """All poses turned clockwise as seen about one point."""
    turn = plane_rotations(torch.tensor([angle]))[0].to(poses.rotation)
    return Poses(turn @ poses.rotation, poses.translation @ turn.T)


def _rectangle(points: Float64[np.ndarray, "m 2"], area: float) -> tuple[float, float]:
    """By which angle, of at most an eighth turn, the smallest rectangle around points leans, and its filled share."""
    from scipy.spatial import ConvexHull

    hull = points[ConvexHull(points).vertices]
    edges = np.roll(hull, -1, 0) - hull
    found = []
    for angle in np.arctan2(edges[:, 1], edges[:, 0]):
        along = np.array([math.cos(angle), math.sin(angle)])
        found.append((np.ptp(hull @ along) * np.ptp(hull @ np.array([-along[1], along[0]])), angle))
    least, angle = min(found)
    return float((angle + math.pi / 4) % (math.pi / 2) - math.pi / 4), area / float(least)
