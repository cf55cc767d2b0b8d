"""Cameras: right is right, up is up, near is large, and everything fits."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.rendering.studio import Camera, bounds, frame, orbit

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


def test_a_single_point_can_be_framed() -> None:
    camera = frame(np.zeros((1, 3), np.float32), orbit(30.0, 25.0), (50, 40), 0.1)
    assert np.allclose(camera.project(camera.view(np.zeros((1, 3), np.float32)))[0, :2], (25, 20))


def test_enlarging_moves_pixels_in_proportion() -> None:
    camera = frame(CUBE, orbit(10.0, 20.0), (64, 48), 0.1)
    small, large = (one.project(one.view(CUBE)) for one in (camera, camera.enlarged(3)))
    assert np.allclose(large[:, :2], 3 * small[:, :2], atol=1e-3)


def test_on_the_way_from_wide_to_close() -> None:
    wide, close = (frame(points, orbit(10.0, 20.0), (64, 48), 0.1) for points in (3 * CUBE, CUBE + np.float32(0.2)))

    def image(camera: Camera) -> np.ndarray:
        return camera.project(camera.view(CUBE))[:, :2]

    assert np.allclose(image(wide.towards(close, 0.0)), image(wide), atol=1e-3)
    assert np.allclose(image(wide.towards(close, 1.0)), image(close), atol=1e-3)
    assert np.ptp(image(wide)) < np.ptp(image(wide.towards(close, 0.5))) < np.ptp(image(close))
