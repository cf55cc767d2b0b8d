"""How assembled objects are shown: upright on a table, with what was left out beside them.

Only pictures are turned. The answer stays as the largest fragment was given, which is what files of meshes need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import Poses, Puzzle
from diffassemble.fragments.symmetry import completed_box

# An object tilts by at most so many degrees onto a side that it can stand on.
_TILT = 25.0
# Its middle must lie over that side, within this share of its size.
_OVER = 0.01
# So many vertices of a fragment are looked at.
_VERTICES = 4000
_GAP = 0.1
# So many points say where the middle of an object is.
_BOXED = 3000
# So many objects are stood up; more would take too long.
_MOST = 3


CanonicalRotation = Callable[[Float[Tensor, "p 3"]], Float[Tensor, "3 3"]]
"""Says by which rotation an object, given as a cloud, must be turned to stand as its kind does."""


def stood(puzzle: Puzzle, poses: Poses, members: Bool[Tensor, "n"], upright: CanonicalRotation) -> Poses:
    """Poses turned together such that the object stands about the origin; it is looked at without what may not be of
    it. The middle is that of the whole: what is round and lacks a part is thought to be complete."""
    cloud = cloud_of(puzzle, poses, members, _BOXED)
    looked = cloud[: puzzle.fragments.points.shape[1]]
    turn = upright(looked - looked.mean(0))
    low, high = completed_box(cloud @ turn.T)
    return Poses(turn @ poses.rotation, poses.translation @ turn.T - (low + high) / 2)


def cloud_of(puzzle: Puzzle, poses: Poses, members: Bool[Tensor, "n"], count: int) -> Float[Tensor, "c 3"]:
    """So many points, drawn by area from some of the fragments where they stand; from all, if these are none."""
    pieces, generator = puzzle.fragments, torch.Generator().manual_seed(0)
    areas, size = pieces.areas.float(), pieces.points.shape[1]
    whose = torch.multinomial(areas.where(members | ~members.any(), 0.0), count, replacement=True, generator=generator)
    which = torch.randint(size, (count,), generator=generator)
    return poses[whose].apply(pieces.points[whose, which][:, None])[:, 0]


def stood_up(assembly: Answer, upright: CanonicalRotation | None) -> Answer:
    """The assembly with every object turned upright, all on one table in a row; its way there is turned with it.

    `upright` says how a cloud of points must be turned; without it, objects are thought to stand nearly upright.
    """
    puzzle, poses, left = assembly.puzzle, assembly.poses, ~torch.tensor(assembly.placements.placed)
    main = assembly.placements.numbers.clamp(min=0).masked_fill(left, -1)
    if not bool((main == 0).any()):  # nothing has a place
        return assembly
    rotation, translation, edge, ground = poses.rotation.clone(), poses.translation.clone(), 0.0, 0.0
    count, motion = int(main.max()) + 1, Poses.identity(1, 3)
    # A network may have put what was left out anywhere; otherwise it lies side by side.
    alone = [torch.arange(len(puzzle)) == piece for piece in left.nonzero()[:, 0].tolist()]
    heaps = alone if upright is None else _heaps(puzzle, poses, left)
    for number, members in enumerate([*(main == own for own in range(count)), *heaps]):
        turn = standing_turn(puzzle, poses, members, upright) if number < min(_MOST, count) else torch.eye(3)
        box = _corners(puzzle, poses, members) @ turn.T
        low, high = box.amin(0), box.amax(0)
        shift = -(low + high) / 2
        if number:
            shift[0], shift[1] = edge + _GAP - low[0], ground - low[1]
            edge += _GAP + float(high[0] - low[0])
        else:
            edge, ground = float(high[0] - low[0]) / 2, float(low[1] + shift[1])
            motion = Poses(turn[None], shift[None])
        rotation[members] = turn @ poses.rotation[members]
        translation[members] = poses.translation[members] @ turn.T + shift
    history = tuple(motion[[0] * len(puzzle)] @ step for step in assembly.history)
    return replace(assembly.with_placements(poses=Poses(rotation, translation)), history=history)


def standing_turn(
    puzzle: Puzzle,
    poses: Poses,
    members: Bool[Tensor, "n"],
    upright: CanonicalRotation | None,
) -> Float[Tensor, "3 3"]:
    """What turns an object upright, and then onto the side that it stands on."""
    cloud = cloud_of(puzzle, poses, members, puzzle.fragments.points.shape[1])
    centre = cloud.mean(0)
    cloud = cloud - centre
    turn = torch.eye(3) if upright is None else upright(cloud)
    corners = (_corners(puzzle, poses, members) - centre) @ turn.T
    return settling(corners, (cloud @ turn.T).mean(0)) @ turn


def settling(corners: Float[Tensor, "k 3"], middle: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """The least turn that lays an object onto a side on which it stands firmly; none where no such side is near."""
    try:
        planes = ConvexHull(corners.double().numpy()).equations
    except (QhullError, ValueError):
        return torch.eye(3)
    down, over = np.array([0.0, -1.0, 0.0]), middle.double().numpy()
    normals, offsets = planes[:, :3], planes[:, 3]
    near = np.flatnonzero(normals @ down > np.cos(np.radians(_TILT)))
    for side in near[np.argsort(-(normals[near] @ down), kind="stable")]:
        foot = over - (normals[side] @ over + offsets[side]) * normals[side]
        if (normals @ foot + offsets).max() <= _OVER * float(np.ptp(corners.numpy(), axis=0).max()):
            return torch.from_numpy(Rotation.align_vectors([down], [normals[side]])[0].as_matrix()).float()
    return torch.eye(3)


def _corners(puzzle: Puzzle, poses: Poses, members: Bool[Tensor, "n"]) -> Float[Tensor, "k 3"]:
    """Vertices of some fragments where they stand, or many of them."""
    found = []
    for piece in members.nonzero()[:, 0].tolist():
        vertices = puzzle.fragments.meshes[piece].vertices
        vertices = vertices[vertices.isfinite().all(-1)][:: max(1, len(vertices) // _VERTICES)]
        own = torch.cat([vertices, puzzle.fragments.points[piece]])
        found.append(own @ poses.rotation[piece].T + poses.translation[piece])
    return torch.cat(found)


def _heaps(puzzle: Puzzle, poses: Poses, left: Bool[Tensor, "n"]) -> list[Bool[Tensor, "n"]]:
    """Fragments that were left out, those together that lie together: side by side there are gaps between them."""
    spans = []
    for piece in left.nonzero()[:, 0].tolist():
        across = _corners(puzzle, poses, torch.arange(len(left)) == piece)[:, 0]
        spans.append((float(across.min()), float(across.max()), piece))
    heaps: list[Bool[Tensor, "n"]] = []
    end = -float("inf")
    for low, high, piece in sorted(spans):
        if low > end + _GAP / 2:
            heaps.append(torch.zeros(len(left), dtype=torch.bool))
        heaps[-1][piece] = True
        end = max(end, high)
    return heaps
