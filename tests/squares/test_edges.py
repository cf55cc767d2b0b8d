"""Border gradients and learned edges against plain loops, turned pieces, and the truth of photos."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Matches, Puzzle, turn_pixels
from diffassemble.core.board import SIDES
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import (
    TERMS,
    Borders,
    ComparisonConfig,
    EdgeCompatibility,
    EdgeConfig,
    EdgeModel,
    EdgeModelConfig,
    Evidence,
    evidence,
    find_candidates,
    find_matches,
)
from diffassemble.squares.placement import touching_sides


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
    assert torch.equal(scores, scores.T)
    assert len(Evidence(smooth_noise(1, 8)).matches(0.5)) == 0  # a lone piece has no matches


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


def test_true_neighbours_are_the_best_match(border_scores: Callable[[Tensor], Tensor], photo_puzzle: Puzzle) -> None:
    first, second = touching_sides(photo_puzzle.board, *photo_puzzle.board.snap(photo_puzzle.truth))
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


def test_probabilities_are_calibrated(photo_puzzle: Puzzle) -> None:
    board, truth = photo_puzzle.board, photo_puzzle.truth
    matches = find_matches(photo_puzzle)
    touching = set(zip(*(side.tolist() for side in touching_sides(board, *board.snap(truth))), strict=True))
    true = torch.tensor([side_pair(matches, index) in touching for index in range(len(matches))])
    assert (matches.probability[true] > 0.5).float().mean() > 0.85
    assert (matches.probability[~true] < 0.5).float().mean() > 0.98
    # As many neighbours are promised as there are.
    assert matches.probability.sum() == pytest.approx(int(true.sum()), rel=0.1)
    assert true[matches.probability > 0.9].float().mean() > 0.9


# Learned edges.


def random_compatibility(sides: int, seed: int = 0) -> EdgeCompatibility:
    generator = torch.Generator().manual_seed(seed)
    predicted, observed = torch.randn(2, sides, 5, generator=generator)
    return EdgeCompatibility(predicted, observed, torch.tensor(0.5), torch.randn(TERMS, generator=generator) / 10, 0)


def knowing(puzzle: Puzzle) -> EdgeCompatibility:
    """A compatibility of the true neighbours, with all weight in the odds."""
    first, second = touching_sides(puzzle.board, *puzzle.board.snap(puzzle.truth))
    sides = 4 * len(puzzle)
    predicted = torch.zeros(sides, sides)
    predicted[first, second] = 5.0
    odds = torch.zeros(TERMS)
    odds[4] = 1.0
    return EdgeCompatibility(predicted, torch.eye(sides), torch.tensor(2.0), odds, 0)


def test_fits_are_symmetric_and_never_within_a_piece() -> None:
    compatibility = random_compatibility(12)
    fits = compatibility.fits(torch.arange(12))
    torch.testing.assert_close(fits, fits.T)
    piece = torch.arange(12) // 4
    assert (fits[piece[:, None] == piece] < -1000).all()
    torch.testing.assert_close(compatibility.fits(torch.tensor([7, 2])), fits[[7, 2]])


def test_chances_are_the_log_odds_of_either_side(small_puzzle: Puzzle) -> None:
    borders = Borders.of(small_puzzle.pixels)
    compatibility = random_compatibility(len(borders))
    found = find_candidates(borders, compatibility, keep=6)
    fits = compatibility.fits(torch.arange(len(borders)))
    probability = (fits - compatibility.normaliser(fits)[:, None]).exp()
    own = torch.arange(len(borders))[:, None]
    torch.testing.assert_close(found.chance.sigmoid(), probability[own, found.side], atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(found.chance_there.sigmoid(), probability[found.side, own], atol=1e-4, rtol=1e-3)
    assert found.terms().shape == (len(borders), 6, TERMS)


def test_matches_follow_a_perfect_compatibility(small_puzzle: Puzzle) -> None:
    compatibility = knowing(small_puzzle)
    matches = Evidence(small_puzzle.pixels).matches(
        small_puzzle.board.pitch, keep=4, edge_model=lambda pixels, borders: compatibility
    )
    first, _ = touching_sides(small_puzzle.board, *small_puzzle.board.snap(small_puzzle.truth))
    probable = matches[matches.probability > 0.5]
    assert len(probable) == len(first)
    wanted, found = small_puzzle.truth[probable.second] @ probable.pose, small_puzzle.truth[probable.first]
    torch.testing.assert_close(wanted.translation, found.translation, atol=1e-5, rtol=0)


def test_beside_the_probability_evidence_is_that_of_border_gradients(photo_puzzle: Puzzle) -> None:
    borders, compatibility = Borders.of(photo_puzzle.pixels), random_compatibility(4 * len(photo_puzzle))
    every = len(borders) - 4
    found, plain = find_candidates(borders, compatibility, keep=every), borders.best(every)
    given = torch.zeros(len(borders), len(borders), 3).scatter(
        1, plain.side[..., None].expand(-1, -1, 3), evidence(plain)
    )
    wanted = given.gather(1, found.side[..., None].expand(-1, -1, 3))
    channels = found.evidence(compatibility.odds)
    torch.testing.assert_close(channels[..., 2], wanted[..., 2], atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(channels[..., 1], wanted[..., 1], atol=0.1, rtol=0)
    assert torch.equal(channels[..., 0], (found.terms() @ compatibility.odds).sigmoid())


SMALL = EdgeModelConfig(width=16, blocks=1, embedding=4)


def compared(edge_model: EdgeModel, pixels: Tensor) -> EdgeCompatibility:
    return edge_model.compare(pixels, Borders.of(pixels))


@pytest.fixture
def edge_model() -> EdgeModel:
    """Fresh, but with every layer that starts at zero made to matter a little."""
    torch.manual_seed(0)
    network = EdgeModel(SMALL)
    for parameter in network.parameters():
        if parameter.dim() > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.01)
    return network.eval()


def photo(erode: int = 0) -> Puzzle:
    picture = torch.from_numpy(data.astronaut()).movedim(-1, 0).float() / 255
    return cut_picture(picture, Board(6, 6), torch.Generator().manual_seed(0), size=32, erode=erode, turn=False)


def every_side(pixels: Tensor) -> Tensor:
    return torch.arange(4 * len(pixels))


def test_turned_pieces_only_swap_their_sides(edge_model: EdgeModel) -> None:
    pixels = photo().pixels[:5]
    turned = pixels.clone()
    turned[2] = turn_pixels(pixels[2:3], torch.tensor([1]))[0]
    order = every_side(pixels)
    order[8:12] = 8 + (torch.arange(4) + 3) % 4  # what was the top is now on the right
    plain, other = (edge_model(some, 1).fits(every_side(pixels)) for some in (pixels, turned))
    torch.testing.assert_close(other, plain[order][:, order], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("size", [4, 7, 16, 32, 50])
def test_pieces_of_any_size_and_flat_ones(edge_model: EdgeModel, size: int) -> None:
    pixels = torch.rand(3, 3, size, size, generator=torch.Generator().manual_seed(0))
    pixels[1] = 0.4
    pixels[2] = 1.0
    compatibility = compared(edge_model, pixels)
    assert compatibility.fits(every_side(pixels)).isfinite().all()
    assert 0 <= compatibility.gap <= 4


def test_many_pieces_are_compared_in_blocks(edge_model: EdgeModel) -> None:
    pixels = torch.rand(9, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    whole = compared(edge_model, pixels)
    config = ComparisonConfig(pieces_at_once=4, many_sides=8, sampled_sides=6)
    blocks = edge_model.compare(pixels, Borders.of(pixels), config)
    torch.testing.assert_close(blocks.predicted, whole.predicted)
    torch.testing.assert_close(blocks.observed, whole.observed)
    assert blocks.gap == whole.gap


@pytest.mark.parametrize("erode", [0, 2, 3])
def test_worn_pieces_are_recognised(edge_model: EdgeModel, erode: int) -> None:
    chosen = compared(edge_model, photo(erode).pixels)
    assert chosen.gap == (2 if erode else 0)
    assert torch.equal(chosen.odds, edge_model.odds[chosen.gap])
