"""Surfaces are sampled evenly, smoothed, given normals; neighbours are those that comparing everything finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from diffassemble.core import FragmentPieces, InputError, Mesh
from diffassemble.core.surfaces import triangle_normals
from diffassemble.fragments.spatial import (
    INSIDE,
    OUTSIDE,
    Voxels,
    look_up,
    nearest_across,
    nearest_within,
    thin,
    voxelise,
)
from diffassemble.fragments.surface import (
    Sample,
    cloud_gap,
    draw,
    enclosure,
    facing_outward,
    is_cloud,
    outward_normals,
    sample,
    smoothed,
    smoothed_normals,
    spacing_of,
)


def test_points_lie_on_triangles_in_proportion_to_their_areas() -> None:
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 3]], np.float32)
    faces = np.array([[0, 1, 2], [0, 3, 1]])
    chance = np.random.default_rng(0).random((4000, 3)).astype(np.float32)
    points, normals = draw(vertices[faces], chance)
    flat = normals[:, 2] > 0.5
    assert abs(flat.mean() - 0.25) < 0.01
    assert np.abs(points[flat, 2]).max() < 1e-6
    assert np.allclose(normals[~flat], [0, 1, 0])
    assert np.abs(points[flat].mean(0) - [1 / 3, 1 / 3, 0]).max() < 0.02


def cloud_of(points: np.ndarray) -> Mesh:
    return Mesh(torch.from_numpy(points), torch.zeros(0, 3, dtype=torch.long))


def pieces_of(*meshes: Mesh) -> FragmentPieces:
    return FragmentPieces(torch.zeros(len(meshes), 1, 3), meshes, torch.zeros(len(meshes), 3))


def test_a_sample_has_one_point_in_the_square_of_its_spacing(block: Mesh) -> None:
    drawn = sample(block, 0.03, torch.Generator().manual_seed(0))
    area = 2 * (0.8 + 0.5 + 0.4)
    assert len(drawn) == pytest.approx(area / 0.03**2, rel=0.1)
    assert drawn.area * len(drawn) == pytest.approx(area, rel=1e-5)
    assert np.allclose(np.abs(drawn.normals).max(1), 1)
    assert ((drawn.points * drawn.normals).sum(1) > 0.2).all()
    assert len(drawn.thinned(0.06)) == pytest.approx(len(drawn) / 4, rel=0.2)


def test_a_sample_near_points_stays_there(block: Mesh) -> None:
    near = np.array([[0.5, 0, 0]], np.float32)
    drawn = sample(block, 0.02, torch.Generator().manual_seed(0), near, 0.2)
    assert len(drawn) == pytest.approx(np.pi * 0.2**2 / 0.02**2, rel=0.2)
    assert np.linalg.norm(drawn.points - near, axis=1).max() <= 0.2
    assert len(sample(block, 0.02, torch.Generator().manual_seed(0), near + 9, 0.2)) == 0


def test_clouds_are_told_by_their_lack_of_triangles(ball: Sample, block: Mesh) -> None:
    cloud = cloud_of(ball.points)
    assert is_cloud(cloud)
    assert not is_cloud(block)
    assert cloud_gap(cloud) == pytest.approx(np.sqrt(4 * np.pi / 3500), rel=0.1)
    drawn = sample(cloud, 0.1, torch.Generator().manual_seed(0))
    assert ((drawn.normals * drawn.points).sum(1) > 0.9).all()


def test_normals_that_came_with_a_cloud_are_used(ball: Sample) -> None:
    tilted = ball.normals + np.random.default_rng(0).normal(scale=0.1, size=ball.normals.shape).astype(np.float32)
    tilted /= np.linalg.norm(tilted, axis=1, keepdims=True)
    cloud = replace(cloud_of(ball.points), normals=torch.from_numpy(tilted))
    assert facing_outward(cloud) is cloud
    drawn = sample(cloud, 0.1, torch.Generator().manual_seed(0))
    which = (drawn.points[:, None] == ball.points).all(-1).argmax(1)
    assert np.array_equal(drawn.normals, tilted[which])
    turned = facing_outward(replace(cloud, normals=torch.from_numpy(-tilted)))
    assert turned.normals is not None
    assert np.array_equal(turned.normals.numpy(), tilted)
    sides = np.where(np.random.default_rng(1).random(len(tilted)) < 0.5, -1, 1).astype(np.float32)
    assert facing_outward(replace(cloud, normals=torch.from_numpy(sides[:, None] * tilted))).normals is None


def test_samples_have_the_colours_of_the_surface(block: Mesh, ball: Sample) -> None:
    shade = ((block.vertices + 0.5) * 255).round().to(torch.uint8)
    near = np.array([[0.5, 0, 0]], np.float32)
    for drawn in (
        sample(replace(block, colours=shade), 0.03, torch.Generator().manual_seed(0)),
        sample(replace(block, colours=shade), 0.02, torch.Generator().manual_seed(0), near, 0.2),
    ):
        assert drawn.colours is not None
        assert np.abs(drawn.colours - (drawn.points + 0.5)).max() < 0.01
        assert drawn.thinned(0.06).colours is not None
    levels = torch.from_numpy(((ball.points + 1) * 127).astype(np.uint8))
    cloud = sample(replace(cloud_of(ball.points), colours=levels), 0.1, torch.Generator().manual_seed(0))
    assert cloud.colours is not None
    assert np.abs(2 * cloud.colours - 1 - cloud.points).max() < 0.02


def test_the_spacing_follows_the_surface_but_is_no_finer_than_a_cloud(block: Mesh, ball: Sample) -> None:
    assert spacing_of(pieces_of(block)) == pytest.approx(np.sqrt(3.4 / 40000), rel=1e-4)
    # Many pieces are looked at by their own size, not by the whole's.
    assert spacing_of(pieces_of(*[block] * 20)) == pytest.approx(np.sqrt(20 * 3.4 / 40000), rel=1e-4)
    assert spacing_of(pieces_of(*[block] * 100)) == pytest.approx(np.sqrt(100 * 3.4 / 160000), rel=1e-4)
    assert spacing_of(pieces_of(cloud_of(ball.points))) == pytest.approx(0.06, rel=0.1)
    with pytest.raises(InputError, match="neither surface nor extent"):
        spacing_of(pieces_of(cloud_of(np.zeros((5, 3), np.float32))))


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_handful_of_points_has_some_normals(count: int) -> None:
    points = np.random.default_rng(0).random((count, 3)).astype(np.float32)
    assert np.allclose(np.linalg.norm(outward_normals(points), axis=1), 1, atol=1e-5)


def test_normals_do_not_jump_through_thin_walls() -> None:
    some = np.random.default_rng(0)
    flat = some.random((2, 4000, 2)) - 0.5
    rim = some.random((4, 300))
    wall = 0.04
    faces = [np.column_stack([face, np.full(len(face), height)]) for face, height in zip(flat, (0, wall), strict=True)]
    rims = [np.insert(np.column_stack([along - 0.5, some.random(300) * wall]), axis, end, axis=1)
            for along, (axis, end) in zip(rim, ((0, -0.5), (0, 0.5), (1, -0.5), (1, 0.5)), strict=True)]  # fmt: skip
    normals = outward_normals(np.concatenate([*faces, *rims]).astype(np.float32))
    assert (normals[:4000, 2] < 0).mean() > 0.97
    assert (normals[4000:8000, 2] > 0).mean() > 0.97


def test_normals_at_edges_belong_to_one_side(block: Mesh) -> None:
    chance = np.random.default_rng(0).random((12000, 3), np.float32)
    points, true = draw(block.vertices[block.faces].numpy(), chance)
    like = (outward_normals(np.ascontiguousarray(points)) * true).sum(1)
    assert (like < 0).mean() < 0.005
    assert (like < np.cos(np.radians(30))).mean() < 0.03


def test_constants_stay_and_noise_shrinks(ball: Sample) -> None:
    noise = np.random.default_rng(0).normal(size=(len(ball), 1)).astype(np.float32)
    values = np.concatenate([np.ones_like(noise), noise], 1)
    mean = smoothed(ball.points, ball.normals, values, np.float32(0.2))
    assert np.allclose(mean[:, 0], 1, atol=1e-5)
    assert mean[:, 1].std() < 0.4


def test_the_two_faces_of_a_thin_sheet_do_not_mix() -> None:
    flat = np.random.default_rng(1).random((300, 2)).astype(np.float32)
    points = np.concatenate([np.c_[flat, np.zeros(300)], np.c_[flat, np.full(300, 0.01)]]).astype(np.float32)
    normals = np.concatenate([np.tile([0, 0, -1], (300, 1)), np.tile([0, 0, 1], (300, 1))]).astype(np.float32)
    value = (normals[:, 2:] > 0).astype(np.float32)
    assert np.allclose(smoothed(points, normals, value, np.float32(0.2)), value, atol=1e-5)


def test_smooth_normals_are_unit_vectors_near_the_true_ones(ball: Sample) -> None:
    noise = np.random.default_rng(2).normal(scale=0.3, size=ball.normals.shape).astype(np.float32)
    rough = ball.normals + noise
    rough /= np.linalg.norm(rough, axis=1, keepdims=True)
    smooth = smoothed_normals(ball.points, rough, 0.25)
    assert np.allclose(np.linalg.norm(smooth, axis=1), 1, atol=1e-5)
    assert (smooth * ball.normals).sum(1).mean() > 0.98


def cloud(seed: int, count: int = 400) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 3)).astype(np.float32)


def test_thinned_points_keep_their_distance_and_leave_no_gap() -> None:
    points = cloud(1)
    kept = points[thin(points, 0.2)]
    far = np.linalg.norm(kept[:, None] - kept, axis=-1) + 9 * np.eye(len(kept))
    assert far.min() >= 0.2
    assert np.linalg.norm(points[:, None] - kept, axis=-1).min(1).max() < 0.2


def test_the_nearest_point_is_found_or_none_is_near() -> None:
    queries, points = cloud(2), cloud(3, 60)
    far = np.linalg.norm(queries[:, None] - points, axis=-1)
    expected = np.where(far.min(1) < 0.15, far.argmin(1), -1)
    assert (nearest_within(queries, points, 0.15) == expected).all()


def test_the_nearest_point_is_the_same_where_two_surfaces_meet_at_their_edges() -> None:
    queries, points = cloud(2), cloud(3) + np.array([0.8, 0.1, -0.3], np.float32)
    expected = nearest_within(queries, points, np.float32(0.1))
    assert (nearest_across(queries, points, 0.1) == expected).all()
    assert 0 < (expected >= 0).mean() < 0.5
    assert (nearest_across(queries, points + 9, 0.1) == -1).all()
    assert len(nearest_across(queries[:0], points, 0.1)) == 0
    assert (nearest_across(queries, points[:0], 0.1) == -1).all()


SPACING = 0.06


def look(voxels: Voxels, places: np.ndarray) -> np.ndarray:
    return np.array([look_up.py_func(*map(float, place), *voxels) for place in places])


def test_places_near_the_surface_know_the_nearest_point(ball: Sample) -> None:
    voxels = voxelise(ball.points, SPACING)
    places = ball.points * np.random.default_rng(0).uniform(0.95, 1.05, (len(ball), 1)).astype(np.float32)
    found = look(voxels, places)
    assert (found >= 0).all()
    far = np.linalg.norm(places - ball.points[found], axis=1)
    best = np.array([np.linalg.norm(ball.points - place, axis=1).min() for place in places[:200]])
    assert (far[:200] - best).max() < 1.5 * SPACING


def test_the_middle_is_inside_and_far_away_is_outside(ball: Sample) -> None:
    places = np.array([[0, 0, 0], [0.3, 0.2, 0.1], [1.5, 0, 0], [-9, 0, 0], [9, 9, 9]])
    assert list(look(voxelise(ball.points, SPACING), places)) == [INSIDE, INSIDE, OUTSIDE, OUTSIDE, OUTSIDE]
    assert INSIDE not in look(voxelise(ball.points, SPACING, closed=False), places)


def test_an_open_bowl_has_no_inside(ball: Sample) -> None:
    bowl = ball.points[ball.points[:, 2] < 0.5]
    assert look(voxelise(bowl, SPACING), np.zeros((1, 3)))[0] == OUTSIDE


def test_a_long_needle_does_not_fill_the_memory() -> None:
    needle = np.stack([np.linspace(0, 1000, 5000), np.zeros(5000), np.zeros(5000)], 1).astype(np.float32)
    voxels = voxelise(needle, 0.01)
    assert voxels.directory.size < 1e6
    assert look(voxels, np.array([[500.0, 0, 0]]))[0] >= 0


def test_closed_and_open_surfaces_are_turned_outward(halves: list[Mesh]) -> None:
    for half in halves:
        far = half.vertices[half.faces].mean(1)[:, 0].argsort()
        for kept in (far, far[len(far) // 8 :], far[: -len(far) // 4], far.flip(0)):
            right = Mesh(half.vertices, half.faces[kept])
            wrong = Mesh(1e6 * half.vertices + 5e6, right.faces.flip(1))
            assert facing_outward(right) is right
            assert torch.equal(facing_outward(wrong).faces, right.faces)


def test_the_majority_of_triangles_decides(halves: list[Mesh]) -> None:
    faces = halves[0].faces[3:].clone()
    area = triangle_normals(halves[0].vertices, faces).norm(dim=-1)
    order = area.argsort()
    few = order[area[order].cumsum(0) < 0.12 * area.sum()]
    faces[few] = faces[few].flip(1)
    mixed = Mesh(halves[0].vertices, faces)
    assert facing_outward(mixed) is mixed
    assert torch.equal(facing_outward(Mesh(mixed.vertices, faces.flip(1))).faces, faces)


def test_one_side_of_a_wall_stays_as_its_normals_say() -> None:
    grid = torch.cartesian_prod(torch.linspace(-1, 1, 20), torch.linspace(-1, 1, 20))
    sheet = torch.cat([grid, 0.3 * grid.square().sum(1, keepdim=True)], 1)
    corner = torch.arange(400).reshape(20, 20)[:-1, :-1].flatten()
    faces = torch.cat(
        [torch.stack([corner, corner + 20, corner + 21], 1), torch.stack([corner, corner + 21, corner + 1], 1)]
    )
    inner, outer = Mesh(sheet, faces), Mesh(sheet, faces.flip(1))
    assert -0.2 < enclosure(inner) < 0 < enclosure(outer) < 0.2
    assert facing_outward(inner) is inner
    assert facing_outward(outer) is outer
