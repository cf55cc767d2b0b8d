"""Triangles in space: areas, points drawn from them, clean-up, and the distance of clouds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.core.surfaces import (
    chamfer_distance,
    clean_surface,
    distinct_rows,
    is_closed,
    sample_surface,
    single_walls,
    surface_area,
)

SQUARE = torch.tensor([[0.0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]])


TRIANGLES = torch.tensor([[0, 1, 2], [0, 2, 3]])


def test_the_area_of_a_rectangle() -> None:
    assert surface_area(SQUARE, TRIANGLES) == pytest.approx(2)


def test_points_are_even_and_normals_point_out() -> None:
    points, normals = sample_surface(SQUARE, TRIANGLES, 40_000, torch.Generator().manual_seed(0))
    assert torch.allclose(points.mean(0), torch.tensor([1.0, 0.5, 0]), atol=0.01)
    assert torch.allclose(points.var(0), torch.tensor([4 / 12, 1 / 12, 0]), atol=0.01)
    assert torch.allclose(normals, torch.tensor([0.0, 0, 1]).expand_as(normals))


def test_a_cloud_gives_its_own_points_each_alike_often() -> None:
    none = torch.zeros(0, 3, dtype=torch.long)
    points, normals = sample_surface(SQUARE, none, 10, torch.Generator().manual_seed(0))
    often = (points[:, None] == SQUARE).all(-1).sum(0)
    assert often.sum() == 10
    assert often.min() >= 2
    assert not normals.any()


CORNERS = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])


TETRAHEDRON = torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
@settings(deadline=None)
def test_distinct_rows_are_all_rows_once(pairs: list[tuple[int, int]]) -> None:
    first, which = distinct_rows(torch.tensor(pairs))
    seen = list(dict.fromkeys(pairs))
    assert [pairs[i] for i in first.tolist()] == seen
    assert [seen[i] for i in which.tolist()] == pairs


def test_a_wall_between_two_cells_cancels() -> None:
    other = torch.tensor([[1, 3, 2], [4, 1, 2], [4, 2, 3], [4, 3, 1]])
    both = torch.cat([TETRAHEDRON, other])
    joined = both[single_walls(both)]
    assert joined.tolist() == [*TETRAHEDRON[:3].tolist(), *other[1:].tolist()]
    assert is_closed(joined)


def test_repetitions_go_and_odd_numbers_leave_one() -> None:
    first, twin, back = [0, 1, 2], [1, 2, 0], [0, 2, 1]
    assert single_walls(torch.tensor([first, twin, [1, 2, 3]])).tolist() == [0, 2]
    assert single_walls(torch.tensor([back, first, twin, [1, 2, 3]])).tolist() == [1, 3]


def test_a_two_sided_sheet_keeps_one_side() -> None:
    assert single_walls(torch.tensor([[0, 1, 2], [2, 1, 0]])).tolist() == [0]


def test_loose_triangles_become_one_closed_surface() -> None:
    soup = CORNERS[TETRAHEDRON].reshape(-1, 3)
    vertices, faces, kept, _ = clean_surface(soup, torch.arange(12).reshape(4, 3))
    assert len(vertices) == 4
    assert is_closed(faces)
    assert not is_closed(faces[1:])
    assert torch.equal(vertices[faces], CORNERS[TETRAHEDRON])
    assert torch.equal(soup[kept], vertices)
    assert abs(surface_area(vertices, faces) - surface_area(CORNERS, TETRAHEDRON)) < 1e-6


def test_a_sound_surface_stays_as_it_is() -> None:
    vertices, faces, *_ = clean_surface(CORNERS[:4], TETRAHEDRON)
    assert torch.equal(vertices, CORNERS[:4])
    assert torch.equal(faces, TETRAHEDRON)


def test_collapsed_triangles_and_unused_corners_go() -> None:
    vertices, faces, kept, _ = clean_surface(CORNERS, torch.cat([torch.tensor([[4, 4, 1]]), TETRAHEDRON]))
    assert torch.equal(vertices, CORNERS[:4])
    assert torch.equal(faces, TETRAHEDRON)
    assert kept.tolist() == [0, 1, 2, 3]


def test_clouds_lose_equal_points_only() -> None:
    cloud = torch.tensor([[0.0, 0, 0], [-0.0, 0, 0], [1, 2, 3]])
    vertices, faces, kept, _ = clean_surface(cloud, torch.zeros(0, 3, dtype=torch.long))
    assert vertices.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert kept.tolist() == [0, 2]
    assert len(faces) == 0
    assert not is_closed(faces)


FIRST, SECOND = (torch.randn(3, size, 3, generator=torch.Generator().manual_seed(size)) for size in (20, 31))


def test_a_shifted_point_and_a_cloud_with_one_stray() -> None:
    origin, shifted = torch.zeros(1, 1, 3), torch.tensor([[[3.0, 0, 4.0]]])
    assert chamfer_distance(origin, shifted).item() == 50
    pair = torch.cat([origin, shifted], 1)
    assert chamfer_distance(origin, pair).item() == 12.5
    assert chamfer_distance(pair, origin).item() == 12.5
    assert chamfer_distance(pair, pair.flip(1)).item() == 0


def test_it_is_that_of_all_pairs() -> None:
    distances = (FIRST[:, :, None] - SECOND[:, None]).square().sum(-1)
    expected = distances.amin(2).mean(1) + distances.amin(1).mean(1)
    torch.testing.assert_close(chamfer_distance(FIRST, SECOND), expected)


def test_its_gradient_pulls_clouds_together() -> None:
    moving = FIRST.clone().requires_grad_()
    before = chamfer_distance(moving, SECOND)
    before.sum().backward()
    after = chamfer_distance(moving.detach() - 0.5 * moving.grad, SECOND)
    assert (after < before).all()
    assert torch.autograd.gradcheck(
        chamfer_distance, (FIRST[:1, :4].double().requires_grad_(), SECOND[:1, :5].double())
    )
