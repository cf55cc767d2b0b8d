"""Pictures and animations of broken objects: laid out on a table, on their way, and at their places."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import roma
import torch
from jaxtyping import Float, Float32
from PIL import Image
from scipy.spatial.transform import Rotation
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.layout import on_table
from diffassemble.core import FragmentPieces, Poses, Puzzle
from diffassemble.rendering.animation import along, eased, few_moments
from diffassemble.rendering.picture import (
    beside,
    confidence_colour,
    fragment_colours,
    in_a_row,
    under_title,
    with_legend,
)
from diffassemble.rendering.studio import Exposure, Triangles, expose, frame, orbit, triangles_of


@dataclass(frozen=True)
class MeshStyle:
    """How broken objects are shown. Sizes are pixels; views are azimuth and elevation in degrees."""

    picture: tuple[int, int] = (960, 840)
    panel: tuple[int, int] = (480, 420)  # in a row of several, and a frame of an animation
    margin: float = 0.09  # around, of the picture
    view: tuple[float, float] = (30.0, 24.0)  # of an object: from the front, a little from the right and above
    table_view: tuple[float, float] = (0.0, 52.0)
    first_view: tuple[float, float] = (-45.0, 48.0)  # an animation begins with
    sides: tuple[tuple[str, float, float], ...] = (("front", 0.0, 18.0), ("side", 90.0, 18.0), ("top", 0.0, 90.0))
    aspect: float = 0.95  # width of a table to its depth, which counts for less, seen at an angle
    room: float = 0.12  # between fragments on a table, of their mean size
    triangles: int = 300_000  # drawn at most …
    moving_triangles: int = 60_000  # … and in an animation
    near: float = 0.8  # early guesses that are farther from the middle are drawn in …
    far: float = 1.5  # … to less than this
    late: float = 0.35  # share of the time after which the last fragment sets out


MESH_STYLE = MeshStyle()


def laid_out(pieces: FragmentPieces, height: float = 0.0, style: MeshStyle = MESH_STYLE) -> Poses:
    """Poses of fragments on a table at `height`, about the origin, in rows along x, the first at the lowest z.

    None is over another; each is turned as little as brings it onto its flat side.
    """
    turns = lying_flat(pieces.points)
    turned = [points.astype(np.float64) @ turn.T for points, turn in zip(_corners(pieces), turns, strict=True)]
    low = np.stack([points.min(0) for points in turned])
    high = np.stack([points.max(0) for points in turned])
    gap = style.room * float(np.sqrt(np.prod((high - low)[:, [0, 2]], 1)).mean() + 1e-3)
    shift = on_table(low, high, gap, style.aspect, down=2)
    shift[:, 1] = height - low[:, 1]
    return Poses(torch.from_numpy(turns), torch.from_numpy(shift.astype(np.float32)))


def lying_flat(points: Float[Tensor, "n p 3"]) -> Float32[np.ndarray, "n 3 3"]:
    """The least turns that make the direction in which each fragment is thinnest upright."""
    clouds = points.detach().cpu().double().numpy()
    centred = clouds - clouds.mean(1, keepdims=True)
    thin = np.linalg.eigh(np.einsum("npi,npj->nij", centred, centred))[1][..., 0]
    up = [[0.0, 1.0, 0.0]]
    turns = [Rotation.align_vectors(up, [-one if one[1] < 0 else one])[0].as_matrix() for one in thin]
    return np.stack(turns).astype(np.float32)


def _corners(pieces: FragmentPieces) -> list[Float32[np.ndarray, "v 3"]]:
    """All that has to have room: the vertices of each fragment, as far as they are numbers, or else its points."""
    found = []
    for mesh, points in zip(pieces.meshes, pieces.points, strict=True):
        vertices = mesh.vertices.detach().cpu().float().numpy()
        vertices = vertices[np.isfinite(vertices).all(-1)]
        found.append(vertices if len(vertices) else points.detach().cpu().float().numpy())
    return found


def _drawn_in(poses: Poses, style: MeshStyle) -> Poses:
    """Poses that can be shown: rotations proper, and nothing too far away."""
    poses = _on_cpu(poses)
    distance = poses.translation.norm(dim=-1, keepdim=True).clamp(min=1e-6)
    room = style.far - style.near
    shown = torch.where(distance > style.near, style.near + room * torch.tanh((distance - style.near) / room), distance)
    return Poses(roma.special_procrustes(poses.rotation), poses.translation * (shown / distance))


def _on_cpu(poses: Poses) -> Poses:
    return Poses(poses.rotation.detach().cpu().float(), poses.translation.detach().cpu().float())


class _Stills:
    """What the pictures of an assembly share; they are drawn in threads, of which the first makes it for all."""

    def __init__(self, assembly: Answer) -> None:
        self.poses, self.lock = assembly.poses, Lock()
        self.things = triangles_of(assembly.puzzle.fragments.meshes, MESH_STYLE.triangles)
        self.extremes = self.things.extremes(len(assembly.puzzle))
        self.placed = np.array(assembly.placements.placed)

    @cached_property
    def sides(self) -> dict[str, Exposure]:
        """The placed fragments from three sides; unplaced ones would hide them."""
        placed = self.placed if self.placed.any() else np.ones(len(self.placed), bool)
        things, reached = self.things.of(placed[self.things.owner]), _reached(self.extremes, self.poses)[placed]
        views = {name: (azimuth, elevation) for name, azimuth, elevation in MESH_STYLE.sides}
        return {name: seen(things, self.poses, reached, MESH_STYLE.panel, view) for name, view in views.items()}


_made: WeakKeyDictionary[Answer, _Stills] = WeakKeyDictionary()
_making = Lock()


def _stills(assembly: Answer) -> _Stills:
    with _making:
        if assembly not in _made:
            _made.clear()
            _made[assembly] = _Stills(assembly)
        return _made[assembly]


def seen(
    things: Triangles,
    poses: Poses,
    reached: Float32[np.ndarray, "m k 3"],
    size: tuple[int, int],
    view: tuple[float, float] = MESH_STYLE.view,
) -> Exposure:
    """Fragments at their poses, on a table just below; they reach these places, and fill the picture."""
    camera = frame(reached.reshape(-1, 3), orbit(*view), size, MESH_STYLE.margin)
    return expose(things.placed(poses), camera, size, ground=float(reached[..., 1].min()))


def draw_assembly(assembly: Answer) -> Image.Image:
    """The assembled object from the front and above, as its scans are coloured, or else by `fragment_colours`."""
    stills = _stills(assembly)
    shown = seen(stills.things, stills.poses, _reached(stills.extremes, stills.poses), MESH_STYLE.picture)
    return shown.coloured(fragment_colours(len(assembly.puzzle)), own=True)


def draw_pieces(puzzle: Puzzle) -> Image.Image:
    """The fragments on a table."""
    things = triangles_of(puzzle.fragments.meshes, MESH_STYLE.triangles)
    table, extremes = laid_out(puzzle.fragments), things.extremes(len(puzzle))
    shown = seen(things, table, _reached(extremes, table), MESH_STYLE.panel, MESH_STYLE.table_view)
    return shown.coloured(fragment_colours(len(puzzle)), own=True)


def draw_before_after(assembly: Answer) -> Image.Image:
    """The fragments on a table beside what became of them and, if it is known, what they once were; captioned."""
    puzzle, stills = assembly.puzzle, _stills(assembly)
    count = "one fragment" if len(puzzle) == 1 else f"{len(puzzle)} fragments"
    shown = [(count, laid_out(puzzle.fragments), MESH_STYLE.table_view), ("assembled", assembly.poses, MESH_STYLE.view)]
    if puzzle.truth is not None:
        shown.append(("the true whole", puzzle.truth, MESH_STYLE.view))
    panels = []
    for title, poses, view in shown:
        exposure = seen(stills.things, poses, _reached(stills.extremes, poses), MESH_STYLE.panel, view)
        panels.append(under_title(exposure.coloured(fragment_colours(len(puzzle)), own=True), title))
    return beside(*panels)


def draw_confidence(assembly: Answer) -> Image.Image:
    """The assembled object from three sides in the colours of confidence, with a legend."""
    colours = np.array([confidence_colour(sure) for sure in assembly.confidence.tolist()], np.float32) / 255
    return with_legend(_three(assembly, colours, own=False), assembly.confidence)


def draw_views(assembly: Answer) -> Image.Image:
    """The assembled object from the front, the side and above; captioned."""
    return _three(assembly, fragment_colours(len(assembly.puzzle)), own=True)


def _three(assembly: Answer, colours: Float32[np.ndarray, "n 3"], own: bool) -> Image.Image:
    stills = _stills(assembly)
    with stills.lock:
        sides = stills.sides
    return in_a_row([under_title(side.coloured(colours, own), name) for name, side in sides.items()])


def animate(assembly: Answer, frames: int = 48, style: MeshStyle = MESH_STYLE) -> list[Image.Image]:
    """Fragments on their way from a table through moments of the history, the lowest first; the camera follows.

    The last frame shows what `draw_assembly` does.
    """
    puzzle, end = assembly.puzzle, _on_cpu(assembly.poses)
    things, colours = triangles_of(puzzle.fragments.meshes, style.moving_triangles), fragment_colours(len(puzzle))
    extremes = things.extremes(len(puzzle))
    floor = float(_reached(extremes, end)[..., 1].min())
    table = laid_out(puzzle.fragments, floor)
    stations = [table, *(_drawn_in(poses, style) for poses in few_moments(assembly.history)), end]
    rank = end.translation[:, 1].argsort(stable=True).argsort()
    delays = style.late * rank / max(1, len(end) - 1)

    def shot(time: float) -> Image.Image:
        own = torch.from_numpy(eased((time - delays.numpy()) / (1 - style.late))) * (len(stations) - 1)
        poses = end if time == 1 else along(stations, own.float())
        turned = [here + eased(time) * (there - here) for here, there in zip(style.first_view, style.view, strict=True)]
        reached = _reached(extremes, poses).reshape(-1, 3)
        camera = frame(reached, orbit(*turned), style.panel, style.margin)
        ground = min(floor, float(reached[:, 1].min()))
        return expose(things.placed(poses), camera, style.panel, ground=ground, samples=1).coloured(colours, own=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(shot, np.linspace(0, 1, max(frames, 2)).tolist()))


def _reached(extremes: Float[Tensor, "n k 3"], poses: Poses) -> Float32[np.ndarray, "n k 3"]:
    """The places that the extremes of pieces come to."""
    return _on_cpu(poses).apply(extremes).numpy()


DRAWN = (draw_pieces, draw_assembly, draw_before_after, draw_confidence, animate)
"""what every `Drawing` has, in its order"""
