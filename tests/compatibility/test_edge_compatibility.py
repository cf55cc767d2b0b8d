"""What learned compatibility says of pairs, and how it is weighed with border gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from diffassemble.core import Puzzle
from diffassemble.squares import edge_model
from diffassemble.squares.edge_model import TERMS, EdgeCompatibility, find_candidates, learned_matches
from diffassemble.squares.edges import Borders, Partners, border_scores, evidence, odds_terms


def random_compatibility(sides: int, seed: int = 0) -> EdgeCompatibility:
    generator = torch.Generator().manual_seed(seed)
    predicted, observed = torch.randn(2, sides, 5, generator=generator)
    return EdgeCompatibility(predicted, observed, torch.tensor(0.5), torch.randn(TERMS, generator=generator) / 10, 0)


def knowing(puzzle: Puzzle, true_sides: Callable[..., tuple[Tensor, Tensor]]) -> EdgeCompatibility:
    """A compatibility that knows the true neighbours; only what it says counts."""
    assert puzzle.truth is not None
    first, second = true_sides(puzzle.board, *puzzle.board.snap(puzzle.truth))
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


def test_with_being_alone_they_are_probabilities() -> None:
    compatibility = random_compatibility(12)
    fits = compatibility.fits(torch.arange(12))
    norm = compatibility.normaliser(fits)
    total = (fits - norm[:, None]).exp().sum(1) + (compatibility.alone - norm).exp()
    torch.testing.assert_close(total, torch.ones(12))


def test_candidates_tell_levels_and_leads_as_border_gradients_have_them(photo_puzzle: Puzzle) -> None:
    """With all sides as candidates, the border terms are those of `odds_terms`."""
    borders = Borders.of(photo_puzzle.pixels)
    found = find_candidates(borders, random_compatibility(len(borders)), keep=10_000)
    scores = border_scores(photo_puzzle.pixels)
    best = scores.topk(len(borders) - 4, largest=False)
    place = torch.full((len(borders), len(borders)), -1)
    place.scatter_(1, best.indices, torch.arange(best.indices.shape[1]).expand_as(best.indices))
    known = odds_terms(Partners(best.indices, best.values))
    where = place.gather(1, found.side)
    level, low, high = (known[..., column].gather(1, where) for column in (1, 3, 4))
    torch.testing.assert_close(found.level, level, atol=2e-3, rtol=0)
    torch.testing.assert_close(torch.minimum(found.lead, found.lead_there), low, atol=5e-3, rtol=0)
    torch.testing.assert_close(torch.maximum(found.lead, found.lead_there), high, atol=5e-3, rtol=0)


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


def test_blocks_make_no_difference(small_puzzle: Puzzle, monkeypatch: pytest.MonkeyPatch) -> None:
    borders = Borders.of(small_puzzle.pixels)
    compatibility = random_compatibility(len(borders))
    whole = find_candidates(borders, compatibility, keep=5)
    monkeypatch.setattr(edge_model, "_BLOCK", 1)
    parts = find_candidates(borders, compatibility, keep=5)
    assert torch.equal(whole.side, parts.side)
    torch.testing.assert_close(whole.terms(), parts.terms(), atol=1e-3, rtol=1e-3)


def test_who_knows_the_neighbours_is_believed(
    small_puzzle: Puzzle, true_sides: Callable[..., tuple[Tensor, Tensor]]
) -> None:
    assert small_puzzle.truth is not None
    compatibility = knowing(small_puzzle, true_sides)
    matches = learned_matches(small_puzzle.pixels, small_puzzle.board.pitch, lambda pixels: compatibility, keep=4)
    first, _ = true_sides(small_puzzle.board, *small_puzzle.board.snap(small_puzzle.truth))
    probable = matches[matches.weight > 0.5]
    assert len(probable) == len(first)
    wanted, found = small_puzzle.truth[probable.second] @ probable.relative, small_puzzle.truth[probable.first]
    torch.testing.assert_close(wanted.translation, found.translation, atol=1e-5, rtol=0)


def test_beside_the_probability_evidence_is_that_of_border_gradients(photo_puzzle: Puzzle) -> None:
    borders, compatibility = Borders.of(photo_puzzle.pixels), random_compatibility(4 * len(photo_puzzle))
    every = len(borders) - 4
    found, plain = find_candidates(borders, compatibility, keep=every), borders.best(every)
    told = torch.zeros(len(borders), len(borders), 3).scatter(
        1, plain.side[..., None].expand(-1, -1, 3), evidence(plain)
    )
    wanted = told.gather(1, found.side[..., None].expand(-1, -1, 3))
    channels = found.evidence(compatibility.odds)
    torch.testing.assert_close(channels[..., 2], wanted[..., 2], atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(channels[..., 1], wanted[..., 1], atol=0.1, rtol=0)
    assert torch.equal(channels[..., 0], (found.terms() @ compatibility.odds).sigmoid())


@pytest.mark.parametrize("count", [1, 2])
def test_few_pieces(count: int) -> None:
    pixels = torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    compatibility = random_compatibility(4 * count)
    matches = learned_matches(pixels, 1.0, lambda some: compatibility)
    assert len(matches) == 4 * count * 4 * (count - 1)
    assert matches.weight.isfinite().all()


def test_sure_compatibilities_stay_finite(small_puzzle: Puzzle) -> None:
    compatibility = random_compatibility(4 * len(small_puzzle))
    sure = replace(compatibility, predicted=1000 * compatibility.predicted)
    found = find_candidates(Borders.of(small_puzzle.pixels), sure, keep=8)
    assert found.terms().isfinite().all()
