"""Which way is up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from diffassemble.core import Puzzle
from diffassemble.squares.cut import tiles
from diffassemble.squares.upright import Upright, UprightConfig, assembled_pixels, upright_turn

SMALL = UprightConfig(size=16, stem=8, widths=(16, 16), dropout=0.0)


@pytest.fixture
def model() -> Upright:
    """Any weights will do; these are larger than at the start, so that turns differ clearly."""
    torch.manual_seed(0)
    model = Upright(SMALL).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def noise(height: int, width: int) -> Tensor:
    return torch.rand(3, 3, height, width, generator=torch.Generator().manual_seed(height))


def turned(pictures: Tensor, turns: int) -> Tensor:
    return torch.rot90(pictures, -turns, (-2, -1))


@pytest.mark.parametrize("shape", [(16, 16), (64, 64), (33, 33), (48, 30)])
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_turning_a_picture_shifts_its_logits(model: Upright, shape: tuple[int, int], training: bool) -> None:
    model.train(training)
    pictures = noise(*shape)
    logits = model(pictures)
    for turns in range(4):
        torch.testing.assert_close(model(turned(pictures, turns)), logits.roll(-turns, 1), rtol=1e-5, atol=1e-5)
    # The promise would be empty if all turns were alike.
    assert (logits - logits.roll(1, 1)).abs().mean() > 1e-3


@torch.no_grad()
def test_a_mirror_image_needs_the_opposite_turn(model: Upright) -> None:
    for picture in noise(24, 24):
        assert upright_turn(model, picture.flip(-1)) == -upright_turn(model, picture) % 4


@torch.no_grad()
def test_only_allowed_turns_are_given(model: Upright) -> None:
    for picture in noise(20, 30):
        assert upright_turn(model, picture, allowed=(0, 2)) in (0, 2)
        assert upright_turn(model, picture, allowed=(3,)) == 3
    for picture in noise(24, 24):
        best = upright_turn(model, picture)
        assert upright_turn(model, picture, allowed=((best + 1) % 4, best)) == best


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 3)])
def test_the_true_placement_makes_the_picture(cut: Callable[..., Puzzle], shape: tuple[int, int]) -> None:
    puzzle, untouched = cut(*shape), cut(*shape, seed=5)
    picture = assembled_pixels(puzzle, *puzzle.board.snap(puzzle.truth))
    assert picture.shape == (3, 16 * shape[0], 16 * shape[1])
    assert torch.equal(picture, assembled_pixels(untouched, *puzzle.board.snap(untouched.truth)))


@pytest.mark.parametrize("by", [1, 2, 3])
def test_turning_the_whole_turns_the_picture(cut: Callable[..., Puzzle], by: int) -> None:
    puzzle = cut(3, 3)
    placement = puzzle.board.snap(puzzle.truth)
    picture = assembled_pixels(puzzle, *placement)
    _, *turned = puzzle.board.turned(*placement, by)
    assert torch.equal(assembled_pixels(puzzle, *turned), torch.rot90(picture, -by, (-2, -1)))


def test_empty_cells_are_grey(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(3, 3, missing=0.3)
    cells, turns = puzzle.board.snap(puzzle.truth)
    grey = (tiles(assembled_pixels(puzzle, cells, turns), puzzle.board) == 0.5).flatten(1).all(1)
    assert int(grey.sum()) == 3
    assert not grey[cells].any()
