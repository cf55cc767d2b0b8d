"""Breaks are moved, parted and joined."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import body_surface, joined, make_side
from diffassemble.fragments.contact import inverse
from diffassemble.fragments.descriptors import FractureSurface
from diffassemble.fragments.surface import Sample

QUARTER = np.array([0.0, -1, 0, 1, 0, 0, 0, 0, 1, 0.5, 0, 0])


def break_of(ball: Sample) -> FractureSurface:
    likeness = np.ones((len(ball), 4), np.float32)
    rim = np.zeros(len(ball), np.float32)
    return FractureSurface(ball.points, ball.normals, ball.normals, rim, ball.normals, likeness, likeness)


def test_moving_forth_and_back_changes_nothing(ball: Sample) -> None:
    face = break_of(ball)
    there = face.moved(QUARTER)
    assert np.allclose(there.points[0], [-face.points[0, 1] + 0.5, face.points[0, 0], face.points[0, 2]], atol=1e-6)
    back = there.moved(inverse(QUARTER))
    assert np.allclose(back.points, face.points, atol=1e-6)
    assert np.allclose(back.smooth, face.smooth, atol=1e-6)


def test_parts_join_to_the_whole(ball: Sample) -> None:
    face = break_of(ball)
    left = face.points[:, 0] < 0
    both = joined([face.part(left), face.part(~left)])
    assert sorted(map(tuple, both.points)) == sorted(map(tuple, face.points))


def test_a_side_has_probes_on_its_body(ball: Sample) -> None:
    side = make_side(break_of(ball), body_surface(ball.points, ball.normals, 0.06), 0.06)
    assert 100 < len(side.probe) < 400
