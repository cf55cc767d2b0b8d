"""Pieces are cut out of a photograph straight, at equal size, and can be put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from diffassemble import kinds as solve
from diffassemble.core import Puzzle, turn_pixels
from diffassemble.evaluation.metrics import direct_comparison_free
from diffassemble.squares.photo import cut_scattered

Photograph = Callable[..., Any]


def shrunk(pixels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.interpolate(pixels, (16, 16), mode="bilinear", antialias=True)


def nearest_turns(pieces: torch.Tensor, truth: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The quarter turn that brings each piece closest to its truth, and how far it then is."""
    count = len(pieces)
    turned = [turn_pixels(shrunk(pieces), torch.full((count,), by)) for by in range(4)]
    apart = torch.stack([(one - shrunk(truth)).abs().flatten(1).mean(1) for one in turned])
    return apart.argmin(0), apart.min(0).values


def test_pieces_show_what_was_laid(photograph: Photograph) -> None:
    photo = photograph()
    pieces, squares = cut_scattered(photo.picture)
    assert len(pieces) == len(squares) == 9
    assert 50 <= pieces.size <= 56
    assert nearest_turns(pieces.pixels, photo.puzzle.pixels)[1].max() < 0.05


def test_any_size(photograph: Photograph) -> None:
    photo = photograph()
    pieces, _ = cut_scattered(photo.picture, size=20)
    assert pieces.pixels.shape == (9, 3, 20, 20)
    assert nearest_turns(pieces.pixels, photo.puzzle.pixels)[1].max() < 0.05


def test_the_photo_of_a_puzzle_is_solved(photograph: Photograph) -> None:
    photo = photograph()
    pieces, _ = cut_scattered(photo.picture)
    turns, _ = nearest_turns(pieces.pixels, photo.puzzle.pixels)
    board = photo.puzzle.board
    cells, true_turns = board.snap(photo.puzzle.truth)
    puzzle = Puzzle(pieces, board, photo.puzzle.names)
    answer = board.snap(solve(puzzle).poses)
    assert direct_comparison_free(board, *answer, cells, (turns + true_turns) % 4) == 100
