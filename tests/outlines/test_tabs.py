"""Jigsaw pieces: corners and sides, fits of tabs and holes, odds, and matches that the truth confirms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from diffassemble.core import Matches, OutlinePieces, Puzzle
from diffassemble.core.poses import plane_rotations
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.grow import family
from diffassemble.outlines.sides import FLAT, HOLE, TAB, find_sides, outwards
from diffassemble.outlines.tabs import fit_sides, match_tabs, mutual_best, probabilities, shape_odds


def outlined(*contours: torch.Tensor) -> OutlinePieces:
    count = len(contours)
    return OutlinePieces((torch.zeros(4, 1, 1, dtype=torch.uint8),) * count, contours, torch.zeros(count, 2))


def is_true(puzzle: Puzzle, matches: Matches) -> torch.Tensor:
    """Whether pieces truly fit each other as a match has them, within a twentieth of a piece."""
    truth = puzzle.truth
    assert truth is not None
    wanted = truth[matches.second].inverse() @ truth[matches.first]
    apart = (wanted.translation - matches.pose.translation).norm(dim=1)
    turned = (wanted.rotation - matches.pose.rotation).abs().amax((1, 2))
    return (apart < 0.05 * find_sides(puzzle.outlines).length) & (turned < 0.05)


def test_a_square_has_four_flat_sides_numbered_clockwise_from_the_right() -> None:
    along = torch.arange(100.0) - 50
    top, right = (torch.stack(both, 1) for both in ((along, along * 0 - 50), (along * 0 + 50, along)))
    sides = find_sides(outlined(torch.cat([top, right, -top, -right])))
    assert (sides.shapes == FLAT).all()
    expected = 50 * np.array([[1, -1], [1, 1], [-1, 1], [-1, -1]])
    assert np.abs(sides.corners[0] - expected).max() < 2
    assert np.abs(sides.lengths - 100).max() < 4
    # From its first corner each side runs to its second, and outwards is to the left of that way.
    assert np.abs(sides.points[0, :, 0] - expected).max() < 2
    assert np.abs(sides.points[0, :, -1] - np.roll(expected, -1, 0)).max() < 2
    assert np.abs(outwards(sides.points[0])[:, 64] - [[1, 0], [0, 1], [-1, 0], [0, -1]]).max() < 1e-6


def test_sides_of_a_whole_puzzle_fit_together(jigsaw: Puzzle) -> None:
    sides, truth = find_sides(jigsaw.outlines), jigsaw.truth
    assert truth is not None
    assert (sides.doubt < 2).all()
    # 4 rows × 5 columns: 15 + 16 seams, 18 flat sides, four corner pieces.
    assert [int((sides.shapes == shape).sum()) for shape in (TAB, HOLE, FLAT)] == [31, 31, 18]
    assert sorted((sides.shapes == FLAT).sum(1))[-4:] == [2, 2, 2, 2]
    # 12 inner corners are those of four pieces, 14 at the rim of two, and the four of the whole of one.
    corners = truth.apply(torch.from_numpy(sides.corners).float()).reshape(-1, 2)
    near = (torch.cdist(corners, corners) < 0.1 * sides.length).sum(1)
    assert near.bincount().tolist() == [0, 4, 28, 0, 48]


@pytest.mark.parametrize(("scale", "angle"), [(0.4, 1.0), (1.0, math.pi / 2), (40.0, 2.5)])
def test_size_and_turn_of_pieces_change_no_side(jigsaw: Puzzle, scale: float, angle: float) -> None:
    turn = plane_rotations(torch.tensor([angle]))[0]
    moved = replace(jigsaw.outlines, contours=tuple(scale * contour @ turn.T for contour in jigsaw.outlines.contours))
    one, two = find_sides(jigsaw.outlines), find_sides(moved)
    # The same four corners, whichever is the first.
    expected = scale * one.corners @ turn.double().numpy().T
    assert np.linalg.norm(expected[:, :, None] - two.corners[:, None], axis=-1).min(2).max() < 0.02 * two.length
    assert sorted(one.shapes.ravel()) == sorted(two.shapes.ravel())


def test_a_disc_is_no_jigsaw_piece() -> None:
    angles = torch.arange(300) / 300 * 2 * math.pi
    disc = outlined(48 * torch.stack([angles.cos(), angles.sin()], 1))
    assert find_sides(disc).doubt[0] > 3
    assert family(disc) == "free"


@pytest.mark.parametrize(
    ("shape", "expected"), [("tabs", "tabs"), ("torn", "free"), ("shards", "free"), ("strips", "strips")]
)
def test_outlines_show_the_family(sample: torch.Tensor, shape: str, expected: str) -> None:
    assert family(cut_shapes(sample, shape, 12, torch.Generator().manual_seed(1)).outlines) == expected


@pytest.mark.parametrize("gap", [0.0, 0.002])
def test_a_fit_finds_the_motion_and_the_gap(gap: float) -> None:
    t, turn = np.linspace(0, 1, 128), plane_rotations(torch.tensor([0.7], dtype=torch.double)).numpy()[0]
    hole = np.stack([t, 0.25 * np.exp(-(((t - 0.45) / 0.12) ** 2)) + 0.02 * np.sin(7 * t)], 1)
    shift = np.array([0.3, -1.2])
    # The same curve beside itself, then in another frame.
    tab = (hole - gap * outwards(hole[None])[0] - shift) @ turn
    one, two = ((curve[:, 0] + 1j * curve[:, 1])[None] for curve in (tab, hole))
    ((angle, x, y, error, found),) = fit_sides(one, two, np.array([0.6])).T
    assert angle == pytest.approx(0.7, abs=2e-3 + gap)
    assert [x, y] == pytest.approx(shift, abs=3e-3 + gap)
    assert error < 1e-3 + gap
    # Part of the gap is taken up by a shift across the side.
    assert -1e-4 <= found <= gap + 1e-4


@pytest.mark.parametrize("coloured", [True, False])
def test_the_best_partner_of_every_side_is_the_true_one(jigsaw: Puzzle, coloured: bool) -> None:
    matches = match_tabs(replace(jigsaw.outlines, coloured=coloured))
    true = is_true(jigsaw, matches)
    assert int(true.sum()) == 62  # 31 seams, each in both directions
    assert bool((matches.probability[true] > matches.probability[~true].max()).all())
    assert bool(((matches.evidence >= 0) & (matches.evidence <= 1)).all())
    half = len(matches) // 2
    one, two = (matches[torch.arange(half) + start] for start in (0, half))
    assert torch.equal(one.first, two.second)
    assert torch.equal(one.slot // 4, two.slot % 4)
    nothing = one.pose @ two.pose
    assert nothing.translation.abs().max() < 1e-3
    assert torch.allclose(nothing.rotation, torch.eye(2).expand(half, 2, 2), atol=1e-5)


@pytest.mark.parametrize("offset", [-1.0, 1.0])
def test_outlines_that_are_all_too_small_or_too_large_are_matched_as_well(jigsaw: Puzzle, offset: float) -> None:
    """A threshold that is off moves all outlines by a pixel: tabs get thinner and holes wider, or the reverse."""
    moved = []
    for contour in jigsaw.outlines.contours:
        along = contour.roll(-2, 0) - contour.roll(2, 0)
        moved.append(contour + offset * torch.stack([along[:, 1], -along[:, 0]], 1) / along.norm(dim=1, keepdim=True))
    matches = match_tabs(replace(jigsaw.outlines, contours=tuple(moved), coloured=False))
    assert int((is_true(jigsaw, matches) & (matches.evidence[:, 1] > 0.999)).sum()) >= 60


def test_a_single_piece_has_no_matches(jigsaw: Puzzle) -> None:
    assert len(match_tabs(jigsaw.reordered(torch.tensor([2])).outlines)) == 0


def test_mutual_best_pairs_are_the_cheapest_of_both() -> None:
    tab, hole = np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])
    assert mutual_best(tab, hole, np.array([1.0, 2.0, 3.0, 1.5])).tolist() == [True, False, False, True]
    assert mutual_best(tab, hole, np.array([1.0, 2.0, 0.5, 1.5])).tolist() == [False, False, True, False]


def test_better_fits_have_higher_odds_and_rivals_share_them() -> None:
    tab, hole = np.repeat(np.arange(8), 8), np.tile(np.arange(8, 16), 8)
    random = np.random.default_rng(0)
    cost = np.where(hole == tab + 8, 0.003, 0.02) * np.exp(0.2 * random.standard_normal(64))
    odds = shape_odds(tab, hole, cost)
    assert odds[hole == tab + 8].min() > odds[hole != tab + 8].max()
    # The same pair at a higher cost, all others being equal, has lower odds.
    dearer = cost.copy()
    dearer[9] *= 3
    assert shape_odds(tab, hole, dearer)[9] < odds[9]
    probable, relative = probabilities(tab, hole, odds)
    assert (probable[hole == tab + 8] > 0.9).all()
    for side in (tab, hole):
        assert (np.bincount(side, probable) <= 1 + 1e-9).all()
    assert relative.max() == pytest.approx(1)
    # Two that fit alike are each less than half probable.
    twins, _ = probabilities(np.array([0, 0]), np.array([2, 3]), np.array([5.0, 5.0]))
    assert twins == pytest.approx([0.5, 0.5], abs=0.02)
