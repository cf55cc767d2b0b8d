"""Tabs and holes: fits, odds, and matches that the truth confirms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from diffassemble.core import Matches, OutlinePieces, Puzzle
from diffassemble.outlines.side_fit import ANGLE, ERROR, GAP, SHIFT_X, SHIFT_Y, fit_sides
from diffassemble.outlines.side_odds import mutual_best, probabilities, shape_evidence
from diffassemble.outlines.sides import find_sides
from diffassemble.outlines.tabs import match_tabs


def is_true(puzzle: Puzzle, matches: Matches) -> torch.Tensor:
    """Whether pieces truly lie to each other as a match says, within a twentieth of a piece."""
    truth = puzzle.truth
    assert truth is not None
    wanted = truth[matches.second].inverse() @ truth[matches.first]
    apart = (wanted.translation - matches.pose.translation).norm(dim=1)
    turned = (wanted.rotation - matches.pose.rotation).abs().amax((1, 2))
    return (apart < 0.05 * find_sides(puzzle.outlines).length) & (turned < 0.05)


def curve() -> np.ndarray:
    """A side with a tab, to the right."""
    t = np.linspace(0, 1, 128)
    return np.stack([t, 0.25 * np.exp(-(((t - 0.45) / 0.12) ** 2)) + 0.02 * np.sin(7 * t)], 1)


@pytest.mark.parametrize("gap", [0.0, 0.002])
def test_a_fit_finds_the_motion_and_the_gap(gap: float) -> None:
    hole, angle = curve(), 0.7
    # The same curve beside itself, then in another frame.
    along = np.gradient(hole, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    tab = hole + gap * np.stack([-along[:, 1], along[:, 0]], 1)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shift = np.array([0.3, -1.2])
    tab = (tab - shift) @ turn
    fits = np.zeros((1, 5))
    fit_sides(np.ascontiguousarray(tab)[None], hole[None], np.zeros((1, 2), int), 0.006, fits)
    assert fits[0, ANGLE] == pytest.approx(angle, abs=2e-3 + gap)
    assert fits[0, [SHIFT_X, SHIFT_Y]] == pytest.approx(shift, abs=3e-3 + gap)
    assert fits[0, ERROR] < 1e-3 + gap
    # Part of the gap is taken up by a shift across the side.
    assert -1e-4 <= fits[0, GAP] <= gap + 1e-4


def test_the_best_partner_of_every_side_is_the_true_one(jigsaw: Puzzle) -> None:
    matches = match_tabs(jigsaw.outlines)
    true = is_true(jigsaw, matches)
    # 31 seams, each told in both directions.
    assert int(true.sum()) == 62
    assert bool((matches.probability[true] > 0.5).all())
    assert bool((matches.probability[~true] < 0.2).all())
    assert bool(((matches.evidence >= 0) & (matches.evidence <= 1)).all())


def test_shapes_alone_tell(jigsaw: Puzzle) -> None:
    pieces = replace(jigsaw.outlines, coloured=False)
    matches = match_tabs(pieces)
    true = is_true(jigsaw, matches)
    assert int(true.sum()) == 62
    assert bool((matches.probability[true] > matches.probability[~true].max()).all())


def test_a_match_and_its_reverse_say_the_same(jigsaw: Puzzle) -> None:
    matches = match_tabs(jigsaw.outlines)
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
    pieces: OutlinePieces = replace(jigsaw.outlines, contours=tuple(moved), coloured=False)
    matches = match_tabs(pieces)
    true = is_true(jigsaw, matches)
    best = matches.evidence[:, 1] > 0.999
    assert int((true & best).sum()) >= 60


def test_mutual_best_pairs_are_the_cheapest_of_both() -> None:
    tab, hole = np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])
    assert mutual_best(tab, hole, np.array([1.0, 2.0, 3.0, 1.5])).tolist() == [True, False, False, True]
    assert mutual_best(tab, hole, np.array([1.0, 2.0, 0.5, 1.5])).tolist() == [False, False, True, False]


def test_what_fits_better_is_worth_more_and_rivals_share() -> None:
    tab, hole = np.repeat(np.arange(8), 8), np.tile(np.arange(8, 16), 8)
    random = np.random.default_rng(0)
    cost = np.where(hole == tab + 8, 0.003, 0.02) * np.exp(0.2 * random.standard_normal(64))
    odds = shape_evidence(tab, hole, cost)
    assert odds[hole == tab + 8].min() > odds[hole != tab + 8].max()
    # The same pair at a higher cost, all others being equal, is worth less.
    dearer = cost.copy()
    dearer[9] *= 3
    assert shape_evidence(tab, hole, dearer)[9] < odds[9]
    probable, relative = probabilities(tab, hole, odds)
    assert (probable[hole == tab + 8] > 0.9).all()
    for side in (tab, hole):
        assert (np.bincount(side, probable) <= 1 + 1e-9).all()
    assert relative.max() == pytest.approx(1)
    # Two that fit alike are each less than half probable.
    twins, _ = probabilities(np.array([0, 0]), np.array([2, 3]), np.array([5.0, 5.0]))
    assert twins == pytest.approx([0.5, 0.5], abs=0.02)
