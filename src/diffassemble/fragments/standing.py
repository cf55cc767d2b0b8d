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
from diffassemble.core import Poses, Puzzle


@dataclass(frozen=True)
class SymmetryConfig:
    """How the axis of a turned object is found. Lengths in shares of the object's longest side."""

    layers: int = 16
    """heights by which an object is looked at"""
    step: float = 0.02
    """width of the rings"""
    rings: int = 60
    reach: float = 0.24
    """greatest distance of the axis from the middle of the box"""
    places: int = 13
    """axes that are tried each way"""
    closer: tuple[float, ...] = (1.0, 0.25, 0.08)
    """ever closer, by these factors"""
    sectors: int = 16
    round: float = 0.5
    """a ring is round if its points lie in at least this share of its sectors"""
    alike: int = 3
    """at so many heights"""
    notable: float = 0.05
    """what is missing is more than this, or the surface is merely not quite round"""


@dataclass(frozen=True)
class StandingConfig:
    """How assembled objects are stood up for pictures. Lengths in shares of the object's longest side."""

    tilt: float = 25.0
    """degrees by which an object tilts onto a side that it can stand on, at most"""
    over: float = 0.01
    """its centre must lie over that side, within this margin"""
    vertices: int = 4000
    """vertices of a fragment that are looked at"""
    gap: float = 0.1
    """between objects side by side"""
    boxed: int = 3000
    """points by which the middle of an object is found"""
    most: int = 3
    """objects that are stood up; more would take too long"""
    complete: SymmetryConfig | None = SymmetryConfig()
    """how what is round is thought whole; none: the middle is that of what is there"""


SYMMETRY, STANDING = SymmetryConfig(), StandingConfig()
CanonicalRotation = Callable[[Float[Tensor, "p 3"]], Float[Tensor, "3 3"]]
"""Says by which rotation an object, given as a cloud, must be turned to stand as its kind does."""


def stood(
    puzzle: Puzzle,
    poses: Poses,
    members: Bool[Tensor, "n"],
    upright: CanonicalRotation,
    config: StandingConfig = STANDING,
) -> Poses:
    """Poses turned together such that the object stands about the origin; it is looked at without what may not be of
    it. The middle is that of the whole: what is round and lacks a part is thought to be complete."""
    cloud = cloud_of(puzzle, poses, members, config.boxed)
    looked = cloud[: puzzle.fragments.points.shape[1]]
    turn = upright(looked - looked.mean(0))
    low, high = completed_box(cloud @ turn.T, config.complete)
    return Poses(turn @ poses.rotation, poses.translation @ turn.T - (low + high) / 2)


def cloud_of(puzzle: Puzzle, poses: Poses, members: Bool[Tensor, "n"], count: int) -> Float[Tensor, "c 3"]:
    """So many points, drawn by area from some of the fragments where they stand; from all, if these are none."""
    pieces, generator = puzzle.fragments, torch.Generator().manual_seed(0)
    areas, size = pieces.areas.float(), pieces.points.shape[1]
    whose = torch.multinomial(areas.where(members | ~members.any(), 0.0), count, replacement=True, generator=generator)
    which = torch.randint(size, (count,), generator=generator)
    return poses[whose].apply(pieces.points[whose, which][:, None])[:, 0]


def stood_up(assembly: Answer, upright: CanonicalRotation | None, config: StandingConfig = STANDING) -> Answer:
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
    heaps = alone if upright is None else _heaps(puzzle, poses, left, config)
    for number, members in enumerate([*(main == own for own in range(count)), *heaps]):
        turn = (
            standing_turn(puzzle, poses, members, upright, config) if number < min(config.most, count) else torch.eye(3)
        )
        box = _corners(puzzle, poses, members, config.vertices) @ turn.T
        low, high = box.amin(0), box.amax(0)
        shift = -(low + high) / 2
        if number:
            shift[0], shift[1] = edge + config.gap - low[0], ground - low[1]
            edge += config.gap + float(high[0] - low[0])
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
    config: StandingConfig = STANDING,
) -> Float[Tensor, "3 3"]:
    """What turns an object upright, and then onto the side that it stands on."""
    cloud = cloud_of(puzzle, poses, members, puzzle.fragments.points.shape[1])
    centre = cloud.mean(0)
    cloud = cloud - centre
    turn = torch.eye(3) if upright is None else upright(cloud)
    corners = (_corners(puzzle, poses, members, config.vertices) - centre) @ turn.T
    return settling(corners, (cloud @ turn.T).mean(0), config) @ turn


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


