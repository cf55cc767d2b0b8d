"""Triangles of meshes and clouds, what a camera sees, which pixels triangles cover, and the light table."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.core import Mesh, Poses, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.rendering.picture import TABLE
from diffassemble.rendering.studio import (
    NOTHING,
    STUDIO,
    Layers,
    Triangles,
    as_discs,
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
COLOURS = np.float32([[0.9, 0.2, 0.2], [0.2, 0.3, 0.9]])
FOCAL, MIDDLE = 40.0, 20.0


def mesh(shape: trimesh.Trimesh) -> Mesh:
    return Mesh(torch.tensor(shape.vertices, dtype=torch.float32), torch.tensor(shape.faces))


# Triangles.


def test_round_surfaces_are_smooth_and_boxes_are_sharp() -> None:
    ball, box = trimesh.creation.icosphere(3), trimesh.creation.box((1, 1, 1))
    # Triangles that share no corners are welded before they are smoothed.
    faces = np.arange(ball.faces.size).reshape(-1, 3)
    apart = trimesh.Trimesh(ball.vertices[ball.faces].reshape(-1, 3), faces, process=False)
    for shape in (ball, apart):
        drawn = triangles_of([mesh(shape)], 10**6)
        assert np.abs(drawn.normals - drawn.corners).max() < 0.05
    drawn = triangles_of([mesh(box)], 10**6)
    assert np.allclose(np.abs(drawn.normals).max(-1), 1, atol=1e-6)
    assert (np.einsum("fci,fci->fc", drawn.normals, drawn.corners) > 0).all()


@pytest.mark.parametrize("limit", [3_000, 20_000])
def test_too_many_triangles_become_fewer_without_changing_the_shape(limit: int) -> None:
    drawn = triangles_of([mesh(trimesh.creation.icosphere(6))] * 2, limit)
    assert limit / 4 < len(drawn.corners) < 1.3 * limit
    assert np.abs(np.linalg.norm(drawn.corners, axis=-1) - 1).max() < 0.05
    assert set(drawn.owner.tolist()) == {0, 1}


def test_sick_meshes_do_no_harm() -> None:
    vertices = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [float("nan"), 0, 0]])
    meshes = [
        Mesh(vertices, torch.tensor([[0, 1, 2], [0, 1, 3], [1, 1, 2], [0, 0, 0]])),
        Mesh(torch.zeros(3, 3), torch.tensor([[0, 1, 2]])),
        Mesh(torch.zeros(1, 3), torch.zeros(0, 3, dtype=torch.long)),
    ]
    drawn = triangles_of(meshes, 100)
    assert np.isfinite([drawn.corners, drawn.normals]).all()
    assert [int((drawn.owner == number).sum()) for number in (0, 2)] == [1, 8]


def test_fragments_move_with_their_poses(broken_bowl: Puzzle) -> None:
    count, drawn = len(broken_bowl), triangles_of(broken_bowl.fragments.meshes, 10**6)
    poses = Poses(random_rotations(count, torch.Generator().manual_seed(1)), torch.arange(count * 3.0).reshape(-1, 3))
    moved = drawn.placed(poses)
    expected = poses[torch.from_numpy(drawn.owner)].apply(torch.from_numpy(drawn.corners))
    assert np.allclose(moved.corners, expected, atol=1e-5)
    assert np.allclose(np.linalg.norm(moved.normals, axis=-1), 1, atol=1e-4)


def test_clouds_are_discs_on_their_surface_and_a_few_points_are_beads() -> None:
    generator = np.random.default_rng(0)
    points = generator.normal(size=(3000, 3)).astype(np.float32)
    points /= np.linalg.norm(points, axis=-1, keepdims=True)
    vertices, faces, _ = as_discs(points, 10_000)
    assert len(faces) == 4 * len(points)
    assert np.abs(np.linalg.norm(vertices, axis=-1) - 1).max() < 0.05
    first, second, third = (vertices[faces[:, corner]] for corner in range(3))
    normals = np.cross(second - first, third - first)
    along = np.abs((normals * first).sum(-1)) / np.linalg.norm(normals, axis=-1)
    assert np.median(along) > 0.98
    assert 4 * 400 < len(as_discs(points, 500)[1]) <= 4 * 500
    for count in (1, 2, 3, 15):
        vertices, faces, _ = as_discs(points[:count], 100)
        assert len(faces) == 8 * count
        assert np.allclose(vertices.reshape(count, 6, 3).mean(1), points[:count], atol=1e-5)
    for count in (0, 20):
        assert np.isfinite(as_discs(np.zeros((count, 3), np.float32), 100)[0]).all()


# The camera.


@pytest.mark.parametrize(("azimuth", "elevation"), [(0.0, 0.0), (35.0, 25.0), (200.0, 60.0), (-90.0, -30.0)])
def test_turns_are_turns_and_a_frame_holds_all_and_no_more(azimuth: float, elevation: float) -> None:
    turn = orbit(azimuth, elevation)
    assert np.allclose(turn @ turn.T, np.eye(3))
    assert np.linalg.det(turn) == pytest.approx(1)
    # Up in space is up in the picture, where y runs down.
    assert turn[1] @ [0, 1, 0] < 0
    for size in ((100, 100), (300, 80), (90, 400)):
        camera = frame(CUBE, turn, size, 0.1)
        low, high = bounds(camera.project(camera.view(CUBE)))
        filled = (high - low)[:2] / (0.8 * np.array(size))
        assert filled.max() == pytest.approx(1, abs=1e-3)
        assert np.allclose((low + high)[:2], size, atol=0.1)


def test_from_the_front_x_is_right_y_is_up_and_z_comes_nearer() -> None:
    camera = frame(CUBE, orbit(0.0, 0.0), (100, 100), 0.1)
    seen = camera.project(camera.view(np.float32([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])))
    right, up, near = seen[1:] - seen[0]
    assert min(right[0], -up[1], near[2]) > 0
    assert right[1] == pytest.approx(0, abs=1e-4)


# Pixels.


def draw(*triangles: list[list[float]], size: tuple[int, int] = (8, 6)) -> Layers:
    corners = np.array(triangles, np.float32)
    normals = np.broadcast_to(np.float32([0, 0, -1]), corners.shape).copy()
    return rasterise(corners, normals, np.arange(len(corners)), size)


def test_a_triangle_covers_the_pixels_whose_centres_it_holds() -> None:
    # The half of a square of four below the diagonal; centres on the border count.
    shown = draw([[0, 0, 1], [0, 4, 1], [4, 4, 1]]).owner
    assert np.array_equal(shown[:4, :4] == 0, np.tri(4, dtype=bool))
    assert ((shown != NOTHING).sum(), shown[4:].max(), shown[:, 4:].max()) == (10, NOTHING, NOTHING)
    # Triangles that share edges leave no gap and cover no more.
    points = np.random.default_rng(0).uniform(2, 38, (30, 2))
    fan = [[[20.0, 20.0, 1.0], [*a, 1.0], [*b, 1.0]] for a, b in zip(points, np.roll(points, 1, 0), strict=True)]
    square = [[[0, 0, 1], [40, 0, 1], [40, 40, 1]], [[0, 0, 1], [40, 40, 1], [0, 40, 1]]]
    assert (draw(*square, size=(40, 40)).owner != NOTHING).all()
    assert (draw(*fan, size=(40, 40)).owner[[0, -1]] == NOTHING).all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_nearer_hides_farther_in_any_order(order: tuple[int, int]) -> None:
    near = [[0.0, 0.0, 2.0], [0.0, 6.0, 2.0], [6.0, 6.0, 2.0]]
    far = [[-9.0, -9.0, 1.0], [-9.0, 30.0, 1.0], [30.0, -9.0, 1.0]]
    layers = draw(*([near, far][i] for i in order))
    assert (layers.owner[4, 1], layers.owner[0, 7]) == (order.index(0), order.index(1))
    assert (layers.nearness[4, 1], layers.nearness[0, 7]) == (2, 1)


def test_inner_sides_show_normals_turned_round_and_degenerate_triangles_nothing() -> None:
    assert draw([[0, 0, 1], [0, 6, 1], [8, 0, 1]]).normal[0, 0].tolist() == [0, 0, -1]
    assert draw([[0, 0, 1], [8, 0, 1], [0, 6, 1]]).normal[0, 0].tolist() == [0, 0, 1]
    nan, inf = float("nan"), float("inf")
    outside = [[90, 90, 1], [99, 90, 1], [90, 99, 1]], [[-90, 0, 1], [-99, 9, 1], [-90, 9, 1]]
    infinite = [[nan, 0, 1], [4, 0, 1], [0, 4, 1]], [[0, 0, 1], [inf, 0, 1], [0, 4, 1]]
    layers = draw([[1, 1, 1]] * 3, [[0, 0, 1], [4, 4, 1], [8, 8, 1]], *infinite, *outside)
    assert (layers.owner == NOTHING).all()


# Light.


def flat(distance: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A wall across the whole picture, facing the camera."""
    normal = np.zeros((40, 40, 3), np.float32)
    normal[..., 2] = -1
    return np.zeros((40, 40), np.int32), np.full((40, 40), 1 / distance, np.float32), normal


