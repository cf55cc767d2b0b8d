"""Learned edge compatibility: what it sees, what it promises before it has learnt anything, and its weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Puzzle, turn_pixels
from diffassemble.squares import edge_model as module
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edge_model import EdgeCompatibility, EdgeModel, EdgeModelConfig, side_strips

SMALL = EdgeModelConfig(width=16, blocks=1, embedding=4)


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


def share_right(puzzle: Puzzle, compatibility: EdgeCompatibility) -> float:
    """How many right sides rank the left side of the piece beside them first; pieces are not turned."""
    assert puzzle.truth is not None
    cells, _ = puzzle.board.snap(puzzle.truth)
    piece = cells.argsort()
    inner = torch.tensor([cell for cell in range(36) if cell % 6 < 5])
    best = compatibility.fits(4 * piece[inner]).argmax(1)
    return float((best == 4 * piece[inner + 1] + 2).float().mean())


def every_side(pixels: Tensor) -> Tensor:
    return torch.arange(4 * len(pixels))


def test_strips_begin_outside_and_run_clockwise() -> None:
    pixels = torch.arange(36.0).view(1, 1, 6, 6).expand(1, 3, -1, -1) / 36
    config = EdgeModelConfig(depth=2, length=6)
    right, bottom, left, top = (36 * side_strips(pixels, config)[:, 0]).round().int().tolist()
    assert right == [[5, 11, 17, 23, 29, 35], [4, 10, 16, 22, 28, 34]]
    assert bottom[0] == [35, 34, 33, 32, 31, 30]
    assert left[0] == [30, 24, 18, 12, 6, 0]
    assert top[0] == [0, 1, 2, 3, 4, 5]


def test_turned_pieces_only_swap_their_sides(edge_model: EdgeModel) -> None:
    pixels = photo().pixels[:5]
    turned = pixels.clone()
    turned[2] = turn_pixels(pixels[2:3], torch.tensor([1]))[0]
    order = every_side(pixels)
    order[8:12] = 8 + (torch.arange(4) + 3) % 4  # what was the top is now on the right
    plain, other = (edge_model(some, 1).fits(every_side(pixels)) for some in (pixels, turned))
    torch.testing.assert_close(other, plain[order][:, order], atol=1e-3, rtol=1e-3)


def test_the_order_of_pieces_makes_no_difference(edge_model: EdgeModel) -> None:
    pixels = photo().pixels[:6]
    order = torch.tensor([3, 0, 5, 1, 2, 4])
    sides = (4 * order[:, None] + torch.arange(4)).flatten()
    plain, other = (edge_model(some, 2).fits(every_side(pixels)) for some in (pixels, pixels[order]))
    torch.testing.assert_close(other, plain[sides][:, sides], atol=1e-3, rtol=1e-3)


def test_even_untaught_it_prefers_true_neighbours() -> None:
    torch.manual_seed(0)
    assert share_right(photo(), EdgeModel(SMALL)(photo().pixels, 0)) > 0.5


def test_the_product_is_a_log_likelihood(edge_model: EdgeModel) -> None:
    """A side that shows just what another predicts fits it better than the same with any change."""
    strips = torch.rand(8, 3, 8, 32, generator=torch.Generator().manual_seed(0)) - 0.5
    contrast = torch.full((8, 3, 1, 1), 0.3)
    predicted, observed = edge_model._continuation(strips, contrast, torch.rand(8, 16, 16))
    half = (predicted.shape[1] - 1) // 2
    mean = -predicted[:, half:-1] / (2 * predicted[:, :half])

    def likelihood(facing: Tensor) -> Tensor:
        return (predicted * torch.cat([facing.square(), facing, observed[:, -1:]], 1)).sum(1)

    best = likelihood(mean)
    assert (best > likelihood(mean + 0.05)).all()
    assert (best >= (predicted * observed).sum(1)).all()


@pytest.mark.parametrize("size", [4, 7, 16, 32, 50])
def test_pieces_of_any_size_and_flat_ones(edge_model: EdgeModel, size: int) -> None:
    pixels = torch.rand(3, 3, size, size, generator=torch.Generator().manual_seed(0))
    pixels[1] = 0.4
    pixels[2] = 1.0
    compatibility = edge_model.compare(pixels)
    assert compatibility.fits(every_side(pixels)).isfinite().all()
    assert 0 <= compatibility.gap <= 4


def test_many_pieces_are_compared_in_blocks(edge_model: EdgeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = torch.rand(9, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    whole = edge_model.compare(pixels)
    for name, value in (("_TOGETHER", 4), ("_TYPICAL", 8), ("_SEEN", 6)):
        monkeypatch.setattr(module, name, value)
    blocks = edge_model.compare(pixels)
    torch.testing.assert_close(blocks.predicted, whole.predicted)
    torch.testing.assert_close(blocks.observed, whole.observed)
    assert blocks.gap == whole.gap


def test_a_lone_piece(edge_model: EdgeModel) -> None:
    assert edge_model.compare(photo().pixels[:1]).gap in range(5)


@pytest.mark.parametrize("erode", [0, 2, 3])
def test_worn_pieces_are_recognised(edge_model: EdgeModel, erode: int) -> None:
    chosen = edge_model.compare(photo(erode).pixels)
    assert chosen.gap == (2 if erode else 0)
    assert torch.equal(chosen.odds, edge_model.odds[chosen.gap])


def test_weights_come_back_with_the_odds(edge_model: EdgeModel, tmp_path: Path) -> None:
    edge_model.odds.copy_(torch.rand(edge_model.odds.shape, generator=torch.Generator().manual_seed(0)))
    edge_model.save_pretrained(tmp_path)
    again = EdgeModel.from_pretrained(tmp_path)
    assert again.config == SMALL
    assert torch.equal(again.odds, edge_model.odds)
    pixels = photo().pixels[:4]
    torch.testing.assert_close(again.compare(pixels).predicted, edge_model.compare(pixels).predicted)
