"""Averages go over neighbours that face the same way, and no others."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.surface import Sample, smoothed, smoothed_normals


def test_constants_stay_and_noise_shrinks(ball: Sample) -> None:
    noise = np.random.default_rng(0).normal(size=(len(ball), 1)).astype(np.float32)
    values = np.concatenate([np.ones_like(noise), noise], 1)
    mean = smoothed(ball.points, ball.normals, values, 0.2)
    assert np.allclose(mean[:, 0], 1, atol=1e-5)
    assert mean[:, 1].std() < 0.4


def test_the_two_faces_of_a_thin_sheet_do_not_mix() -> None:
    flat = np.random.default_rng(1).random((300, 2)).astype(np.float32)
    points = np.concatenate([np.c_[flat, np.zeros(300)], np.c_[flat, np.full(300, 0.01)]]).astype(np.float32)
    normals = np.concatenate([np.tile([0, 0, -1], (300, 1)), np.tile([0, 0, 1], (300, 1))]).astype(np.float32)
    value = (normals[:, 2:] > 0).astype(np.float32)
    assert np.allclose(smoothed(points, normals, value, 0.2), value, atol=1e-5)


def test_smooth_normals_are_unit_vectors_near_the_true_ones(ball: Sample) -> None:
    noise = np.random.default_rng(2).normal(scale=0.3, size=ball.normals.shape).astype(np.float32)
    rough = ball.normals + noise
    rough /= np.linalg.norm(rough, axis=1, keepdims=True)
    smooth = smoothed_normals(ball.points, rough, 0.25)
    assert np.allclose(np.linalg.norm(smooth, axis=1), 1, atol=1e-5)
    assert (smooth * ball.normals).sum(1).mean() > 0.98
