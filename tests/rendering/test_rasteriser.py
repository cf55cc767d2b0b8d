"""Triangles and pixels: which are covered, and by whom."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.rendering.studio import NOTHING, Layers, rasterise


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


def test_nearness_is_linear_over_a_triangle() -> None:
    layers = draw([[0, 0, 1], [8, 0, 9], [0, 6, 1]])
    assert np.allclose(layers.nearness[0, :6], 1 + np.arange(6) + 0.5)


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
