"""Photographs: what a camera sees, which pixels triangles cover, and the light table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.core import Mesh, Poses
from diffassemble.rendering.picture import TABLE
from diffassemble.rendering.studio import (
    NOTHING,
    STUDIO,
    Layers,
    Triangles,
    bounds,
    expose,
    find_occlusion,
    frame,
    orbit,
    rasterise,
    shine,
    triangles_of,
)

CUBE = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)], np.float32)


@pytest.mark.parametrize(("azimuth", "elevation"), [(0.0, 0.0), (35.0, 25.0), (200.0, 60.0), (-90.0, -30.0)])
def test_turns_are_turns(azimuth: float, elevation: float) -> None:
    turn = orbit(azimuth, elevation)
    assert np.allclose(turn @ turn.T, np.eye(3))
    assert np.linalg.det(turn) == pytest.approx(1)
    # Up in space is up in the picture, where y runs down.
    assert turn[1] @ [0, 1, 0] < 0


def test_seen_from_the_front_x_is_right_y_is_up_and_z_comes_nearer() -> None:
    camera = frame(CUBE, orbit(0.0, 0.0), (100, 100), 0.1)
    middle, right, up, near = camera.project(
        camera.view(np.float32([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]]))
    )
    assert right[0] > middle[0]
    assert right[1] == pytest.approx(middle[1])
    assert up[1] < middle[1]
    assert near[2] > middle[2]


@pytest.mark.parametrize("size", [(100, 100), (300, 80), (90, 400)])
def test_a_frame_holds_all_and_no_more(size: tuple[int, int]) -> None:
    camera = frame(CUBE, orbit(30.0, 25.0), size, 0.1)
    low, high = bounds(camera.project(camera.view(CUBE)))
    filled = (high - low)[:2] / (0.8 * np.array(size))
    assert filled.max() == pytest.approx(1, abs=1e-3)
    assert np.allclose((low + high)[:2], size, atol=0.1)


def draw(*triangles: list[list[float]], size: tuple[int, int] = (8, 6)) -> Layers:
    corners = np.array(triangles, np.float32)
    normals = np.broadcast_to(np.float32([0, 0, -1]), corners.shape).copy()
    return rasterise(corners, normals, np.arange(len(corners)), size)


def test_a_triangle_covers_the_pixels_whose_centres_it_holds() -> None:
    # The half of a square of four below the diagonal; centres on the border count.
    shown = draw([[0, 0, 1], [0, 4, 1], [4, 4, 1]]).owner
    assert np.array_equal(shown[:4, :4] == 0, np.tri(4, dtype=bool))
    assert (shown[4:] == NOTHING).all()
    assert (shown[:, 4:] == NOTHING).all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_nearer_hides_farther_in_any_order(order: tuple[int, int]) -> None:
    near = [[0.0, 0.0, 2.0], [0.0, 6.0, 2.0], [6.0, 6.0, 2.0]]
    far = [[-9.0, -9.0, 1.0], [-9.0, 30.0, 1.0], [30.0, -9.0, 1.0]]
    layers = draw(*([near, far][i] for i in order))
    assert layers.owner[4, 1] == order.index(0)
    assert layers.owner[0, 7] == order.index(1)
    assert layers.nearness[4, 1] == 2
    assert layers.nearness[0, 7] == 1


def test_triangles_that_share_edges_leave_no_gap_and_cover_no_more() -> None:
    points = np.random.default_rng(0).uniform(2, 38, (30, 2))
    fan = [[[20.0, 20.0, 1.0], [*a, 1.0], [*b, 1.0]] for a, b in zip(points, np.roll(points, 1, 0), strict=True)]
    square = [[[0, 0, 1], [40, 0, 1], [40, 40, 1]], [[0, 0, 1], [40, 40, 1], [0, 40, 1]]]
    assert (draw(*square, size=(40, 40)).owner != NOTHING).all()
    assert (draw(*fan, size=(40, 40)).owner[[0, -1]] == NOTHING).all()


def test_inner_sides_show_normals_turned_round() -> None:
    outside = draw([[0, 0, 1], [0, 6, 1], [8, 0, 1]])
    inside = draw([[0, 0, 1], [8, 0, 1], [0, 6, 1]])
    assert outside.normal[0, 0].tolist() == [0, 0, -1]
    assert inside.normal[0, 0].tolist() == [0, 0, 1]


def test_degenerate_triangles_cover_nothing() -> None:
    nan, inf = float("nan"), float("inf")
    layers = draw(
        [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
        [[0, 0, 1], [4, 4, 1], [8, 8, 1]],
        [[nan, 0, 1], [4, 0, 1], [0, 4, 1]],
        [[0, 0, 1], [inf, 0, 1], [0, 4, 1]],
        [[90, 90, 1], [99, 90, 1], [90, 99, 1]],
        [[-90, 0, 1], [-99, 9, 1], [-90, 9, 1]],
    )
    assert (layers.owner == NOTHING).all()


FOCAL, MIDDLE = 40.0, 20.0


def flat(distance: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A wall across the whole picture, facing the camera."""
    normal = np.zeros((40, 40, 3), np.float32)
    normal[..., 2] = -1
    return np.zeros((40, 40), np.int32), np.full((40, 40), 1 / distance, np.float32), normal


