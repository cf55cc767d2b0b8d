"""Border gradients against a plain double loop, against turned pieces, and against the truth of photos."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Matches, Puzzle, turn_pixels
from diffassemble.core.board import SIDES
from diffassemble.squares.edges import Borders, EdgeConfig, Evidence, find_matches

TrueSides = Callable[[Board, Tensor, Tensor], tuple[Tensor, Tensor]]


def smooth_noise(count: int, size: int, seed: int = 0) -> Tensor:
    noise = torch.rand(count, 3, size + 4, size + 4, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.avg_pool2d(noise, 5, stride=1)


def plain_lines(piece: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Outermost and second line of a side, (s, 3), clockwise around the piece: right, bottom, left, top."""
    outer, inner = [
        (piece[:, :, -1], piece[:, :, -2]),
        (piece[:, -1, ::-1], piece[:, -2, ::-1]),
        (piece[:, ::-1, 0], piece[:, ::-1, 1]),
        (piece[:, 0, :], piece[:, 1, :]),
    ][side]
    return outer.T, inner.T


def plain_one_way(piece: np.ndarray, side: int, other: np.ndarray, other_side: int) -> float:
    """Gallagher's sum of Mahalanobis distances between predicted and facing pixels, one by one."""
    outer, inner = plain_lines(piece, side)
    facing = plain_lines(other, other_side)[0][::-1]
    gradient = outer - inner
    covariance = np.cov(gradient.T, bias=True) + 2 / 255**2 * np.eye(3)
    away = facing - (outer + gradient.mean(0))
    return float(sum(row @ np.linalg.inv(covariance) @ row for row in away))


def test_scores_are_a_plain_double_loop_of_mahalanobis_distances(border_scores: Callable[[Tensor], Tensor]) -> None:
    pieces, size = smooth_noise(3, 9), 9
    scores = border_scores(pieces)
    plain = pieces.double().numpy()
    for first in range(3 * SIDES):
        for second in range(3 * SIDES):
            (i, a), (j, b) = divmod(first, SIDES), divmod(second, SIDES)
            if i == j:
                assert scores[first, second] == torch.inf
                continue
            both = plain_one_way(plain[i], a, plain[j], b) + plain_one_way(plain[j], b, plain[i], a)
            assert scores[first, second].item() == pytest.approx(both / (6 * size), rel=1e-4)


@pytest.mark.parametrize("block", [1, 150, 10**6])
def test_the_best_partners_are_the_same_whatever_the_blocks(
    border_scores: Callable[[Tensor], Tensor], block: int, photo_puzzle: Puzzle
) -> None:
    pixels = photo_puzzle.pieces.pixels
    partners = Borders.of(pixels).best(6, EdgeConfig(block=block))
    expected = border_scores(pixels).topk(6, largest=False)
    torch.testing.assert_close(partners.score, expected.values, rtol=1e-6, atol=1e-6)
    assert torch.equal(partners.side, expected.indices)


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_turning_a_piece_only_permutes_its_sides(border_scores: Callable[[Tensor], Tensor], turn: int) -> None:
    pieces = smooth_noise(4, 10)
    turned = turn_pixels(pieces, torch.tensor([0, 0, turn, 0]))
    moved = torch.arange(4 * SIDES).view(4, SIDES)
    moved[2] = moved[2].roll(-turn)  # what was side a is now side a + turn
    old, new = border_scores(pieces), border_scores(turned)
    torch.testing.assert_close(new[moved.flatten()][:, moved.flatten()], old, rtol=1e-4, atol=1e-5)


def test_true_neighbours_are_the_best_match(
    border_scores: Callable[[Tensor], Tensor], photo_puzzle: Puzzle, true_sides: TrueSides
) -> None:
    first, second = true_sides(photo_puzzle.board, *photo_puzzle.board.snap(photo_puzzle.truth))
    scores = border_scores(photo_puzzle.pieces.pixels)
    assert len(first) == 2 * 2 * 6 * 5
    assert (scores[first].argmin(1) == second).float().mean() > 0.93
    # Calibrated: near 1 for true neighbours, several times that for the rest.
    assert 0.3 < scores[first, second].median() < 3
    assert scores[scores.isfinite()].median() > 5


def side_pair(matches: Matches, index: int) -> tuple[int, int]:
    a, b = divmod(int(matches.slot[index]), SIDES)
    return SIDES * int(matches.first[index]) + a, SIDES * int(matches.second[index]) + b


@pytest.mark.parametrize("kind", ["photo", "noise", "flat", "half flat", "twins", "two", "black and white"])
def test_evidence_is_a_share(kind: str, small_puzzle: Puzzle) -> None:
    half_flat = torch.cat([smooth_noise(5, 8), torch.full((5, 3, 8, 8), 0.7)])
    pieces = {
        "photo": small_puzzle.pieces.pixels,
        "noise": torch.rand(12, 3, 8, 8, generator=torch.Generator().manual_seed(0)),
        "flat": torch.full((6, 3, 8, 8), 0.3),
        "half flat": half_flat,
        "twins": smooth_noise(3, 8).repeat(2, 1, 1, 1),
        "two": smooth_noise(2, 8),
        "black and white": torch.tensor([0.0, 1.0, 0.0, 1.0]).view(4, 1, 1, 1).expand(4, 3, 8, 8),
    }[kind]
    matches = Evidence(pieces).matches(0.5)
    assert matches.evidence.shape == (len(matches), 3)
    assert len(matches) == SIDES * len(pieces) * min(8, SIDES * (len(pieces) - 1))
    assert matches.evidence.isfinite().all()
    assert matches.evidence.min() >= 0
    assert matches.evidence.max() <= 1 + 1e-6
    assert (matches.first != matches.second).all()


def test_the_best_of_both_sides_has_full_rank_and_the_rest_less(
    border_scores: Callable[[Tensor], Tensor], small_puzzle: Puzzle
) -> None:
    matches = find_matches(small_puzzle)
    best = border_scores(small_puzzle.pieces.pixels).argmin(1)
    for index, rank in enumerate(matches.evidence[:, 1].tolist()):
        first, second = side_pair(matches, index)
        mutual = best[first] == second and best[second] == first
        assert rank == pytest.approx(1, abs=1e-5) if mutual else rank < 1


def test_probabilities_are_calibrated(photo_puzzle: Puzzle, true_sides: TrueSides) -> None:
    board, truth = photo_puzzle.board, photo_puzzle.truth
    matches = find_matches(photo_puzzle)
    touching = set(zip(*(side.tolist() for side in true_sides(board, *board.snap(truth))), strict=True))
    true = torch.tensor([side_pair(matches, index) in touching for index in range(len(matches))])
    assert (matches.probability[true] > 0.5).float().mean() > 0.85
    assert (matches.probability[~true] < 0.5).float().mean() > 0.98
    # As many neighbours are promised as there are.
    assert matches.probability.sum() == pytest.approx(int(true.sum()), rel=0.1)
    assert true[matches.probability > 0.9].float().mean() > 0.9
