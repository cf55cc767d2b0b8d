"""Free outlines cut by code: matches, contacts and growth against the truth."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from scipy.ndimage import zoom

from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import Locks, Matches, OutlinePieces, Poses, Puzzle
from diffassemble.core.thresholds import SURE
from diffassemble.outlines.arcs import match_arcs
from diffassemble.outlines.contact import FEATURES, describe, overlap, refine
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.growth import grow_free
from diffassemble.outlines.rims import Rims, rims_of


def painted(seed: int, size: int = 330) -> torch.Tensor:
    """A picture of smooth colours."""
    random = np.random.default_rng(seed)
    planes = [zoom(random.random((9, 9)), size / 9, order=1)[:size, :size] for _ in range(3)]
    return torch.from_numpy(np.stack(planes).clip(0, 1)).float()


def shards(seed: int, pieces: int = 9, erode: int = 1) -> Puzzle:
    return cut_shapes(painted(seed), "shards", pieces, torch.Generator().manual_seed(seed), size=100, erode=erode)


@pytest.fixture(scope="module")
def puzzle() -> Puzzle:
    return shards(3)


@pytest.fixture(scope="module")
def matches(puzzle: Puzzle) -> Matches:
    return match_arcs(puzzle.outlines)


def true_relative(puzzle: Puzzle, first: int, second: int) -> Poses:
    assert puzzle.truth is not None
    return puzzle.truth[[second]].inverse() @ puzzle.truth[[first]]


def as_row(relative: Poses, scale: float) -> np.ndarray:
    turn, shift = relative.rotation[0], relative.translation[0] * scale
    return np.array([[turn[0, 0], turn[1, 0], shift[0], shift[1]]], np.float32)


def contact_at(rims: Rims, first: int, second: int, pose: np.ndarray) -> np.ndarray:
    numbers, arcs = np.zeros((1, FEATURES), np.float32), np.zeros((1, 2), np.int64)
    describe(rims, first, second, pose, numbers, arcs)
    return numbers[0]


@cache
def rims_once(pieces: OutlinePieces) -> Rims:
    return rims_of(pieces)


def neighbours(puzzle: Puzzle) -> list[tuple[int, int]]:
    """Pairs that share at least a third of a piece's size of rim."""
    rims, found = rims_once(puzzle.outlines), []
    for first in range(len(puzzle)):
        for second in range(first + 1, len(puzzle)):
            pose = as_row(true_relative(puzzle, first, second), rims.scale)
            if contact_at(rims, first, second, pose)[0] > 0.33:
                found.append((first, second))
    return found


def test_refinement_returns_to_a_true_contact_and_leaves_it_there(puzzle: Puzzle) -> None:
    rims = rims_once(puzzle.outlines)
    first, second = neighbours(puzzle)[0]
    truth = as_row(true_relative(puzzle, first, second), rims.scale)
    moved = truth + np.array([[0, 0, 3, -2]], np.float32)
    refine(rims, first, second, moved, 20, 12.0)
    assert np.abs(moved - truth)[:, 2:].max() < 2.5
    settled = moved.copy()
    refine(rims, first, second, settled, 20, 12.0)
    assert np.abs(settled - moved)[:, 2:].max() < 0.3


def test_pieces_share_area_only_where_they_collide(puzzle: Puzzle) -> None:
    rims = rims_once(puzzle.outlines)
    area = puzzle.outlines.areas[0] * rims.scale**2
    on_itself = overlap(rims, 0, 0, np.array([1, 0, 0, 0], np.float32))
    assert on_itself == pytest.approx(float(area), rel=0.1)
    first, second = neighbours(puzzle)[0]
    true = overlap(rims, first, second, as_row(true_relative(puzzle, first, second), rims.scale)[0])
    assert true < 0.02 * area


def test_features_are_the_same_from_either_side(puzzle: Puzzle) -> None:
    rims = rims_once(puzzle.outlines)
    first, second = neighbours(puzzle)[0]
    there = contact_at(rims, first, second, as_row(true_relative(puzzle, first, second), rims.scale))
    back = contact_at(rims, second, first, as_row(true_relative(puzzle, second, first), rims.scale))
    lengths_gaps_and_colours = [0, 2, 5, 6, 7, 11, 16, 17]
    assert np.allclose(there[lengths_gaps_and_colours], back[lengths_gaps_and_colours], atol=0.05, rtol=0.05)


def test_most_neighbours_are_matched_and_confident_matches_are_true(puzzle: Puzzle, matches: Matches) -> None:
    assert bool((matches.evidence >= 0).all())
    assert bool((matches.evidence <= 1).all())
    assert puzzle.truth is not None
    true = puzzle.truth[matches.second].inverse() @ puzzle.truth[matches.first]
    apart = (true.translation - matches.pose.translation).norm(dim=1)
    right = (apart < 10) & ((true.rotation * matches.pose.rotation).sum((1, 2)) / 2 > 0.99)
    found = {(int(a), int(b)) for a, b in zip(matches.first[right], matches.second[right], strict=True)}
    wanted = neighbours(puzzle)
    assert len(found & set(wanted)) >= 0.8 * len(wanted)
    sure = matches.probability >= SURE
    assert int(sure.sum()) >= 4
    assert bool(right[sure].all())


def test_shards_are_put_together(puzzle: Puzzle, matches: Matches) -> None:
    grown = grow_free(puzzle.outlines, matches)
    assert puzzle.truth is not None
    right = right_outlines(puzzle.outlines, grown.poses, puzzle.truth)
    assert int(right.sum()) >= len(puzzle) - 1
    assert bool(right[grown.confidence >= SURE].all())
    assert len(grown.notes) == len(puzzle)


def test_locked_pieces_stay_and_the_others_join_them(puzzle: Puzzle, matches: Matches) -> None:
    assert puzzle.truth is not None
    held = torch.zeros(len(puzzle), dtype=torch.bool)
    held[[0, 5]] = True
    moved = Poses(torch.tensor([[0.0, -1], [1, 0]]).repeat(len(puzzle), 1, 1), torch.full((len(puzzle), 2), 77.0))
    where = moved @ puzzle.truth
    grown = grow_free(puzzle.outlines, matches, Locks(held, where))
    assert torch.allclose(grown.poses.translation[held], where.translation[held], atol=1e-2)
    apart = (grown.poses.translation - where.translation).norm(dim=1)
    assert int((apart < 25).sum()) >= len(puzzle) - 2


def test_pieces_of_two_pictures_become_two_objects_or_are_unplaced(puzzle: Puzzle) -> None:
    other = shards(8, 6)
    both = OutlinePieces(
        puzzle.outlines.textures + other.outlines.textures,
        puzzle.outlines.contours + other.outlines.contours,
        torch.cat([puzzle.outlines.origins, other.outlines.origins]),
    )
    grown = grow_free(both, match_arcs(both), several=True)
    sure = grown.confidence >= SURE
    own = torch.arange(len(both)) < len(puzzle)
    for whole in grown.objects[sure].unique():
        assert len(own[sure & (grown.objects == whole)].unique()) == 1


def test_one_piece_is_an_answer() -> None:
    alone = shards(3).outlines[torch.tensor([0])]
    grown = grow_free(alone, match_arcs(alone))
    assert grown.objects.tolist() == [0]
    assert grown.poses.translation.isfinite().all()


def test_straight_frame_edges_alone_are_no_match() -> None:
    white = torch.full((4, 60, 90), 255, dtype=torch.uint8)
    from diffassemble.core.contours import outline_pieces

    found = match_arcs(outline_pieces([white, white.clone(), white.clone()], coloured=False))
    assert bool((found.probability < 0.5).all())
