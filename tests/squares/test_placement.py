"""Placements: which way is up, one piece a cell, agreement, grids that are not given, pieces that do not belong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, ImagePieces, Locks, Poses, Puzzle, turn_matrix
from diffassemble.core.poses import random_rotations
from diffassemble.network.judge import average
from diffassemble.network.upright import Upright, UprightConfig, upright_turn
from diffassemble.squares.cut import cut_picture, tiles
from diffassemble.squares.placement import (
    assembled_pixels,
    candidate_boards,
    choose_board,
    matching,
    place,
    set_aside,
    turn_to_upright,
)

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


def loose(count: int, seed: int) -> Poses:
    generator = torch.Generator().manual_seed(seed)
    return Poses(torch.randn(count, 2, 2, generator=generator), 2 * torch.rand(count, 2, generator=generator) - 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 5), st.integers(0, 10_000))
def test_placements_are_one_to_one_and_the_best_there_is(rows: int, cols: int, lost: int, seed: int) -> None:
    board = Board(rows, cols)
    count = max(1, board.cells - lost)
    poses = loose(count, seed)
    cells, _ = place(poses, board)
    assert len(cells.unique()) == count
    cost = torch.cdist(poses.translation.double(), board.centres().double()).square()
    pieces = torch.arange(count)
    best = min(float(cost[pieces, list(others)].sum()) for others in permutations(range(board.cells), count))
    assert float(cost[pieces, cells].sum()) == pytest.approx(best)


def test_agreement_is_counted_piece_by_piece() -> None:
    board = Board(2, 3)
    chosen = torch.arange(6), torch.zeros(6, dtype=torch.long)
    swapped = torch.tensor([1, 0, 2, 3, 4, 5]), chosen[1]
    turned = torch.arange(6), torch.tensor([0, 0, 0, 0, 0, 1])
    assert matching(board, chosen, [chosen, swapped, turned]).sum(0).tolist() == [2, 2, 3, 3, 3, 2]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 1000))
def test_agreement_is_blind_to_turns_of_the_whole(rows: int, cols: int, others: int, seed: int) -> None:
    board, generator = Board(rows, cols), torch.Generator().manual_seed(seed)

    def random() -> tuple[torch.Tensor, torch.Tensor]:
        cells = torch.randperm(board.cells, generator=generator)
        return cells, torch.randint(0, 4, (board.cells,), generator=generator)

    chosen = random()
    assert matching(board, chosen, [random() for _ in range(others)]).shape == (others, board.cells)
    for by in (1, 2, 3):
        shape, cells, turns = board.turned(*chosen, by)
        if shape == board:
            assert matching(board, chosen, [(cells, turns)]).all()


@pytest.mark.parametrize(("board", "lost"), [(Board(7, 9), 0), (Board(9, 7), 20), (Board(1, 40), 3), (Board(40, 1), 0)])
def test_large_boards_are_halved(board: Board, lost: int) -> None:
    generator, count = torch.Generator().manual_seed(0), board.cells - lost
    cells = torch.randperm(board.cells, generator=generator)[:count]
    near = board.centres()[cells] + 0.45 * board.pitch * (2 * torch.rand(count, 2, generator=generator) - 1)
    if not lost:  # every piece nearest to a cell of its own
        assert torch.equal(place(Poses(turn_matrix(torch.zeros(count).long()), near), board, exact_cells=6)[0], cells)
    for poses in (Poses(loose(count, 1).rotation, 0.1 * near), loose(count, 2), Poses(loose(count, 3).rotation, near)):
        assert len(place(poses, board, exact_cells=6)[0].unique()) == count


def samples() -> list[Poses]:
    """Three that nearly agree, and one that differs in its last piece."""
    generator = torch.Generator().manual_seed(0)
    rotation, translation = random_rotations(5, generator), torch.randn(5, 3, generator=generator) / 4
    close = [Poses(rotation, translation + 0.01 * i) for i in range(3)]
    stray = translation.clone()
    stray[-1] += 0.5
    return [Poses(rotation, stray), *close]


def test_the_mean_is_the_answer_and_disagreement_lowers_confidence() -> None:
    all_samples = samples()
    mean, sure = average(all_samples)
    wanted = torch.stack([sample.translation for sample in all_samples]).mean(0)
    assert torch.allclose(mean.translation, wanted, atol=1e-6)
    assert torch.allclose(mean.rotation, all_samples[0].rotation, atol=1e-5)
    assert sure[:-1].tolist() == [1.0] * 4
    assert sure[-1] < 0.5


@given(st.integers(2, 2000))
def test_candidates_hold_the_pieces_and_waste_no_row_or_column(count: int) -> None:
    boards = candidate_boards(count)
    assert boards
    for board in boards:
        assert board.rows <= board.cols <= 3 * board.rows
        assert (board.rows - 1) * board.cols < count <= board.cells
        assert board.rows * (board.cols - 1) < count
    full = [board.cells == count for board in boards]
    assert all(full) or not any(full)


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (4, 6), (3, 8), (5, 5)])
@pytest.mark.parametrize("name", ["astronaut", "coffee"])
def test_borders_determine_the_board(
    cut: Callable[..., Puzzle], reading_order: Any, shape: tuple[int, int], name: str
) -> None:
    puzzle = cut(*shape, name=name)
    assert choose_board(puzzle.pieces, reading_order(puzzle), seed=0) == Board(*shape)


@pytest.mark.parametrize(("turn", "board"), [(0, Board(4, 6)), (2, Board(4, 6)), (1, Board(6, 4)), (3, Board(6, 4))])
def test_a_picture_on_its_side_gets_an_upright_board(
    cut: Callable[..., Puzzle], reading_order: Any, turn: int, board: Board
) -> None:
    puzzle = cut(4, 6)

    def upright(given: Puzzle, placed: Poses, allowed: tuple[int, ...]) -> tuple[int, float]:
        assert given.board == Board(4, 6)
        assert allowed == (0, 1, 2, 3)
        return turn, 1.0

    assert choose_board(puzzle.pieces, reading_order(puzzle), 0, upright) == board


def with_foreign(cut: Callable[..., Puzzle], foreign: int) -> Puzzle:
    own, other = cut(4, 4), cut(3, 3, name="chelsea")
    pixels = torch.cat([other.pixels[:foreign], own.pixels])
    names = (*(f"foreign_{number}" for number in range(foreign)), *own.names)
    return Puzzle(ImagePieces(pixels), own.board, names)


@pytest.mark.parametrize("foreign", [1, 4])
def test_foreign_pieces_are_named(cut: Callable[..., Puzzle], foreign: int) -> None:
    chosen = set_aside(with_foreign(cut, foreign))
    assert chosen.extra == tuple(f"foreign_{number}" for number in range(foreign))
    assert len(chosen.puzzle) == 16


def test_what_is_locked_belongs(cut: Callable[..., Puzzle]) -> None:
    puzzle = with_foreign(cut, 1)
    held = torch.arange(17) == 0
    turns = torch.zeros(17, dtype=torch.long)
    locks = Locks(held, puzzle.board.poses(turns, turns))
    assert "foreign_0" not in set_aside(replace(puzzle, locks=locks)).extra
