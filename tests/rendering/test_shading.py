"""Light: from the upper left, with shade where something stands in its way."""

from __future__ import annotations

import numpy as np

from diffassemble.rendering.studio import KEY_LIGHT, find_occlusion, find_shadow, lay_ground, shine

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
    shine(owner, nearness, normal, occlusion, shade, colours, table, up, FOCAL, MIDDLE, MIDDLE, 1, light)
    return light


def test_the_light_comes_from_the_upper_left() -> None:
    owner, nearness, normal = flat()
    rows, columns = np.mgrid[-1:1:40j, -1:1:40j]
    normal[..., 0], normal[..., 1] = columns * 0.7, rows * 0.7
    light = lit(owner, nearness, normal).sum(-1)
    assert light[5, 5] > light[5, 35] > light[35, 35]
    assert light[5, 5] > light[35, 5]


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


def test_an_empty_table_is_exactly_the_background() -> None:
    owner, nearness, normal = flat()
    assert (lit(np.full_like(owner, -1), nearness, normal) == 1).all()


def test_the_ground_ends_at_the_horizon() -> None:
    nearness, normal = np.zeros((40, 40), np.float32), np.zeros((40, 40, 3), np.float32)
    lay_ground(nearness, normal, FOCAL, MIDDLE, MIDDLE, np.array([0.0, -1.0, 0.0]), -1.0)
    assert (nearness[:20] == 0).all()
    assert (nearness[20:] > 0).all()
    # Half a unit below the axis at unit distance: the plane one unit below is met at distance two.
    assert np.isclose(nearness[39, 0], 19.5 / 40)


def test_corners_are_dark_and_plains_are_not() -> None:
    _, nearness, normal = flat()
    occlusion = np.zeros_like(nearness)
    find_occlusion(nearness, normal, FOCAL, MIDDLE, MIDDLE, 0.3, occlusion)
    assert occlusion.max() == 0
    nearness[:, 20:] = 1 / 1.8
    find_occlusion(nearness, normal, FOCAL, MIDDLE, MIDDLE, 0.3, occlusion)
    assert occlusion[5:-5, 16:20].mean() > 0.05
    assert occlusion[:, :8].max() == 0


def test_what_stands_before_the_light_casts_a_shadow() -> None:
    owner, nearness, normal = flat()
    axes = np.stack([[1.0, 0, 0], [0, 1.0, 0], [0, 0, -1.0]])
    shadow_map = np.zeros((50, 50), np.float32)
    shadow_map[:, :25] = 3.0
    shade = np.zeros_like(nearness)
    where = (axes, 20.0, np.array([25.0, 25.0, 4.0]), shadow_map, 1.0, 0.01)
    find_shadow(owner, nearness, normal, FOCAL, MIDDLE, MIDDLE, *where, shade)
    assert (shade[:, :15] == 1).all()
    assert (shade[:, 25:] == 0).all()
    find_shadow(owner, nearness, -normal, FOCAL, MIDDLE, MIDDLE, *where, shade)
    assert (shade == 1).all()
    assert np.isclose(np.linalg.norm(KEY_LIGHT), 1)
