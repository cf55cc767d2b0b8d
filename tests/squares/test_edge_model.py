"""Learned edge compatibility: what it sees and promises, and how it is weighed with border gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Puzzle, turn_pixels
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import (
    TERMS,
    Borders,
    ComparisonConfig,
    EdgeCompatibility,
    EdgeModel,
    EdgeModelConfig,
    Evidence,
    evidence,
    find_candidates,
)


def random_compatibility(sides: int, seed: int = 0) -> EdgeCompatibility:
    generator = torch.Generator().manual_seed(seed)
    predicted, observed = torch.randn(2, sides, 5, generator=generator)
    return EdgeCompatibility(predicted, observed, torch.tensor(0.5), torch.randn(TERMS, generator=generator) / 10, 0)


def knowing(puzzle: Puzzle, true_sides: Callable[..., tuple[Tensor, Tensor]]) -> EdgeCompatibility:
    """A compatibility of the true neighbours, with all weight in the odds."""
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


def test_matches_follow_a_perfect_compatibility(
    small_puzzle: Puzzle, true_sides: Callable[..., tuple[Tensor, Tensor]]
) -> None:
    compatibility = knowing(small_puzzle, true_sides)
    matches = Evidence(small_puzzle.pixels).matches(
        small_puzzle.board.pitch, keep=4, edge_model=lambda pixels, borders: compatibility
    )
    first, _ = true_sides(small_puzzle.board, *small_puzzle.board.snap(small_puzzle.truth))
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
