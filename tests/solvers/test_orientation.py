"""The assembled picture, and by how much it must be turned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.squares import upright as orientation
from diffassemble.squares.cut import tiles
from diffassemble.squares.upright import Upright, assembled_pixels, turn_to_upright


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
