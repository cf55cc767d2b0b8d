"""Photographs: what is where, what hides what, and the light table."""

from __future__ import annotations

import numpy as np
import torch
import trimesh
from PIL import Image

from diffassemble.core import Mesh, Poses
from diffassemble.rendering.picture import TABLE
from diffassemble.rendering.studio import frame, orbit, photograph
from diffassemble.rendering.triangles import Triangles, triangles_of

COLOURS = np.float32([[0.9, 0.2, 0.2], [0.2, 0.3, 0.9]])


def balls(*places: tuple[float, float, float]) -> Triangles:
    shape = trimesh.creation.icosphere(3, 0.3)
    mesh = Mesh(torch.tensor(shape.vertices, dtype=torch.float32), torch.tensor(shape.faces))
    poses = Poses(torch.eye(3).repeat(len(places), 1, 1), torch.tensor(places, dtype=torch.float32))
    return triangles_of([mesh] * len(places), 10**6).placed(poses)


def shot(things: Triangles, *, samples: int = 2, elevation: float = 20.0) -> Image.Image:
    camera = frame(things.corners.reshape(-1, 3), orbit(0.0, elevation), (90, 80), 0.2)
    ground = float(things.corners[..., 1].min())
    return photograph(things, COLOURS, camera, (90, 80), ground=ground, samples=samples)


def test_things_stand_where_they_are_in_their_colours() -> None:
    picture = np.asarray(shot(balls((-0.4, 0, 0), (0.4, 0, 0)))).astype(int)
    assert picture.shape == (80, 90, 3)
    left, right = picture[40, 30], picture[40, 60]
    assert left[0] > 1.5 * left[2]
    assert right[2] > 1.5 * right[0]
    assert picture[0, 0].tolist() == list(TABLE)


def test_nearer_things_hide_farther_ones() -> None:
    for places, nearer in ((((0, 0, 1), (0, 0, -1)), 0), (((0, 0, -1), (0, 0, 1)), 1)):
        red, _, blue = np.asarray(shot(balls(*places), elevation=0.0))[40, 45].astype(int)
        assert (red > blue) == (nearer == 0)


def test_a_ball_is_brighter_above_and_casts_a_shadow() -> None:
    picture = np.asarray(shot(balls((0, 0, 0)))).astype(int).sum(-1)
    middle = np.flatnonzero(picture[:, 45] < 3 * 245)
    assert picture[middle[0] + 6, 40] > picture[40, 58]
    ground = np.asarray(shot(balls((0, 0, 0))))
    grey = (ground.max(-1) - ground.min(-1) < 6) & (ground.max(-1) < 235)
    assert 50 < grey.sum() < 2000
    assert np.argwhere(grey)[:, 1].mean() > 45


def test_pictures_are_the_same_every_time_and_at_every_fineness() -> None:
    things = balls((-0.3, 0, 0), (0.3, 0.1, 0))
    first, second, plain = shot(things), shot(things), shot(things, samples=1)
    assert first.tobytes() == second.tobytes()
    assert np.abs(np.asarray(first).astype(int) - np.asarray(plain)).mean() < 4


def test_an_empty_table_is_the_background() -> None:
    camera = frame(np.eye(3, dtype=np.float32), orbit(0.0, 30.0), (20, 10), 0.1)
    nothing = Triangles(np.zeros((0, 3, 3), np.float32), np.zeros((0, 3, 3), np.float32), np.zeros(0, np.int64))
    picture = photograph(nothing, COLOURS, camera, (20, 10), ground=0.0)
    assert (np.asarray(picture) == TABLE).all()
