"""Sure is only what is right: of a piece, of the part that holds together with it, and of where the whole lies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from diffassemble.core import Board, ImagePieces, Puzzle
from diffassemble.squares.edge_model import Evidence
from diffassemble.squares.energy import DEFAULT, Energy, border_confidence

Cut = Callable[..., Puzzle]


def energy_of(puzzle: Puzzle, listed: bool = False) -> Energy:
    matches = Evidence(puzzle.pixels).matches(puzzle.board.pitch, DEFAULT.matches)
    return Energy.of_borders(matches, puzzle, listed)


def test_pieces_in_their_places_are_sure_and_one_that_is_turned_is_not(cut: Cut) -> None:
    puzzle = cut(5, 5, name="coffee")
    cells, turns = puzzle.board.snap(puzzle.truth)
    assert (border_confidence(puzzle, (cells, turns)) > 0.9).float().mean() > 0.9
    one = int(cells.argmax())
    turns[one] = (turns[one] + 1) % 4
    assert border_confidence(puzzle, (cells, turns))[one] < 0.1


@pytest.mark.parametrize("listed", [False, True])
def test_halves_that_change_places_are_not_sure(cut: Cut, listed: bool) -> None:
    # Inside each half everything fits, so no piece by itself would be better elsewhere.
    puzzle = cut(4, 6, name="coffee")
    cells, turns = puzzle.board.snap(puzzle.truth)
    row, col = cells // 6, cells % 6
    energy = energy_of(puzzle, listed)
    state = energy.state(6 * row + (col + 3) % 6, turns)
    assert (torch.from_numpy(energy.margins(state)).sigmoid() > 0.9).float().mean() > 0.5
    assert energy.answer(state)[1].max() < 0.9
    assert len(set(energy.groups(state).tolist())) > 1


def test_what_could_be_shifted_as_a_whole_is_not_sure(cut: Cut) -> None:
    puzzle = cut(4, 4, name="coffee")
    cells, turns = puzzle.board.snap(puzzle.truth)
    wider = Puzzle(puzzle.pieces, Board(4, 5), puzzle.names)
    placement = 5 * (cells // 4) + cells % 4, turns
    assert border_confidence(wider, placement).max() < 0.5
    assert border_confidence(puzzle, (cells, turns)).max() > 0.9


def test_parts_hold_together_where_all_that_meets_speaks_for_it(cut: Cut) -> None:
    puzzle = cut(4, 5, name="coffee")
    energy = energy_of(puzzle)
    state = energy.state(*puzzle.board.snap(puzzle.truth))
    assert len(set(energy.groups(state).tolist())) == 1
    shuffled = energy.state(torch.arange(20), torch.zeros(20, dtype=torch.long))
    groups = energy.groups(shuffled)
    assert len(set(groups.tolist())) > 10
    assert (groups[groups] == groups).all()


@pytest.mark.parametrize("count", [1, 2])
def test_pieces_without_neighbours_are_not_sure(count: int) -> None:
    pixels = torch.rand(count, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    cells = torch.tensor([0, 8])[:count]
    puzzle = Puzzle(ImagePieces(pixels), Board(3, 3), tuple(map(str, range(count))))
    assert border_confidence(puzzle, (cells, torch.zeros_like(cells))).max() < 0.5
