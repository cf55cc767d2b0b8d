"""How assembled objects are shown: upright on a table, with what is unplaced beside them.

Only pictures are turned. The answer stays as the largest fragment was given, which is what files of meshes need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.layout import in_rows
from diffassemble.core import Poses, Puzzle

Members = Bool[Tensor, "n"]
CanonicalRotation = Callable[[Float[Tensor, "p 3"]], Float[Tensor, "3 3"]]
"""The rotation by which an object, given as a cloud, is brought to its canonical orientation."""


@dataclass(frozen=True)
class StandingConfig:
    """How assembled objects are stood up for pictures. Lengths in shares of the object's longest side."""

    tilt: float = 25.0
    """degrees by which an object tilts onto a side that it can stand on, at most"""
    over: float = 0.01
    """its centre must be over that side, within this margin"""
    vertices: int = 4000
    """vertices of a fragment that are looked at"""
    gap: float = 0.1
    """between objects side by side"""
    boxed: int = 3000
    """points by which the middle of an object is found"""
    most: int = 3
    """objects that are stood up; more would take too long"""


STANDING = StandingConfig()


def stood(
    puzzle: Puzzle, poses: Poses, members: Members, upright: CanonicalRotation, config: StandingConfig = STANDING
) -> Poses:
    """Poses turned together such that the object of the members is upright, the middle of its box at the origin."""
    cloud = cloud_of(puzzle, poses, members, config.boxed)
    looked = cloud[: puzzle.fragments.points.shape[1]]
    turn = upright(looked - looked.mean(0))
    box = cloud @ turn.T
    return Poses(turn @ poses.rotation, poses.translation @ turn.T - (box.amin(0) + box.amax(0)) / 2)


def cloud_of(puzzle: Puzzle, poses: Poses, members: Members, count: int) -> Float[Tensor, "c 3"]:
    """So many points, drawn by area from some of the fragments where they are; from all, if these are none."""
    pieces, generator = puzzle.fragments, torch.Generator().manual_seed(0)
    areas, size = pieces.areas.float(), pieces.points.shape[1]
    whose = torch.multinomial(areas.where(members | ~members.any(), 0.0), count, replacement=True, generator=generator)
    which = torch.randint(size, (count,), generator=generator)
    return poses[whose].apply(pieces.points[whose, which][:, None])[:, 0]


def stood_up(assembly: Answer, upright: CanonicalRotation | None, config: StandingConfig = STANDING) -> Answer:
    """The assembly with every object turned upright, all on one table in a row; its history is turned with it.

    `upright` finds the rotation of a cloud of points; without it, objects are taken to be nearly upright.
    """
    puzzle, poses, left = assembly.puzzle, assembly.poses, ~torch.tensor(assembly.placements.placed)
    main = assembly.placements.numbers.clamp(min=0).masked_fill(left, -1)
    if not bool((main == 0).any()):  # nothing has a place
        return assembly
    # A network may have put unplaced fragments anywhere; otherwise they are side by side.
    alone = [torch.arange(len(puzzle)) == piece for piece in left.nonzero()[:, 0].tolist()]
    heaps = alone if upright is None else _heaps(puzzle, poses, left, config)
    count = int(main.max()) + 1
    parts = [*(main == own for own in range(count)), *heaps]
    turns = [torch.eye(3)] * len(parts)
    for number in range(min(config.most, count)):
        turns[number] = standing_turn(puzzle, poses, parts[number], upright, config)
    boxes = [
        _corners(puzzle, poses, members, config.vertices) @ turn.T for members, turn in zip(parts, turns, strict=True)
    ]
    low, high = (torch.stack([end(box, 0) for box in boxes]).double().numpy() for end in (torch.amin, torch.amax))
    shifts = in_rows(low, high, start=(-(high - low)[0, 0] / 2, -(high - low)[0, 1] / 2), gap=config.gap)
    rotation, translation = poses.rotation.clone(), poses.translation.clone()
    for members, turn, shift in zip(parts, turns, torch.from_numpy(shifts).float(), strict=True):
        rotation[members] = turn @ poses.rotation[members]
        translation[members] = poses.translation[members] @ turn.T + shift
    motion = Poses(turns[0][None], torch.from_numpy(shifts[:1]).float())
    history = tuple(motion[[0] * len(puzzle)] @ step for step in assembly.history)
    return replace(assembly.with_placements(poses=Poses(rotation, translation)), history=history)


def standing_turn(
    puzzle: Puzzle, poses: Poses, members: Members, upright: CanonicalRotation | None, config: StandingConfig = STANDING
) -> Float[Tensor, "3 3"]:
    """The rotation of an object to upright, and then onto the side that it stands on."""
    cloud = cloud_of(puzzle, poses, members, puzzle.fragments.points.shape[1])
    centre = cloud.mean(0)
    turn = torch.eye(3) if upright is None else upright(cloud - centre)
    corners = (_corners(puzzle, poses, members, config.vertices) - centre) @ turn.T
    return settling(corners, ((cloud - centre) @ turn.T).mean(0), config) @ turn


def settling(
    corners: Float[Tensor, "k 3"], middle: Float[Tensor, "3"], config: StandingConfig = STANDING
) -> Float[Tensor, "3 3"]:
    """The least turn that lays an object onto a side on which it stands firmly; none where no such side is near."""
    try:
        planes = ConvexHull(corners.double().numpy()).equations
    except (QhullError, ValueError):
        return torch.eye(3)
    down, over = np.array([0.0, -1.0, 0.0]), middle.double().numpy()
    normals, offsets = planes[:, :3], planes[:, 3]
    near = np.flatnonzero(normals @ down > np.cos(np.radians(config.tilt)))
    for side in near[np.argsort(-(normals[near] @ down), kind="stable")]:
        foot = over - (normals[side] @ over + offsets[side]) * normals[side]
        if (normals @ foot + offsets).max() <= config.over * float(np.ptp(corners.numpy(), axis=0).max()):
            return torch.from_numpy(Rotation.align_vectors([down], [normals[side]])[0].as_matrix()).float()
    return torch.eye(3)


def _corners(puzzle: Puzzle, poses: Poses, members: Members, most: int) -> Float[Tensor, "k 3"]:
    """Vertices and points of some fragments where they are, about as many vertices of each as given."""
    found = []
    for piece in members.nonzero()[:, 0].tolist():
        vertices = puzzle.fragments.meshes[piece].vertices
        vertices = vertices[vertices.isfinite().all(-1)][:: max(1, len(vertices) // most)]
        own = torch.cat([vertices, puzzle.fragments.points[piece]])
        found.append(own @ poses.rotation[piece].T + poses.translation[piece])
    return torch.cat(found)


def _heaps(puzzle: Puzzle, poses: Poses, left: Members, config: StandingConfig) -> list[Members]:
    """Unplaced fragments in groups without gaps along the first axis between them."""
    spans = []
    for piece in left.nonzero()[:, 0].tolist():
        extent = _corners(puzzle, poses, torch.arange(len(left)) == piece, config.vertices)[:, 0]
        spans.append((float(extent.min()), float(extent.max()), piece))
    heaps: list[Members] = []
    end = -float("inf")
    for low, high, piece in sorted(spans):
        if low > end + config.gap / 2:
            heaps.append(torch.zeros(len(left), dtype=torch.bool))
        heaps[-1][piece] = True
        end = max(end, high)
    return heaps
