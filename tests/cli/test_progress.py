"""People read words, programs read lines; they never get in each other's way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.cli.progress import Output, summary
from diffassemble.core import Placements, Puzzle
from diffassemble.core.solver import ChanceSolver
from diffassemble.kinds.squares import as_listed
from diffassemble.squares.cut import cut_image


@pytest.fixture
def puzzle(photo: Path) -> Puzzle:
    return cut_image(photo, 2, 4)


def test_words_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output()
    output.say("hello")
    output.event("step", done=0.5)
    assert capsys.readouterr().out == "hello\n"


def test_lines_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(lines=True)
    output.say("hello")
    output.event("step", done=0.5)
    seen = capsys.readouterr()
    assert seen.err == "hello\n"
    line = json.loads(seen.out)
    assert (line["event"], line["done"]) == ("step", 0.5)


def test_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    Output(document=True).answer(b'{"a": 1}\n')
    assert capsys.readouterr().out == '{"a": 1}\n'
    Output(lines=True, document=True).answer(b'{"a": 1}\n')
    assert json.loads(capsys.readouterr().out)["assembly"] == {"a": 1}


def test_solving_is_silent_off_terminals(puzzle: Puzzle, capsys: pytest.CaptureFixture[str]) -> None:
    assert Output().assembled(puzzle, ChanceSolver("listed", as_listed), 0).solver == "listed"
    assert capsys.readouterr() == ("", "")


def test_summary_tells_the_score_only_where_the_truth_is_known(puzzle: Puzzle) -> None:
    assert puzzle.truth is not None
    sure = torch.tensor([1.0, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0])
    assembly = Answer(puzzle, Placements(puzzle.truth, sure), (), "told", 1.25)
    assert summary(assembly) == (
        "placed 8 pieces in 1.2 s; 2 with a confidence of at least 0.5\nscore: 100.0 % of the pieces right"
    )
    assert "score" not in summary(replace(assembly, puzzle=puzzle.without_truth()))
