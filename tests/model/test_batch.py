"""Packing keeps puzzles apart and says of each what it is."""

from __future__ import annotations

import math

import pytest
import torch

from diffassemble.core import Puzzle
from diffassemble.network.batch import pack
from diffassemble.squares.edge_model import find_matches
from diffassemble.squares.edges import image_matches


def test_rows_are_pieces_in_order(puzzles: list[Puzzle]) -> None:
    batch = pack(puzzles)
    assert batch.matches is None
    assert torch.bincount(batch.puzzle).tolist() == [6, 6, 1]
    for index, puzzle in enumerate(puzzles):
        assert torch.equal(batch.content[batch.puzzle == index], puzzle.pieces.pixels)


def test_boards_are_told_by_shape_pitch_and_share_of_pieces_left(puzzles: list[Puzzle]) -> None:
    batch = pack(puzzles)
    for owner, told in zip(batch.puzzle.tolist(), batch.board.tolist(), strict=True):
        puzzle = puzzles[owner]
        rows, cols = puzzle.board.rows, puzzle.board.cols
        expected = [math.log(rows) / 3, math.log(cols) / 3, 2 / max(rows, cols), len(puzzle) / (rows * cols)]
        assert told == pytest.approx(expected)


def test_room_is_what_the_outermost_cells_lie_apart(puzzles: list[Puzzle]) -> None:
    batch = pack(puzzles)
    assert batch.room.shape == (13, 2)
    for owner, told in zip(batch.puzzle.tolist(), batch.room, strict=True):
        centres = puzzles[owner].board.centres()
        torch.testing.assert_close(told, centres.amax(0) - centres.amin(0))


def test_matches_are_those_of_each_puzzle_and_never_cross(puzzles: list[Puzzle]) -> None:
    batch = pack(puzzles, find_matches)
    matches = batch.matches
    assert matches is not None
    assert torch.equal(batch.puzzle[matches.first], batch.puzzle[matches.second])
    for index, (puzzle, start) in enumerate(zip(puzzles, (0, 6, 12), strict=True)):
        own, alone = (
            matches[batch.puzzle[matches.first] == index],
            image_matches(puzzle.pieces.pixels, puzzle.board.pitch),
        )
        assert torch.equal(own.first - start, alone.first)
        assert torch.equal(own.second - start, alone.second)
        assert torch.equal(own.slot, alone.slot)
        assert torch.equal(own.evidence, alone.evidence)
        assert torch.equal(own.relative.translation, alone.relative.translation)
        assert torch.equal(own.relative.rotation, alone.relative.rotation)


def test_everything_moves_to_another_device(puzzles: list[Puzzle]) -> None:
    there = torch.device("meta")
    moved = pack(puzzles, find_matches).to(there)
    matches = moved.matches
    assert matches is not None
    parts = (
        moved.content,
        moved.puzzle,
        moved.board,
        moved.room,
        matches.first,
        matches.second,
        matches.slot,
        matches.evidence,
    )
    assert {part.device for part in (*parts, matches.relative.rotation, matches.relative.translation)} == {there}
    assert pack(puzzles).to(there).matches is None
