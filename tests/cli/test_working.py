"""What verbs that solve have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from diffassemble.cli import inputs as working
from diffassemble.cli.inputs import assembled, load_puzzle, summary
from diffassemble.core import Assembly, Board, InputError, Poses, Puzzle, Solver, Step
from diffassemble.files.puzzles import write_puzzle
from diffassemble.squares.photo import cut_image


class RowByRow:
    """Lays pieces in the order given."""

    name = "row by row"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        cells = torch.arange(len(puzzle))
        yield Step(puzzle.board.poses(cells, torch.zeros_like(cells)), 1.0)


def row_by_row(kind: str) -> Solver:
    return RowByRow()


@pytest.fixture
def folder(photo: Path, tmp_path: Path) -> Path:
    write_puzzle(cut_image(photo, 2, 4), tmp_path / "puzzle")
    return tmp_path / "puzzle"


def test_puzzle_folders_know_their_board(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load_puzzle(folder, None, row_by_row, 0)[0].board == Board(2, 4)
    assert load_puzzle(folder, Board(4, 2), row_by_row, 0)[0].board == Board(4, 2)
    assert capsys.readouterr().out == ""


def test_the_board_of_loose_pieces_is_found_and_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert load_puzzle(folder / "pieces", None, row_by_row, 0)[0].board == Board(2, 4)
    assert capsys.readouterr().out == "grid not given: 2x4 fits the 8 pieces best\n"


def test_loose_pieces_may_stand_upright(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_its_side(puzzle: Puzzle, placed: Poses, allowed: tuple[int, ...]) -> int:
        return 1

    monkeypatch.setattr(working, "bundled_uprighter", lambda: on_its_side)
    assert load_puzzle(folder / "pieces", None, row_by_row, 0)[0].board == Board(4, 2)
    assert "4x2 fits" in capsys.readouterr().out


def test_a_picture_needs_a_grid(photo: Path) -> None:
    with pytest.raises(InputError, match="does not tell its grid; pass --grid"):
        load_puzzle(photo, None, row_by_row, 0)[0]
    assert load_puzzle(photo, Board(2, 3), row_by_row, 0)[0].board == Board(2, 3)


def test_solving_is_silent_off_terminals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assembly = assembled(load_puzzle(folder, None, row_by_row, 0)[0], RowByRow(), 0)
    assert assembly.solver == "row by row"
    assert capsys.readouterr() == ("", "")


def test_summary_tells_the_score_only_where_the_truth_is_known(folder: Path) -> None:
    puzzle = load_puzzle(folder, None, row_by_row, 0)[0]
    assert puzzle.truth is not None
    sure = torch.tensor([1.0, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0])
    assembly = Assembly(puzzle, puzzle.truth, sure, (), "told", 1.25)
    assert summary(assembly) == (
        "placed 8 pieces in 1.2 s; 2 with a confidence of one half or more\n"
        "score: 100.0 % of the pieces right, 100.0 % orientation free"
    )
    blind = Assembly(puzzle.without_truth(), puzzle.truth, sure, (), "told", 1.25)
    assert "score" not in summary(blind)