def lit(owner: np.ndarray, nearness: np.ndarray, normal: np.ndarray, **darkness: np.ndarray) -> np.ndarray:
    empty, light = np.zeros((40, 40), np.float32), np.zeros((40, 40, 3), np.float32)
    occlusion, shade = darkness.get("occlusion", empty), darkness.get("shade", empty)
    colours, table, up = np.full((2, 3), 0.5), np.ones(3), np.array([0.0, -1.0, 0.0])
    paint, place = np.zeros((0, 0, 3), np.float32), (FOCAL, MIDDLE, MIDDLE)
    shine(owner, nearness, normal, paint, occlusion, shade, colours, table, up, *place, 1, STUDIO.strengths, light)
    return light


def test_darkness_darkens_contours_are_drawn_and_corners_are_dark() -> None:
    owner, nearness, normal = flat()
    full = np.ones((40, 40), np.float32)
    bright = lit(owner, nearness, normal)
    assert (lit(owner, nearness, normal, shade=full) < bright).all()
    assert (lit(owner, nearness, normal, occlusion=full) < bright).all()
    owner[:, 20:] = 1
    line = lit(owner, nearness, normal)[20]
    assert line[19].sum() < 0.8 * line[18].sum()
    assert line[20].sum() > 1.2 * line[19].sum()
    occlusion = np.zeros_like(nearness)
    find_occlusion(nearness, normal, FOCAL, MIDDLE, MIDDLE, 0.3, occlusion)
    assert occlusion.max() == 0
    nearness[:, 20:] = 1 / 1.8
    find_occlusion(nearness, normal, FOCAL, MIDDLE, MIDDLE, 0.3, occlusion)
    assert occlusion[5:-5, 16:20].mean() > 0.05
    assert occlusion[:, :8].max() == 0


