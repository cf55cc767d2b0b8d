"""Surfaces keep their shape when they are cleaned."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.core.surfaces import clean_surface, distinct_rows, is_closed, surface_area, without_doubled_walls

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
    joined = without_doubled_walls(torch.cat([TETRAHEDRON, other]))
    assert joined.tolist() == [*TETRAHEDRON[:3].tolist(), *other[1:].tolist()]
    assert is_closed(joined)


def test_repetitions_go_and_odd_numbers_leave_one() -> None:
    first, twin, back = [0, 1, 2], [1, 2, 0], [0, 2, 1]
    assert without_doubled_walls(torch.tensor([first, twin, [1, 2, 3]])).tolist() == [first, [1, 2, 3]]
    assert without_doubled_walls(torch.tensor([back, first, twin, [1, 2, 3]])).tolist() == [first, [1, 2, 3]]


def test_a_two_sided_sheet_keeps_one_side() -> None:
    assert without_doubled_walls(torch.tensor([[0, 1, 2], [2, 1, 0]])).tolist() == [[0, 1, 2]]


def test_loose_triangles_become_one_closed_surface() -> None:
    soup = CORNERS[TETRAHEDRON].reshape(-1, 3)
    vertices, faces = clean_surface(soup, torch.arange(12).reshape(4, 3))
    assert len(vertices) == 4
    assert is_closed(faces)
    assert not is_closed(faces[1:])
    assert torch.equal(vertices[faces], CORNERS[TETRAHEDRON])
    assert abs(surface_area(vertices, faces) - surface_area(CORNERS, TETRAHEDRON)) < 1e-6


def test_a_sound_surface_stays_as_it_is() -> None:
    vertices, faces = clean_surface(CORNERS[:4], TETRAHEDRON)
    assert torch.equal(vertices, CORNERS[:4])
    assert torch.equal(faces, TETRAHEDRON)


def test_collapsed_triangles_and_unused_corners_go() -> None:
    vertices, faces = clean_surface(CORNERS, torch.cat([torch.tensor([[4, 4, 1]]), TETRAHEDRON]))
    assert torch.equal(vertices, CORNERS[:4])
    assert torch.equal(faces, TETRAHEDRON)


def test_clouds_lose_equal_points_only() -> None:
    cloud = torch.tensor([[0.0, 0, 0], [-0.0, 0, 0], [1, 2, 3]])
    vertices, faces = clean_surface(cloud, torch.zeros(0, 3, dtype=torch.long))
    assert vertices.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert len(faces) == 0
    assert not is_closed(faces)
