"""Which way is up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.network.upright import Upright, UprightConfig, upright_turn
from diffassemble.squares.cut import cut_picture, tiles
from diffassemble.squares.placement import assembled_pixels, turn_to_upright

SMALL = UprightConfig(side=64, hidden=8)


@pytest.fixture
def model() -> Upright:
    """Any weights of the head will do; these are larger than at the start, so that turns differ clearly."""
    torch.manual_seed(0)
    model = Upright(SMALL).eval()
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def noise(height: int, width: int, count: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(height)
    coarse = torch.rand(count, 3, 5, 7, generator=generator)
    return F.interpolate(coarse, (height, width), mode="bilinear")


def turned(pictures: Tensor, turns: int) -> Tensor:
    return torch.rot90(pictures, -turns, (-2, -1))


@pytest.mark.parametrize("shape", [(64, 64), (33, 33), (48, 30), (8, 240)])
@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_turning_a_picture_shifts_its_logits(model: Upright, shape: tuple[int, int], training: bool) -> None:
    model.train(training)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    pictures = noise(*shape)
    pictures[0, :, :7, :5] = torch.nan
    logits = model(pictures)
    for turns in range(4):
        torch.testing.assert_close(model(turned(pictures, turns)), logits.roll(-turns, 1), rtol=1e-3, atol=1e-3)
    # The promise would be empty if all turns were alike.
    assert (logits - logits.roll(1, 1)).abs().mean() > 1e-2
    flat = model(torch.full((1, 3, 48, 48), 0.5)).softmax(1)
    assert flat == pytest.approx(0.25, abs=1e-4)


@torch.no_grad()
def test_only_allowed_turns_are_given(model: Upright) -> None:
    for picture in noise(20, 30):
        assert upright_turn(model, picture, allowed=(0, 2))[0] in (0, 2)
        assert upright_turn(model, picture, allowed=(3,)) == (3, 1.0)
    for picture in noise(24, 24):
        best, probability = upright_turn(model, picture)
        turn, among_two = upright_turn(model, picture, allowed=((best + 1) % 4, best))
        assert turn == best
        assert 0.25 <= probability <= among_two <= 1


@pytest.mark.parametrize(("shape", "piece"), [((1, 1), 8), ((1, 30), 8), ((30, 1), 16), ((2, 3), 8), ((1, 2), 512)])
@torch.no_grad()
def test_boards_and_pieces_of_any_size(model: Upright, shape: tuple[int, int], piece: int) -> None:
    board = Board(*shape)
    puzzle = cut_picture(noise(shape[0] * piece, shape[1] * piece, 1)[0], board, torch.Generator(), size=piece)
    turn, probability = turn_to_upright(model, puzzle, puzzle.truth, board.fitting_turns())
    assert turn in board.fitting_turns()
    assert 0 <= probability <= 1


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 3)])
def test_the_true_placement_makes_the_picture(cut: Callable[..., Puzzle], shape: tuple[int, int]) -> None:
    puzzle, untouched = cut(*shape), cut(*shape, seed=5)
    picture = assembled_pixels(puzzle, *puzzle.board.snap(puzzle.truth))
    assert picture.shape == (3, 16 * shape[0], 16 * shape[1])
    assert torch.equal(picture, assembled_pixels(untouched, *puzzle.board.snap(untouched.truth)))


def test_empty_cells_are_not_known(cut: Callable[..., Puzzle]) -> None:
    puzzle = cut(3, 3, missing=0.3)
    cells, turns = puzzle.board.snap(puzzle.truth)
    empty = tiles(assembled_pixels(puzzle, cells, turns), puzzle.board).isnan().flatten(1).all(1)
    assert int(empty.sum()) == 3
    assert not empty[cells].any()


def test_weights_are_stored_in_half_precision(model: Upright, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").stat().st_size < 8_000_000
    assert {value.dtype for value in Upright.from_pretrained(tmp_path).parameters()} == {torch.float32}
