"""Energies are log odds, highest at the truth; the search never loses energy; confidence follows from margins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest
import torch

from diffassemble.core import Board, ImagePieces, Locks, Puzzle
from diffassemble.squares.edges import Evidence, find_matches
from diffassemble.squares.energy import (
    DEFAULT,
    Energy,
    border_confidence,
    pair_terms,
    place_lists,
    place_terms,
)
from diffassemble.squares.placement import touching_sides
from diffassemble.squares.search import NOWHERE, SearchConfig, Terms, energy, margins, search

Cut = Callable[..., Puzzle]
UNLISTED = -DEFAULT.strongest
NUMBERS = astuple(SearchConfig())


def test_pair_terms_are_the_log_odds_of_the_listed_pairs_and_lowest_for_others(cut: Cut) -> None:
    puzzle = cut(4, 5)
    matches = find_matches(puzzle, keep=6)
    gains = pair_terms(matches, len(puzzle))
    assert torch.equal(gains, gains.T)
    assert gains.abs().max() <= DEFAULT.strongest
    own, other = 4 * matches.first + matches.slot // 4, 4 * matches.second + matches.slot % 4
    torch.testing.assert_close(
        gains[own, other].sigmoid(), matches.probability.clamp(0.00248, 0.99752), rtol=0, atol=1e-4
    )
    listed = torch.zeros_like(gains, dtype=torch.bool)
    listed[own, other] = listed[other, own] = True
    assert (gains[~listed] == -DEFAULT.strongest).all()


def test_place_terms_are_bounded_log_odds_above_chance_and_locks_outweigh_them() -> None:
    board = Board(2, 3)
    chances = torch.full((3, 6, 4), 1 / 24).log()
    assert not place_terms(chances, 3, board).abs().gt(1e-5).any()
    chances[0, 4, 1], chances[1, 2, 3], chances[2, 0, 0] = 0.0, -50.0, math.log(1 / 12)
    terms = place_terms(chances, 3, board, trust=2.0)
    assert terms[0, 1, 4] == pytest.approx(2 * math.log(24), abs=1e-4)
    assert terms[1, 3, 2] == pytest.approx(-6.0)
    assert terms[2, 0, 0] == pytest.approx(2 * math.log(2), abs=1e-4)
    locks = Locks(torch.tensor([False, False, True]), board.poses(torch.tensor([0, 0, 5]), torch.tensor([0, 0, 2])))
    assert place_terms(chances, 3, board, locks)[2, 2, 5] > 1000
    cells, turns, term = place_lists(3, board, locks)
    assert (cells.tolist(), int(turns[2]), float(term[0])) == ([-1, -1, 5], 2, 0.0)
    assert term[2] > 1000


BOARDS = [(Board(3, 4), 12), (Board(3, 4), 7), (Board(1, 5), 4), (Board(4, 1), 4), (Board(1, 1), 1)]
NO_PAIRS = np.zeros((0, 2), np.int64)


def dense(pairs: np.ndarray, places: np.ndarray) -> Terms:
    whole, real = np.zeros(0, np.int64), np.zeros(0, np.float32)
    return Terms(pairs, places, whole, whole, real, whole, whole, real, UNLISTED)


def listed(starts: np.ndarray, partner: np.ndarray, term: np.ndarray, *places: np.ndarray) -> Terms:
    return Terms(
        np.zeros((0, 0), np.float32), np.zeros((0, 0, 4), np.float32), starts, partner, term, *places, UNLISTED
    )


def random_terms(form: str, count: int, cells: int, share: float = 0.3, seed: int = 0) -> Terms:
    """Random terms, dense or listed, of which a share counts more than what is unlisted."""
    random = np.random.default_rng(seed)
    pairs = np.triu(random.normal(size=(4 * count, 4 * count))).astype(np.float32)
    chosen = np.triu(random.random(pairs.shape) < share)
    pairs = np.where(chosen | chosen.T, pairs + np.triu(pairs, 1).T, np.float32(UNLISTED))
    home, turn = random.integers(-1, cells, count), random.integers(0, 4, count)
    term = random.random(count).astype(np.float32)
    if form == "listed":
        rows, partner = np.nonzero(pairs != UNLISTED)
        return listed(np.searchsorted(rows, np.arange(4 * count + 1)), partner, pairs[rows, partner], home, turn, term)
    places = np.zeros((cells, count, 4), np.float32)
    known = home != NOWHERE
    places[home[known], np.arange(count)[known], turn[known]] = term[known]
    return dense(pairs, places)


def line_up(form: str, rows: int, cols: int, strength: float = 3.0) -> tuple[Terms, np.ndarray]:
    """Energy of pieces 0, 1, … that belong row by row, unturned, and the pairs of sides worth trying."""
    count, pairs = rows * cols, []
    for piece in range(count):
        for side, other, inside in ((0, piece + 1, (piece + 1) % cols != 0), (1, piece + cols, piece + cols < count)):
            if inside:
                pairs += [(4 * piece + side, 4 * other + side + 2), (4 * other + side + 2, 4 * piece + side)]
    likely = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    if form == "listed":
        starts = np.searchsorted(likely[:, 0], np.arange(4 * count + 1))
        nowhere = np.full(count, NOWHERE), np.zeros(count, np.int64), np.zeros(count, np.float32)
        return listed(starts, likely[:, 1].copy(), np.full(len(likely), strength, np.float32), *nowhere), likely
    table = np.full((4 * count, 4 * count), -strength, np.float32)
    table[tuple(likely.T)] = strength
    return dense(table, np.zeros((count, count, 4), np.float32)), likely


def shuffled(count: int, cells: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    where = random.permutation(cells)[:count]
    at = np.full(cells, NOWHERE)
    at[where] = np.arange(count)
    return at, random.integers(0, 4, count), where


def put_down(at: np.ndarray, turn: np.ndarray, where: np.ndarray, terms: Terms, cols: int) -> None:
    search(at, turn, where, terms, NO_PAIRS, cols, 0, 0.0, 0.0, np.random.default_rng(0), *NUMBERS)


def assert_whole(at: np.ndarray, turn: np.ndarray, where: np.ndarray) -> None:
    assert np.array_equal(at[where], np.arange(len(where)))
    assert (at != NOWHERE).sum() == len(where)
    assert ((turn >= 0) & (turn < 4)).all()


both_forms = pytest.mark.parametrize("form", ["dense", "listed"])


@pytest.mark.parametrize(("board", "count"), BOARDS)
def test_energy_is_the_sum_over_touching_sides_and_places_in_both_forms(board: Board, count: int) -> None:
    whole = random_terms("dense", count, board.cells)
    at, turn, where = shuffled(count, board.cells)
    first, second = touching_sides(board, torch.from_numpy(where), torch.from_numpy(turn))
    expected = whole.pairs[first, second].sum() / 2 + whole.places[where, np.arange(count), turn].sum()
    assert energy(at, turn, whole, board.cols) == pytest.approx(float(expected), abs=1e-3)
    found = energy(at, turn, random_terms("listed", count, board.cells), board.cols)
    assert found == pytest.approx(float(expected), abs=1e-3)


@both_forms
@pytest.mark.parametrize(("board", "count"), BOARDS)
@pytest.mark.parametrize(("share", "lost"), [(0.0, 0.5), (0.2, 1.0)])
def test_every_loose_piece_gets_a_cell_of_its_own_and_no_placed_one_is_moved(
    form: str, board: Board, count: int, share: float, lost: float
) -> None:
    at, turn, where = shuffled(count, board.cells)
    fixed, fixed_turn, loose = where.copy(), turn.copy(), int(lost * count)
    for piece in range(loose):
        at[where[piece]] = where[piece] = NOWHERE
    put_down(at, turn, where, random_terms(form, count, board.cells, share), board.cols)
    assert_whole(at, turn, where)
    assert np.array_equal(where[loose:], fixed[loose:])
    assert np.array_equal(turn[loose:], fixed_turn[loose:])


def test_margins_are_against_the_best_other_piece_or_turn() -> None:
    pairs, places = np.zeros((8, 8), np.float32), np.zeros((2, 2, 4), np.float32)
    places[0, 0, 1], places[0, 0, 2], places[0, 1, 0], places[1, 1, 3] = 5.0, 3.0, 4.0, 2.0
    margin = margins(np.array([0, 1]), np.array([1, 3]), np.array([0, 1]), dense(pairs, places), 2)
    assert margin.tolist() == [1.0, 2.0]


@both_forms
@pytest.mark.parametrize(("board", "count"), [*BOARDS, (Board(5, 5), 18), (Board(2, 1), 2)])
def test_placements_stay_whole_and_never_lose_energy(form: str, board: Board, count: int) -> None:
    random = np.random.default_rng(1)
    terms = random_terms(form, count, board.cells, seed=1)
    likely = random.integers(0, 4 * count, (5, 2))
    at, turn, where = shuffled(count, board.cells, 1)
    before = energy(at, turn, terms, board.cols)
    found = search(at, turn, where, terms, likely, board.cols, 200, 2.0, 0.0, random, *NUMBERS)
    assert_whole(at, turn, where)
    assert found == pytest.approx(energy(at, turn, terms, board.cols), abs=1e-3)
    assert found >= before - 1e-4


@both_forms
@pytest.mark.parametrize("seed", range(2))
def test_the_best_placement_is_found_from_any_start(form: str, seed: int) -> None:
    terms, likely = line_up(form, 5, 5)
    random = np.random.default_rng(seed)
    found = search(*shuffled(25, 25, seed), terms, likely, 5, 1500, 3.0, 0.0, random, *NUMBERS)
    assert found == pytest.approx(3.0 * 40)  # 40 borders within a 5×5 board, all of them true


# Confidence: of a piece, of the group that holds together with it, and of the place of the whole.


def energy_of(puzzle: Puzzle, listed: bool = False) -> Energy:
    matches = Evidence(puzzle.pixels).matches(puzzle.board.pitch, DEFAULT.matches)
    return Energy.of_borders(matches, puzzle, listed)


def test_true_places_are_confident_and_that_of_a_turned_piece_is_not(cut: Cut) -> None:
    puzzle = cut(5, 5, name="coffee")
    cells, turns = puzzle.board.snap(puzzle.truth)
    assert (border_confidence(puzzle, (cells, turns)) >= 0.9).float().mean() > 0.9
    one = int(cells.argmax())
    turns[one] = (turns[one] + 1) % 4
    assert border_confidence(puzzle, (cells, turns))[one] < 0.1


@pytest.mark.parametrize("listed", [False, True])
def test_exchanged_halves_are_not_confident(cut: Cut, listed: bool) -> None:
    # Inside each half everything fits, so that no single piece would be better elsewhere.
    puzzle = cut(4, 6, name="coffee")
    cells, turns = puzzle.board.snap(puzzle.truth)
    row, col = cells // 6, cells % 6
    energy = energy_of(puzzle, listed)
    state = energy.state(6 * row + (col + 3) % 6, turns)
    assert (torch.from_numpy(energy.margins(state)).sigmoid() > 0.9).float().mean() > 0.5
    assert energy.answer(state)[1].max() < 0.9
    assert len(set(energy.groups(state).tolist())) > 1


def test_a_whole_that_could_be_shifted_is_not_confident(cut: Cut) -> None:
    puzzle = cut(4, 4, name="coffee")
    cells, turns = puzzle.board.snap(puzzle.truth)
    wider = Puzzle(puzzle.pieces, Board(4, 5), puzzle.names)
    placement = 5 * (cells // 4) + cells % 4, turns
    assert border_confidence(wider, placement).max() < 0.5
    assert border_confidence(puzzle, (cells, turns)).max() > 0.9


@pytest.mark.parametrize("count", [1, 2])
def test_pieces_without_neighbours_are_not_confident(count: int) -> None:
    pixels = torch.rand(count, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    cells = torch.tensor([0, 8])[:count]
    puzzle = Puzzle(ImagePieces(pixels), Board(3, 3), tuple(map(str, range(count))))
    assert border_confidence(puzzle, (cells, torch.zeros_like(cells))).max() < 0.5