def lit(owner: np.ndarray, nearness: np.ndarray, normal: np.ndarray, **darkness: np.ndarray) -> np.ndarray:
    empty, light = np.zeros((40, 40), np.float32), np.zeros((40, 40, 3), np.float32)
    occlusion, shade = darkness.get("occlusion", empty), darkness.get("shade", empty)
    colours, table, up = np.full((2, 3), 0.5), np.ones(3), np.array([0.0, -1.0, 0.0])
    paint = np.zeros((0, 0, 3), np.float32)
    place = FOCAL, MIDDLE, MIDDLE
    shine(owner, nearness, normal, paint, occlusion, shade, colours, table, up, *place, 1, STUDIO.strengths, light)
    return light


def test_darkness_darkens_and_contours_are_drawn() -> None:
    owner, nearness, normal = flat()
    full = np.ones((40, 40), np.float32)
    bright = lit(owner, nearness, normal)
    assert (lit(owner, nearness, normal, shade=full) < bright).all()
    assert (lit(owner, nearness, normal, occlusion=full) < bright).all()
    owner[:, 20:] = 1
    line = lit(owner, nearness, normal)[20]
    assert line[19].sum() < 0.8 * line[18].sum()
    assert line[20].sum() > 1.2 * line[19].sum()


def test_corners_are_dark_and_plains_are_not() -> None:
    _, nearness, normal = flat()
    occlusion = np.zeros_like(nearness)
    find_occlusion(nearness, normal, FOCAL, MIDDLE, MIDDLE, 0.3, occlusion)
    assert occlusion.max() == 0
    nearness[:, 20:] = 1 / 1.8
    find_occlusion(nearness, normal, FOCAL, MIDDLE, MIDDLE, 0.3, occlusion)
    assert occlusion[5:-5, 16:20].mean() > 0.05
    assert occlusion[:, :8].max() == 0


COLOURS = np.float32([[0.9, 0.2, 0.2], [0.2, 0.3, 0.9]])


def balls(*places: tuple[float, float, float]) -> Triangles:
    shape = trimesh.creation.icosphere(3, 0.3)
    mesh = Mesh(torch.tensor(shape.vertices, dtype=torch.float32), torch.tensor(shape.faces))
    poses = Poses(torch.eye(3).repeat(len(places), 1, 1), torch.tensor(places, dtype=torch.float32))
    return triangles_of([mesh] * len(places), 10**6).placed(poses)


def shot(things: Triangles, *, samples: int = 2, elevation: float = 20.0) -> Image.Image:
    camera = frame(things.corners.reshape(-1, 3), orbit(0.0, elevation), (90, 80), 0.2)
    ground = float(things.corners[..., 1].min())
    return expose(things, camera, (90, 80), ground=ground, samples=samples).coloured(COLOURS)


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
    picture = expose(nothing, camera, (20, 10), ground=0.0).coloured(COLOURS)
    assert (np.asarray(picture) == TABLE).all()
