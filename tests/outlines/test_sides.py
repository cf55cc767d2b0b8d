"""Corners and sides of jigsaw pieces, and to which family pieces belong."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from skimage import data

from diffassemble.core import OutlinePieces, Puzzle
from diffassemble.core.contours import signed_area
from diffassemble.core.poses import plane_rotations
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.matches import family
from diffassemble.outlines.sides import FLAT, HOLE, TAB, find_sides, outwards


def changed(pieces: OutlinePieces, scale: float, angle: float) -> OutlinePieces:
    """The same outlines, larger and turned."""
    turn = plane_rotations(torch.tensor([angle]))[0]
    return replace(pieces, contours=tuple(scale * contour @ turn.T for contour in pieces.contours))


def square(side: float) -> OutlinePieces:
    """A square of that many pixels."""
    along = torch.arange(side) - side / 2
    ends = torch.full_like(along, side / 2)
    top, right = torch.stack([along, -ends], 1), torch.stack([ends, along], 1)
    contour = torch.cat([top, right, -top, -right])
    return OutlinePieces((torch.zeros(4, 1, 1, dtype=torch.uint8),), (contour,), torch.zeros(1, 2))


def test_a_square_has_its_corners_and_four_flat_sides_numbered_clockwise_from_the_right() -> None:
    sides = find_sides(square(100.0))
    assert (sides.shapes == FLAT).all()
    expected = 50 * np.array([[1, -1], [1, 1], [-1, 1], [-1, -1]])
    assert np.abs(sides.corners[0] - expected).max() < 2
    assert np.abs(sides.lengths - 100).max() < 4
    # From its first corner each side runs to its second.
    assert np.abs(sides.points[0, :, 0] - expected).max() < 2
    assert np.abs(sides.points[0, :, -1] - np.roll(expected, -1, 0)).max() < 2


def test_outwards_is_to_the_left_of_a_clockwise_outline() -> None:
    sides = find_sides(square(100.0))
    looks = outwards(sides.points[0])[:, 64]
    assert np.abs(looks - np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])).max() < 1e-6


def test_a_whole_puzzle_has_as_many_tabs_as_holes_and_flat_sides_all_around(jigsaw: Puzzle) -> None:
    sides = find_sides(jigsaw.outlines)
    assert (sides.doubt < 2).all()
    # 4 rows × 5 columns: 15 + 16 seams, 18 flat sides.
    assert [int((sides.shapes == shape).sum()) for shape in (TAB, HOLE, FLAT)] == [31, 31, 18]
    assert sorted((sides.shapes == FLAT).sum(1))[-4:] == [2, 2, 2, 2]


def test_true_neighbours_share_their_corners(jigsaw: Puzzle) -> None:
    """Every corner of a piece at its true place lies near corners of its neighbours, or at the rim."""
    sides, truth = find_sides(jigsaw.outlines), jigsaw.truth
    assert truth is not None
    corners = truth.apply(torch.from_numpy(sides.corners).float()).reshape(-1, 2)
    apart = torch.cdist(corners, corners)
    near = (apart < 0.1 * sides.length).sum(1)
    # 12 inner corners are those of four pieces, 14 at the rim of two, and the four of the whole of one.
    assert near.bincount().tolist() == [0, 4, 28, 0, 48]


@pytest.mark.parametrize(("scale", "angle"), [(0.4, 1.0), (1.0, math.pi / 2), (40.0, 2.5)])
def test_size_and_turn_change_nothing(jigsaw: Puzzle, scale: float, angle: float) -> None:
    one, two = find_sides(jigsaw.outlines), find_sides(changed(jigsaw.outlines, scale, angle))
    turn = plane_rotations(torch.tensor([angle])).double().numpy()[0]
    expected = scale * one.corners @ turn.T
    # The same four corners, whichever is the first.
    apart = np.linalg.norm(expected[:, :, None] - two.corners[:, None], axis=-1).min(2)
    assert apart.max() < 0.02 * two.length
    assert sorted(one.shapes.ravel()) == sorted(two.shapes.ravel())


def test_an_outline_without_corners_is_doubted() -> None:
    angles = torch.arange(300) / 300 * 2 * math.pi
    disc = 48 * torch.stack([angles.cos(), angles.sin()], 1)
    assert signed_area(disc.numpy()) > 0
    pieces = OutlinePieces((torch.zeros(4, 1, 1, dtype=torch.uint8),), (disc,), torch.zeros(1, 2))
    assert find_sides(pieces).doubt[0] > 3
    assert family(pieces) == "free"


@pytest.mark.parametrize(("shape", "expected"), [("tabs", True), ("torn", False), ("shards", False), ("strips", False)])
def test_the_family_shows_in_the_outlines(shape: str, expected: bool) -> None:
    picture = torch.from_numpy(data.coffee()).movedim(-1, 0).float() / 255
    puzzle = cut_shapes(picture, shape, 12, torch.Generator().manual_seed(1))
    assert (family(puzzle.outlines) == "tabs") == expected
