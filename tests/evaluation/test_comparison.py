"""Ours and the paper's, side by side and never mixed."""

from __future__ import annotations

from collections.abc import Callable

from diffassemble.core import Board
from diffassemble.evaluation.comparison import ABSOLUTE, FREE, NOT_OURS, SECONDS, Comparison, compare_accuracy
from diffassemble.evaluation.quoted import TABLES
from diffassemble.evaluation.sweep import Measured


def test_learned_solvers_have_both_scores_and_border_solvers_one(accuracies: Comparison) -> None:
    scores = [(line.method, line.score) for line in accuracies.lines]
    assert scores == [
        ("diffusion", ABSOLUTE),
        ("diffusion", FREE),
        ("gallagher", FREE),
        ("yu", NOT_OURS),
        ("huroyan", NOT_OURS),
    ]


def test_figures_and_intervals_stand_at_their_board(accuracies: Comparison) -> None:
    right, free, borders = accuracies.lines[:3]
    assert accuracies.boards == (Board(6, 6), Board(7, 7))
    assert (right.ours, right.intervals) == ((71.0, 72.0), ((70.0, 72.0), (71.0, 73.0)))
    assert (free.ours, free.intervals) == ((81.0, 82.0), ((79.0, 83.0), (80.0, 84.0)))
    assert (borders.ours, borders.intervals) == ((33.0, 94.0), ((31.0, 35.0), (92.0, 96.0)))


def test_a_quoted_figure_stands_once(accuracies: Comparison) -> None:
    assert [line.paper for line in accuracies.lines] == [
        (96.92, None),
        (None, None),
        (33.28, None),
        (33.45, None),
        (18.18, None),
    ]
    assert all(line.ours == (None, None) for line in accuracies.lines if line.score == NOT_OURS)


def test_solvers_that_the_paper_does_not_have_are_not_given_its_figures(measured: Callable[..., Measured]) -> None:
    table, boards = TABLES["3"], [Board(6, 6)]
    comparison = compare_accuracy(table, "paintings", boards, [[measured("hybrid", 90.0, 95.0)]], ())
    assert [line.paper for line in comparison.lines[:2]] == [(None,), (None,)]
    assert [line.method for line in comparison.lines[2:]] == list(table.methods)
    assert "PuzzleWikiArts" in comparison.title


def test_times(times: Comparison) -> None:
    assert [(line.method, line.score, line.ours, line.paper) for line in times.lines] == [
        ("hybrid", SECONDS, (0.25, 9.5), (None, None)),
        ("yu", SECONDS, (0.5, 8.75), (0.3, 92.0)),
        ("gallagher", NOT_OURS, (None, None), (0.3, 55.1)),
        ("huroyan", NOT_OURS, (None, None), (1.0, 152.0)),
        ("diffusion", NOT_OURS, (None, None), (1.0, 5.0)),
    ]