def balls(*places: tuple[float, float, float]) -> Triangles:
    poses = Poses(torch.eye(3).repeat(len(places), 1, 1), torch.tensor(places, dtype=torch.float32))
    return triangles_of([mesh(trimesh.creation.icosphere(3, 0.3))] * len(places), 10**6).placed(poses)


def shot(things: Triangles, *, samples: int = 2, elevation: float = 20.0) -> Image.Image:
    camera = frame(things.corners.reshape(-1, 3), orbit(0.0, elevation), (90, 80), 0.2)
    ground = float(things.corners[..., 1].min())
    return expose(things, camera, (90, 80), ground=ground, samples=samples).coloured(COLOURS)


def test_things_are_where_they_are_in_their_colours_and_nearer_ones_hide_others() -> None:
    picture = np.asarray(shot(balls((-0.4, 0, 0), (0.4, 0, 0)))).astype(int)
    assert picture.shape == (80, 90, 3)
    (red, _, little), (less, _, blue) = picture[40, 30], picture[40, 60]
    assert min(red / little, blue / less) > 1.5
    assert picture[0, 0].tolist() == list(TABLE)
    for places, nearer in ((((0, 0, 1), (0, 0, -1)), 0), (((0, 0, -1), (0, 0, 1)), 1)):
        red, _, blue = np.asarray(shot(balls(*places), elevation=0.0))[40, 45].astype(int)
        assert (red > blue) == (nearer == 0)


def test_a_ball_is_brighter_above_and_casts_a_shadow() -> None:
    ground = np.asarray(shot(balls((0, 0, 0))))
    picture = ground.astype(int).sum(-1)
    middle = np.flatnonzero(picture[:, 45] < 3 * 245)
    assert picture[middle[0] + 6, 40] > picture[40, 58]
    grey = (ground.max(-1) - ground.min(-1) < 6) & (ground.max(-1) < 235)
    assert 50 < grey.sum() < 2000
    assert np.argwhere(grey)[:, 1].mean() > 45


def test_pictures_are_the_same_every_time_and_at_every_fineness() -> None:
    things = balls((-0.3, 0, 0), (0.3, 0.1, 0))
    first, second, plain = shot(things), shot(things), shot(things, samples=1)
    assert first.tobytes() == second.tobytes()
    assert np.abs(np.asarray(first).astype(int) - np.asarray(plain)).mean() < 4
    camera = frame(np.eye(3, dtype=np.float32), orbit(0.0, 30.0), (20, 10), 0.1)
    nothing = Triangles(np.zeros((0, 3, 3), np.float32), np.zeros((0, 3, 3), np.float32), np.zeros(0, np.int64))
    assert (np.asarray(expose(nothing, camera, (20, 10), ground=0.0).coloured(COLOURS)) == TABLE).all()
