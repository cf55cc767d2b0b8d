"""Pictures and animations of broken objects."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32
from PIL import Image
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import Assembly
from diffassemble.rendering.camera import frame, orbit
from diffassemble.rendering.captions import beside, confidence_colour, under_title, with_legend
from diffassemble.rendering.flight import eased, plan_flight
from diffassemble.rendering.palette import fragment_colours
from diffassemble.rendering.studio import photograph
from diffassemble.rendering.table import laid_out
from diffassemble.rendering.triangles import Triangles, triangles_of

PICTURE = (960, 840)
PANEL = (480, 420)
MOVING = (480, 420)

# Objects are seen from the front, a little from the right and above; tables from higher up. Degrees.
_OBJECT_VIEW = (30.0, 24.0)
_TABLE_VIEW = (0.0, 52.0)
_FIRST_VIEW = (-45.0, 48.0)
_MARGIN = 0.09
_STILL_TRIANGLES, _MOVING_TRIANGLES = 300_000, 60_000


def draw_assembly(assembly: Assembly) -> Image.Image:
    """The assembled object, upright, from the front and above, each fragment in a colour of its own."""
    things = triangles_of(assembly.puzzle.fragments.meshes, _STILL_TRIANGLES)
    return _draw(things, assembly.poses, fragment_colours(len(assembly.puzzle)), PICTURE)


def draw_before_after(assembly: Assembly) -> Image.Image:
    """The fragments on a table beside what became of them and, if it is known, what they once were; captioned."""
    puzzle = assembly.puzzle
    things, colours = triangles_of(puzzle.fragments.meshes, _STILL_TRIANGLES), fragment_colours(len(puzzle))
    before = _draw(things, laid_out(puzzle.fragments), colours, PANEL, _TABLE_VIEW)
    panels = [
        under_title(before, _counted(len(puzzle))),
        under_title(_draw(things, assembly.poses, colours, PANEL), "assembled"),
    ]
    if puzzle.truth is not None:
        panels.append(under_title(_draw(things, puzzle.truth, colours, PANEL), "the true whole"))
    return beside(*panels)


def draw_confidence(assembly: Assembly) -> Image.Image:
    """The assembled object in the colours of how sure each fragment is, with a legend."""
    things = triangles_of(assembly.puzzle.fragments.meshes, _STILL_TRIANGLES)
    colours = np.array([confidence_colour(sure) for sure in assembly.confidence.tolist()], np.float32) / 255
    picture = _draw(things, assembly.poses, colours, PICTURE)
    return with_legend(picture, f"confidence, mean {float(assembly.confidence.mean()):.2f}")


def animate(assembly: Assembly, frames: int = 48) -> list[Image.Image]:
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
    drawn = []
    for time in np.linspace(0, 1, max(frames, 2)).tolist():
        poses, done = flight.at(time), eased(time)
        view = orbit(*(here + done * (there - here) for here, there in zip(_FIRST_VIEW, _OBJECT_VIEW, strict=True)))
        wide, close = (frame(points, view, MOVING, _MARGIN) for points in (early, standing))
        # Late ones must stay within the picture: it closes in when all are nearly there.
        camera = wide.towards(close, flight.arrived(time) ** 3)
        ground = min(floor, float(_reached(extremes, poses)[:, 1].min()))
        drawn.append(photograph(things.placed(poses), colours, camera, MOVING, ground=ground, samples=1))
    return drawn


def _reached(extremes: Float[Tensor, "n k 3"], poses: Poses) -> Float32[np.ndarray, "p 3"]:
    """The places that the extremes of pieces come to."""
    moved = Poses(poses.rotation.detach().cpu().float(), poses.translation.detach().cpu().float()).apply(extremes)
    return moved.reshape(-1, 3).numpy()


def _draw(
    things: Triangles,
    poses: Poses,
    colours: Float32[np.ndarray, "n 3"],
    size: tuple[int, int],
    view: tuple[float, float] = _OBJECT_VIEW,
) -> Image.Image:
    """The fragments wherever they stand, on a table just below, filling a picture of this size."""
    reached = _reached(things.extremes(len(poses)), poses)
    camera = frame(reached, orbit(*view), size, _MARGIN)
    return photograph(things.placed(poses), colours, camera, size, ground=float(reached[:, 1].min()))


def _counted(count: int) -> str:
    return "one fragment" if count == 1 else f"{count} fragments"
