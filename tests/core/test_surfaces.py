"""Triangles in space: areas, samples of surfaces, clean-up, and the distance of clouds."""

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
NONE = torch.zeros(0, 3, dtype=torch.long)
CORNERS = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
TETRAHEDRON = torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
FIRST, SECOND = (torch.randn(3, size, 3, generator=torch.Generator().manual_seed(size)) for size in (20, 31))


def test_samples_of_a_rectangle_and_of_a_cloud_are_even() -> None:
    assert surface_area(SQUARE, TRIANGLES) == pytest.approx(2)
    points, normals = sample_surface(SQUARE, TRIANGLES, 40_000, torch.Generator().manual_seed(0))
    assert torch.allclose(points.mean(0), torch.tensor([1.0, 0.5, 0]), atol=0.01)
    assert torch.allclose(points.var(0), torch.tensor([4 / 12, 1 / 12, 0]), atol=0.01)
    assert torch.allclose(normals, torch.tensor([0.0, 0, 1]).expand_as(normals))
    points, normals = sample_surface(SQUARE, NONE, 10, torch.Generator().manual_seed(0))
    often = (points[:, None] == SQUARE).all(-1).sum(0)
    assert (often.sum(), often.min() >= 2, normals.any()) == (10, True, False)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
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


@pytest.mark.parametrize(
    ("faces", "kept"),
    [
        ([[0, 1, 2], [1, 2, 0], [1, 2, 3]], [0, 2]),
        ([[0, 2, 1], [0, 1, 2], [1, 2, 0], [1, 2, 3]], [1, 3]),
        ([[0, 1, 2], [2, 1, 0]], [0]),
    ],
    ids=["repetitions go", "an odd number leaves one", "a two-sided sheet keeps one side"],
)
def test_walls_that_are_there_several_times(faces: list[list[int]], kept: list[int]) -> None:
    assert single_walls(torch.tensor(faces)).tolist() == kept


def test_loose_triangles_become_one_closed_surface() -> None:
    soup = CORNERS[TETRAHEDRON].reshape(-1, 3)
    vertices, faces, kept, _ = clean_surface(soup, torch.arange(12).reshape(4, 3))
    assert len(vertices) == 4
    assert is_closed(faces)
    assert not is_closed(faces[1:])
    assert torch.equal(vertices[faces], CORNERS[TETRAHEDRON])
    assert torch.equal(soup[kept], vertices)
    assert abs(surface_area(vertices, faces) - surface_area(CORNERS, TETRAHEDRON)) < 1e-6


@pytest.mark.parametrize("more", [NONE, torch.tensor([[4, 4, 1]])], ids=["a sound surface", "a collapsed triangle"])
def test_what_is_sound_stays_and_collapsed_triangles_and_unused_corners_go(more: torch.Tensor) -> None:
    vertices, faces, kept, _ = clean_surface(CORNERS, torch.cat([more, TETRAHEDRON]))
    assert torch.equal(vertices, CORNERS[:4])
    assert torch.equal(faces, TETRAHEDRON)
    assert kept.tolist() == [0, 1, 2, 3]


def test_clouds_lose_equal_points_only() -> None:
    vertices, faces, kept, _ = clean_surface(torch.tensor([[0.0, 0, 0], [-0.0, 0, 0], [1, 2, 3]]), NONE)
    assert vertices.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert kept.tolist() == [0, 2]
    assert len(faces) == 0
    assert not is_closed(faces)


def test_the_chamfer_distance_is_that_of_all_pairs_and_its_gradient_pulls_clouds_together() -> None:
    origin, shifted = torch.zeros(1, 1, 3), torch.tensor([[[3.0, 0, 4.0]]])
    pair = torch.cat([origin, shifted], 1)
    pairs = ((origin, shifted), (origin, pair), (pair, origin), (pair, pair.flip(1)))
    assert [chamfer_distance(*both).item() for both in pairs] == [50, 12.5, 12.5, 0]
    distances = (FIRST[:, :, None] - SECOND[:, None]).square().sum(-1)
    expected = distances.amin(2).mean(1) + distances.amin(1).mean(1)
    torch.testing.assert_close(chamfer_distance(FIRST, SECOND), expected)
    moving = FIRST.clone().requires_grad_()
    before = chamfer_distance(moving, SECOND)
    before.sum().backward()
    assert (chamfer_distance(moving.detach() - 0.5 * moving.grad, SECOND) < before).all()
    clouds = FIRST[:1, :4].double().requires_grad_(), SECOND[:1, :5].double()
    assert torch.autograd.gradcheck(chamfer_distance, clouds)
