"""Backgrounds, colours, and outlines finer than pixels, on pictures made by code."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.measure import find_contours

from diffassemble.io.photo.ground import compare, fit_ground, foreground, soft_alpha

ROWS, COLUMNS = np.mgrid[0:160, 0:200] + 0.5


def disc(radius: float = 40.3, x: float = 98.4, y: float = 81.7) -> np.ndarray:
    """How much of each pixel a disc covers."""
    return np.clip(radius - np.hypot(COLUMNS - x, ROWS - y) + 0.5, 0, 1)


def scene(thing: tuple[float, ...], table: tuple[float, ...], shadow: float = 0.0, noise: float = 0.01) -> np.ndarray:
    """A disc of one colour on a table that light falls on from one side, with a soft shadow to the lower right."""
    light = 1 - 0.15 * COLUMNS / 200 - shadow * np.clip(1 - np.hypot(COLUMNS - 104, ROWS - 88) / 60, 0, 0.4) / 0.4
    cover = disc()
    colours = np.array(thing)[:, None, None] * cover + np.array(table)[:, None, None] * light * (1 - cover)
    return np.clip(colours + np.random.default_rng(0).normal(0, noise, colours.shape), 0, 1)


def traced(colours: np.ndarray) -> np.ndarray:
    """Distances of the outline's points from the disc's."""
    contrast = compare(colours, fit_ground(colours).colours(*colours.shape[1:]))
    mask = foreground(contrast)
    alpha = soft_alpha(contrast, mask, 3)
    curve = max(find_contours(alpha, 0.5), key=len) + 0.5
    return np.hypot(curve[:, 1] - 98.4, curve[:, 0] - 81.7) - 40.3


def test_a_slope_under_pieces() -> None:
    y, x = np.mgrid[0:90, 0:120] / 100
    table = np.stack([0.8 - 0.2 * x, 0.7 - 0.1 * y, 0.6 + 0.1 * x * y])
    seen = table + np.random.default_rng(0).normal(0, 0.01, table.shape)
    seen[:, 30:60, 40:80] = 0.2
    background = fit_ground(seen)
    ground = background.colours(90, 120)
    assert np.abs(ground - table).max() < 0.02
    assert 0.005 < background.noise < 0.03
    window = slice(20, 50), slice(10, 90)
    assert np.allclose(background.colours(90, 120, window), ground[:, window[0], window[1]])


@pytest.mark.parametrize(
    ("thing", "table"),
    [
        ((0.9, 0.9, 0.92), (0.3, 0.4, 0.3)),
        ((0.05, 0.05, 0.08), (0.9, 0.9, 0.88)),
        ((0.8, 0.2, 0.2), (0.5, 0.5, 0.5)),
        ((0.85, 0.85, 0.2), (0.8, 0.68, 0.35)),
    ],
)
def test_outlines_are_finer_than_pixels_on_light_and_dark(thing: tuple[float, ...], table: tuple[float, ...]) -> None:
    off = traced(scene(thing, table))
    assert abs(np.median(off)) < 0.3
    assert np.abs(off).max() < 1.2


def test_a_soft_shadow_is_no_part_of_a_piece() -> None:
    off = traced(scene((0.85, 0.3, 0.2), (0.75, 0.75, 0.72), shadow=0.25))
    assert abs(np.median(off)) < 0.4
    assert np.abs(off).max() < 1.5


def test_white_on_white_is_found_by_its_rim() -> None:
    colours = scene((0.9, 0.9, 0.9), (0.9, 0.9, 0.9), noise=0.003)
    ring = np.abs(np.hypot(COLUMNS - 98.4, ROWS - 81.7) - 40.3) < 1
    colours = np.where(ring, 0.6, colours)
    mask = foreground(compare(colours, fit_ground(colours).colours(160, 200)))
    assert mask.sum() == pytest.approx(np.pi * 40.3**2, rel=0.08)


def test_a_bay_with_a_narrow_mouth_stays_a_bay() -> None:
    """But a spot of the background's colour within a piece is part of it."""
    colours = np.full((3, 160, 200), 0.4)
    colours[:, 40:120, 50:150] = 0.9
    bay = np.hypot(COLUMNS - 66, ROWS - 80) < 15
    spot = np.hypot(COLUMNS - 120, ROWS - 80) < 12
    colours[:, bay | spot] = 0.4
    colours[:, 77:83, 50:55] = 0.4  # its mouth
    colours += np.random.default_rng(0).normal(0, 0.005, colours.shape)
    contrast = compare(colours, fit_ground(colours).colours(160, 200))
    alpha = soft_alpha(contrast, foreground(contrast), 4)
    assert alpha[spot].min() == 1
    assert alpha[np.hypot(COLUMNS - 66, ROWS - 80) < 8].max() == 0


def test_fibres_are_left_out_and_corners_stay() -> None:
    colours = np.full((3, 160, 200), 0.9)
    colours[:, 40:120, 50:150] = 0.1
    colours[:, 80:82, 150:180] = 0.1
    contrast = compare(colours, fit_ground(colours).colours(160, 200))
    alpha = soft_alpha(contrast, foreground(contrast), 4)
    assert alpha[:, 156:].max() == 0
    assert alpha[42, 52] == alpha[117, 147] == 1
