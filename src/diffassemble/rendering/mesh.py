"""Pictures and animations of broken objects: laid out on a table, on their way, and at their places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float, Float32
from PIL import Image
from scipy.spatial.transform import Rotation
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.shelves import shelves
from diffassemble.core import FragmentPieces, Poses, Puzzle
from diffassemble.rendering.animation import eased
from diffassemble.rendering.picture import (
    beside,
    confidence_colour,
    fragment_colours,
    in_a_row,
    under_title,
    with_legend,
)
from diffassemble.rendering.studio import Exposure, expose, frame, orbit
from diffassemble.rendering.triangles import triangles_of

# The table is seen from above at an angle, so that depth counts for less than width.
_WIDTH_TO_DEPTH = 0.95
_GAP = 0.12


def laid_out(pieces: FragmentPieces, height: float = 0.0) -> Poses:
    """Poses of fragments that lie on a table at `height`, about the origin, in rows, the large ones first.

    None lies over another. x runs along the rows, the first row is the farthest (lowest z). A fragment
    is turned as little as makes it lie on its flat side.
    """
    turns = lying_flat(pieces.points)
    turned = [points.astype(np.float64) @ turn.T for points, turn in zip(_corners(pieces), turns, strict=True)]
    low = np.stack([points.min(0) for points in turned])
    high = np.stack([points.max(0) for points in turned])
    sizes = (high - low)[:, [0, 2]] + _GAP * float(np.sqrt(np.prod((high - low)[:, [0, 2]], 1)).mean() + 1e-3)
    middles = shelves(sizes, _WIDTH_TO_DEPTH)
    shift = np.stack([middles[:, 0], np.full(len(sizes), height), middles[:, 1]], -1)
    base = np.stack([(low + high)[:, 0] / 2, low[:, 1], (low + high)[:, 2] / 2], -1)
    return Poses(torch.from_numpy(turns), torch.from_numpy((shift - base).astype(np.float32)))


def lying_flat(points: Float[Tensor, "n p 3"]) -> Float32[np.ndarray, "n 3 3"]:
    """The least turns that make the direction in which each fragment is thinnest upright."""
    clouds = points.detach().cpu().double().numpy()
    centred = clouds - clouds.mean(1, keepdims=True)
    thin = np.linalg.eigh(np.einsum("npi,npj->nij", centred, centred))[1][..., 0]
    thin = np.where(thin[:, 1:2] < 0, -thin, thin)
    # The turn that takes `thin` to `up` is I + [v]ₓ + [v]ₓ² / (1 + thin · up) with v = thin × up.
    v = np.cross(thin, [0.0, 1.0, 0.0])
    zero = np.zeros(len(v))
    cross = np.stack([zero, -v[:, 2], v[:, 1], v[:, 2], zero, -v[:, 0], -v[:, 1], v[:, 0], zero], -1).reshape(-1, 3, 3)
    return (np.eye(3) + cross + cross @ cross / (1 + thin[:, 1])[:, None, None]).astype(np.float32)


def _corners(pieces: FragmentPieces) -> list[Float32[np.ndarray, "v 3"]]:
    """All that has to have room: the vertices of each fragment, as far as they are numbers, or else its points."""
    found = []
    for mesh, points in zip(pieces.meshes, pieces.points, strict=True):
        vertices = mesh.vertices.detach().cpu().float().numpy()
        vertices = vertices[np.isfinite(vertices).all(-1)]
        found.append(vertices if len(vertices) else points.detach().cpu().float().numpy())
    return found


# Of a long history this many moments are passed through: more would only make fragments tremble.
_MOMENTS = 5
# Early guesses may lie anywhere: farther from the middle than `_NEAR` they are drawn in, to less than `_FAR`.
_NEAR, _FAR = 0.8, 1.5
# The last fragment sets out when this share of a flight's time is over.
_LATENESS = 0.35


@dataclass(frozen=True)
class Flight:
    """Stations on the way of n fragments, the times (0…1) when they are reached, and when each fragment sets out."""

    stations: tuple[Poses, ...]
    times: Float[Tensor, "k"]
    delays: Float[Tensor, "n"]

    def at(self, time: float) -> Poses:
        """Where the fragments are at a time from 0, all at the first station, to 1, all at the last."""
        if time >= 1:
            return self.stations[-1]
        own = torch.tensor([float(eased((time - delay) / (1 - _LATENESS))) for delay in self.delays.tolist()])
        after = torch.searchsorted(self.times, own, right=True).clamp(1, len(self.times) - 1)
        share = (own - self.times[after - 1]) / (self.times[after] - self.times[after - 1])
        who = torch.arange(len(own))
        places = torch.stack([station.translation for station in self.stations])
        turns = torch.stack([station.rotation for station in self.stations])
        place = torch.lerp(places[after - 1, who], places[after, who], share[:, None])
        return Poses(between(turns[after - 1, who], turns[after, who], share), place)

    def arrived(self, time: float) -> float:
        """The share of its way that the last fragment has behind it."""
        return float(eased((time - float(self.delays.max())) / (1 - _LATENESS)))


def plan_flight(start: Poses, history: Sequence[Poses], end: Poses) -> Flight:
    """From `start` through a few moments of `history` to `end`; what comes to stand lowest sets out first."""
    passed = [history[i] for i in torch.linspace(0, len(history) - 1, min(_MOMENTS, len(history))).round().long()]
    stations = (start, *(_drawn_in(poses) for poses in passed), _on_cpu(end))
    efforts = torch.stack([_effort(a, b) for a, b in pairwise(stations)])
    times = torch.cat([torch.zeros(1), efforts.cumsum(0) / efforts.sum()])
    rank = end.translation[:, 1].detach().cpu().argsort(stable=True).argsort()
    return Flight(stations, times, _LATENESS * rank / max(1, len(end) - 1))


def between(
    first: Float[Tensor, "n 3 3"], second: Float[Tensor, "n 3 3"], share: Float[Tensor, "n"]
) -> Float[Tensor, "n 3 3"]:
    """Rotations on the shortest ways from the first to the second, at these shares of them."""
    way = Rotation.from_matrix((first.mT @ second).numpy()).as_rotvec()
    return first @ torch.from_numpy(Rotation.from_rotvec(share[:, None].numpy() * way).as_matrix()).float()


def _effort(first: Poses, second: Poses) -> Tensor:
    """How far it is from one station to the next, on average; a half turn counts as much as a whole object."""
    turn = Rotation.from_matrix((first.rotation.mT @ second.rotation).numpy()).magnitude()
    move = (first.translation - second.translation).norm(dim=-1)
    return (move + torch.from_numpy(turn).float() / torch.pi).mean() + 1e-3


def _drawn_in(poses: Poses) -> Poses:
    """Poses that can be shown: rotations proper, and nothing too far away."""
    poses = _on_cpu(poses)
    distance = poses.translation.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    room = _FAR - _NEAR
    shown = torch.where(distance > _NEAR, _NEAR + room * torch.tanh((distance - _NEAR) / room), distance)
    left, _, right = torch.linalg.svd(poses.rotation)
    left = torch.cat([left[..., :2], left[..., 2:] * torch.linalg.det(left @ right)[:, None, None]], -1)
    return Poses(left @ right, poses.translation * (shown / distance))


def _on_cpu(poses: Poses) -> Poses:
    return Poses(poses.rotation.detach().cpu().float(), poses.translation.detach().cpu().float())


PICTURE = (960, 840)
PANEL = (480, 420)
MOVING = (480, 420)

# Objects are seen from the front, a little from the right and above; tables from higher up. Degrees.
_OBJECT_VIEW = (30.0, 24.0)
_TABLE_VIEW = (0.0, 52.0)
_VIEWS = {"front": (0.0, 18.0), "side": (90.0, 18.0), "top": (0.0, 90.0)}
_FIRST_VIEW = (-45.0, 48.0)
_MARGIN = 0.09
_STILL_TRIANGLES, _MOVING_TRIANGLES = 300_000, 60_000


class _Stills:
    """What the pictures of an assembly share."""

    def __init__(self, assembly: Answer) -> None:
        self.poses, self.lock = assembly.poses, Lock()
        self.things = triangles_of(assembly.puzzle.fragments.meshes, _STILL_TRIANGLES)
        self.extremes = self.things.extremes(len(assembly.puzzle))
        self.placed = np.array(assembly.placements.placed)

    @cached_property
    def assembled(self) -> Exposure:
        """The assembled object before it is coloured."""
        return self.seen(self.poses, PICTURE)

    @cached_property
    def sides(self) -> dict[str, Exposure]:
        """What has a place, from three sides; what was left out would hide it."""
        placed = self.placed if self.placed.any() else np.ones(len(self.placed), bool)
        things = self.things.placed(self.poses)
        things = things.of(placed[things.owner])
        reached = _reached(self.extremes[placed], self.poses[np.flatnonzero(placed).tolist()])
        ground = float(reached[:, 1].min())
        return {
            name: expose(things, frame(reached, orbit(*view), PANEL, _MARGIN), PANEL, ground=ground)
            for name, view in _VIEWS.items()
        }

    def seen(self, poses: Poses, size: tuple[int, int], view: tuple[float, float] = _OBJECT_VIEW) -> Exposure:
        """The fragments wherever they stand, on a table just below, filling a picture of this size."""
        reached = _reached(self.extremes, poses)
        camera = frame(reached, orbit(*view), size, _MARGIN)
        return expose(self.things.placed(poses), camera, size, ground=float(reached[:, 1].min()))


_made: WeakKeyDictionary[Answer, _Stills] = WeakKeyDictionary()
_making = Lock()


def _stills(assembly: Answer) -> _Stills:
    """Pictures are drawn in threads: the first makes what they share, the others wait for it."""
    with _making:
        if assembly not in _made:
            _made.clear()
            _made[assembly] = _Stills(assembly)
        return _made[assembly]


def draw_assembly(assembly: Answer) -> Image.Image:
    """The assembled object, upright, from the front and above, as its scans are coloured.

    Here and below each fragment that has no colours has one that tells it from the others.
    """
    return _stills(assembly).assembled.coloured(fragment_colours(len(assembly.puzzle)), own=True)


def draw_pieces(puzzle: Puzzle) -> Image.Image:
    """The fragments on a table."""
    table = laid_out(puzzle.fragments)
    things = triangles_of(puzzle.fragments.meshes, _STILL_TRIANGLES)
    reached = _reached(things.extremes(len(puzzle)), table)
    camera = frame(reached, orbit(*_TABLE_VIEW), PANEL, _MARGIN)
    seen = expose(things.placed(table), camera, PANEL, ground=float(reached[:, 1].min()))
    return seen.coloured(fragment_colours(len(puzzle)), own=True)


def draw_before_after(assembly: Answer) -> Image.Image:
    """The fragments on a table beside what became of them and, if it is known, what they once were; captioned."""
    puzzle = assembly.puzzle
    stills, colours = _stills(assembly), fragment_colours(len(puzzle))
    before = stills.seen(laid_out(puzzle.fragments), PANEL, _TABLE_VIEW).coloured(colours, own=True)
    count = "one fragment" if len(puzzle) == 1 else f"{len(puzzle)} fragments"
    after = stills.seen(assembly.poses, PANEL).coloured(colours, own=True)
    panels = [under_title(before, count), under_title(after, "assembled")]
    if puzzle.truth is not None:
        panels.append(under_title(stills.seen(puzzle.truth, PANEL).coloured(colours, own=True), "the true whole"))
    return beside(*panels)


def draw_confidence(assembly: Answer) -> Image.Image:
    """The assembled object from three sides in the colours of how sure each fragment is, with a legend."""
    colours = np.array([confidence_colour(sure) for sure in assembly.confidence.tolist()], np.float32) / 255
    return with_legend(
        _three(assembly, colours, own=False), f"confidence, mean {float(assembly.confidence.nanmean()):.2f}"
    )


def draw_views(assembly: Answer) -> Image.Image:
    """The assembled object from the front, the side and above; captioned."""
    return _three(assembly, fragment_colours(len(assembly.puzzle)), own=True)


def _three(assembly: Answer, colours: Float32[np.ndarray, "n 3"], own: bool) -> Image.Image:
    stills = _stills(assembly)
    with stills.lock:
        sides = stills.sides
    return in_a_row([under_title(side.coloured(colours, own), name) for name, side in sides.items()])


def animate(assembly: Answer, frames: int = 48) -> list[Image.Image]:
    """Fragments rising from a table and flying to their places, while the camera turns and comes nearer.

    They pass through `assembly.history`; the last frame shows what `draw_assembly` does.
    """
    puzzle = assembly.puzzle
    things, colours = triangles_of(puzzle.fragments.meshes, _MOVING_TRIANGLES), fragment_colours(len(puzzle))
    extremes = things.extremes(len(puzzle))
    standing = _reached(extremes, assembly.poses)
    floor = float(standing[:, 1].min())
    flight = plan_flight(laid_out(puzzle.fragments, floor), assembly.history, assembly.poses)
    early = np.concatenate([_reached(extremes, station) for station in flight.stations[:-1]])

    def shot(time: float) -> Image.Image:
        poses, done = flight.at(time), eased(time)
        view = orbit(*(here + done * (there - here) for here, there in zip(_FIRST_VIEW, _OBJECT_VIEW, strict=True)))
        wide, close = (frame(points, view, MOVING, _MARGIN) for points in (early, standing))
        # Late ones must stay within the picture: it closes in when all are nearly there.
        camera = wide.towards(close, flight.arrived(time) ** 3)
        ground = min(floor, float(_reached(extremes, poses)[:, 1].min()))
        return expose(things.placed(poses), camera, MOVING, ground=ground, samples=1).coloured(colours, own=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(shot, np.linspace(0, 1, max(frames, 2)).tolist()))


def _reached(extremes: Float[Tensor, "n k 3"], poses: Poses) -> Float32[np.ndarray, "p 3"]:
    """The places that the extremes of pieces come to."""
    return _on_cpu(poses).apply(extremes).reshape(-1, 3).numpy()