def _corners(puzzle: Puzzle, poses: Poses, members: Bool[Tensor, "n"], most: int) -> Float[Tensor, "k 3"]:
    """Vertices of some fragments where they stand, or many of them."""
    found = []
    for piece in members.nonzero()[:, 0].tolist():
        vertices = puzzle.fragments.meshes[piece].vertices
        vertices = vertices[vertices.isfinite().all(-1)][:: max(1, len(vertices) // most)]
        own = torch.cat([vertices, puzzle.fragments.points[piece]])
        found.append(own @ poses.rotation[piece].T + poses.translation[piece])
    return torch.cat(found)


def _heaps(puzzle: Puzzle, poses: Poses, left: Bool[Tensor, "n"], config: StandingConfig) -> list[Bool[Tensor, "n"]]:
    """Fragments that were left out, those together that lie together: side by side there are gaps between them."""
    spans = []
    for piece in left.nonzero()[:, 0].tolist():
        across = _corners(puzzle, poses, torch.arange(len(left)) == piece, config.vertices)[:, 0]
        spans.append((float(across.min()), float(across.max()), piece))
    heaps: list[Bool[Tensor, "n"]] = []
    end = -float("inf")
    for low, high, piece in sorted(spans):
        if low > end + config.gap / 2:
            heaps.append(torch.zeros(len(left), dtype=torch.bool))
        heaps[-1][piece] = True
        end = max(end, high)
    return heaps


def completed_box(
    points: Float[Tensor, "p 3"], config: SymmetryConfig | None = SYMMETRY
) -> tuple[Float[Tensor, "3"], Float[Tensor, "3"]]:
    """Least and greatest coordinates of an upright object (y is up) whose longest side is about 1, rings made whole.

    The middle of what is left lies beside that of the whole; but most vessels are turned about an axis, so half of a
    rim shows where all of it was.
    """
    low, high = points.amin(0), points.amax(0)
    if config is None:
        return low, high
    layer = ((points[:, 1] - low[1]) / (high[1] - low[1]).clamp(min=1e-6) * config.layers).long()
    layer = layer.clamp(max=config.layers - 1)
    axis = find_axis(points[:, [0, 2]], layer, config)
    radius = _round_radius(points[:, [0, 2]] - axis, layer, config)
    for side, across in enumerate((0, 2)) if radius > 0 else ():
        least, most = axis[side] - radius, axis[side] + radius
        low[across] = least if least < low[across] - config.notable else low[across]
        high[across] = most if most > high[across] + config.notable else high[across]
    return low, high


def find_axis(points: Float[Tensor, "p 2"], layer: Tensor, config: SymmetryConfig = SYMMETRY) -> Float[Tensor, "2"]:
    """The vertical axis about which the surface, by height and radius, gathers in the fewest cells."""
    axis = (points.amin(0) + points.amax(0)) / 2
    steps = torch.linspace(-config.reach, config.reach, config.places)
    places = torch.cartesian_prod(steps, steps)
    for share in config.closer:
        tried = axis + share * places
        radius = (points - tried[:, None]).norm(dim=-1) / config.step
        inner = radius.floor()
        mass = torch.zeros(len(tried), config.layers * (config.rings + 1))
        for ring, part in ((inner, 1 - (radius - inner)), (inner + 1, radius - inner)):
            mass.scatter_add_(1, layer * (config.rings + 1) + ring.long().clamp(max=config.rings), part)
        axis = tried[mass.square().sum(1).argmax()]
    return axis


def _round_radius(points: Float[Tensor, "p 2"], layer: Tensor, config: SymmetryConfig) -> float:
    """The radius of the largest ring about the origin that is round; 0 if none is."""
    radius = points.norm(dim=-1)
    sector = (torch.atan2(points[:, 1], points[:, 0]) / (2 * torch.pi) * config.sectors).floor().long() % config.sectors
    seen: Bool[Tensor, "l r s"] = torch.zeros(config.layers, config.rings + 1, config.sectors, dtype=torch.bool)
    for shift in (0, 1):  # a ring is two steps wide
        ring = ((radius / config.step).long() + shift).clamp(max=config.rings)
        seen[layer, ring, sector] = True
    found = ((seen.float().mean(-1) >= config.round).sum(0) >= config.alike).nonzero()
    return float(radius[(radius / config.step).long() <= int(found.max())].max()) if len(found) else 0.0
