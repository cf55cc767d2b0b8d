"""Colours of fragments: told apart by all eyes, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.rendering.picture import fragment_colours, to_linear, to_srgb

# How strong red-green and blue-yellow blindness change linear sRGB (Machado, Oliveira and Fernandes 2009).
EYES = {
    "all cones": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.052]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.96888]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}


@pytest.mark.parametrize("eyes", EYES)
def test_the_first_eight_differ_for_all_eyes(eyes: str) -> None:
    seen = to_srgb((to_linear(fragment_colours(8).astype(float)) @ EYES[eyes].T).clip(0, 1))
    distance = np.linalg.norm(seen[:, None] - seen, axis=-1)[~np.eye(8, dtype=bool)]
    assert distance.min() > 0.09


def test_colours_are_colours_and_keep_their_places() -> None:
    many = fragment_colours(200)
    assert many.shape == (200, 3)
    assert 0 <= many.min() <= many.max() <= 1
    assert np.array_equal(many[:5], fragment_colours(5))
    assert len(np.unique((many * 255).round(), axis=0)) == 200
    assert fragment_colours(0).shape == (0, 3)


def test_light_and_screen_numbers_are_inverse() -> None:
    levels = np.linspace(0, 1, 101)
    assert np.allclose(to_srgb(to_linear(levels)), levels, atol=1e-6)
    assert to_linear(np.array(0.5)) == pytest.approx(0.2140, abs=1e-4)
