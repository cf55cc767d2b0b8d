"""Which way is up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.squares import upright as orientation
from diffassemble.squares.cut import tiles
from diffassemble.squares.upright import Upright, UprightConfig, assembled_pixels, turn_to_upright, upright_turn

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


def bright_above(count: int, seed: int) -> Tensor:
    """Pictures that fade from light above to dark below, with noise."""
    generator = torch.Generator().manual_seed(seed)
    fading = torch.linspace(0.8, 0.2, 16)[:, None].expand(count, 3, 16, 16)
    return (fading + 0.1 * torch.randn(count, 3, 16, 16, generator=generator)).clamp(0, 1)


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


def test_learns_which_way_is_up() -> None:
    torch.manual_seed(0)
    model = Upright(SMALL)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(40):
        loss = F.cross_entropy(model(bright_above(16, step)), torch.zeros(16, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    for picture in bright_above(8, 1000):
        for turns in range(4):
            assert upright_turn(model, turned(picture, turns)) == -turns % 4


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
    assert puzzle.truth is not None
    assert untouched.truth is not None
    picture = assembled_pixels(puzzle, *puzzle.board.snap(puzzle.truth))
    assert picture.shape == (3, 16 * shape[0], 16 * shape[1])
    assert torch.equal(picture, assembled_pixels(untouched, *puzzle.board.snap(untouched.truth)))


@pytest.mark.parametrize("by", [1, 2, 3])
def test_turning_the_whole_turns_the_picture(cut: Callable[..., Puzzle], by: int) -> None:
    puzzle = cut(3, 3)
    assert puzzle.truth is not None
    placement = puzzle.board.snap(puzzle.truth)
    picture = assembled_pixels(puzzle, *placement)
    _, *turned = puzzle.board.turned(*placement, by)
    assert torch.equal(assembled_pixels(puzzle, *turned), torch.rot90(picture, -by, (-2, -1)))


def test_empty_cells_are_grey(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(3, 3, missing=0.3)
    assert puzzle.truth is not None
    cells, turns = puzzle.board.snap(puzzle.truth)
    grey = (tiles(assembled_pixels(puzzle, cells, turns), puzzle.board) == 0.5).flatten(1).all(1)
    assert int(grey.sum()) == 3
    assert not grey[cells].any()


def test_turns_that_fit_the_board() -> None:
    assert Board(4, 4).fitting_turns() == (0, 1, 2, 3)
    assert Board(4, 5).fitting_turns() == Board(5, 4).fitting_turns() == (0, 2)


def test_the_network_is_asked_about_the_assembled_picture(
    cut: Callable[..., Puzzle], monkeypatch: pytest.MonkeyPatch
) -> None:
    puzzle = cut(2, 3)
    assert puzzle.truth is not None
    seen: list[Any] = []

    def upright_turn(model: Upright, picture: Tensor, allowed: tuple[int, ...]) -> int:
        seen.append((picture, allowed))
        return allowed[-1]

    monkeypatch.setattr(orientation, "upright_turn", upright_turn)
    assert turn_to_upright(Upright.__new__(Upright), puzzle, puzzle.truth, (0, 2)) == 2
    picture, allowed = seen[0]
    assert torch.equal(picture, assembled_pixels(puzzle, *puzzle.board.snap(puzzle.truth)))
    assert allowed == (0, 2)
