"""Quoted figures: complete, and those that the text of the paper speaks of; ours stand beside them and never mixed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diffassemble.evaluation.rows import Row
from diffassemble_research.quoted import (
    ABSOLUTE,
    CHANCE,
    FACES,
    FREE,
    NOT_OURS,
    PAINTINGS,
    PAPER_NAMES,
    TABLES,
    Comparison,
)

GRIDS = ["6x6", "8x8", "10x10", "12x12"]


@pytest.mark.parametrize("name", TABLES)
def test_every_method_has_a_figure_for_every_group_and_column(name: str) -> None:
    table = TABLES[name]
    methods = [set(group) for group in table.quoted.values()]
    assert all(one == methods[0] for one in methods)
    figures = [figures for group in table.quoted.values() for figures in group.values()]
    assert all(len(one) == len(table.columns) for one in figures)
    assert all(0 < figure <= (1000 if table.figures == "seconds" else 100) for one in figures for figure in one)
    assert set(table.quoted) <= set(PAPER_NAMES) | set(table.missing)
    if table.kind == "fragments":  # chance rows are in every table about objects
        assert table.methods[:2] == CHANCE
        assert set(table.methods) - set(CHANCE) <= set(table.quoted[0.0])
        assert all(r < 90 and t < 25 for group in table.quoted.values() for r, t, _ in group.values())


def test_the_best_of_the_columns() -> None:
    table = TABLES["3"]

    def best(pictures: str) -> list[tuple[float, str]]:
        known = {method: table.figures_of(method, pictures, GRIDS) for method in table.quoted[pictures]}
        return [max((known[method][i] or 0.0, method) for method in known) for i in range(4)]

    assert best(FACES) == [(99.51, "diffusion"), (97.45, "huroyan"), (99.3, "diffusion"), (97.76, "diffusion")]
    assert best(PAINTINGS) == [(94.62, "yu"), (92.95, "yu"), (90.99, "yu"), (89.88, "yu")]


def test_what_is_missing_and_where_the_paper_says_nothing() -> None:
    assert (TABLES["3"].missing, TABLES["4"].missing) == ((0.0,), (0.3,))
    assert TABLES["4"].figures_of("diffusion", FACES, GRIDS) == (96.92, None, None, 76.49)
    assert TABLES["4"].figures_of("hybrid", FACES, GRIDS) == (None,) * 4
    assert TABLES["3"].figures_of("yu", PAINTINGS, ["6x8"]) == (None,)
    missing = TABLES["missing-3d"]
    assert (missing.missing, missing.pieces) == ((0.0, 0.1, 0.2, 0.3), (8, 20))
    courses = [missing.figures_of("diffusion", share, ["part_accuracy"]) for share in missing.missing]
    assert courses == [(11.61,), (11.20,), (10.67,), (10.43,)]
    assert missing.figures_of("diffusion", 0.5, ["rmse_r"]) == missing.figures_of("nsm", 0.0, ["rmse_r"]) == (None,)


def test_figures_and_intervals_stand_at_their_grid_and_quoted_ones_once(accuracies: Comparison) -> None:
    assert [(line.method, line.score) for line in accuracies.lines] == [
        *[("diffusion", ABSOLUTE), ("diffusion", FREE), ("gallagher", FREE)],
        *[("yu", NOT_OURS), ("huroyan", NOT_OURS)],
    ]
    right, free, borders = accuracies.lines[:3]
    assert accuracies.columns == ("6x6", "7x7")
    assert (right.ours, right.reach) == ((71.0, 72.0), ((1.0, 1.0), (1.0, 1.0)))
    assert (free.ours, free.reach) == ((81.0, 82.0), ((2.0, 2.0), (2.0, 2.0)))
    assert (borders.ours, borders.reach) == ((33.0, 94.0), ((2.0, 2.0), (2.0, 2.0)))
    assert [line.quoted[0] for line in accuracies.lines] == [96.92, None, 33.28, 33.45, 18.18]
    assert all(line.quoted[1] is None for line in accuracies.lines)
    assert all(line.ours == (None, None) for line in accuracies.lines if line.score == NOT_OURS)


def test_objects_have_our_rows_first_then_what_is_only_quoted(
    object_row: Callable[..., Row], errors: Callable[..., list[Comparison]]
) -> None:
    (found,) = errors("2", object_row("identity", 83.0, 17.0, 4.0), object_row("diffusion", 70.0, 14.0, 30.0))
    assert [line.method for line in found.lines] == [
        *("identity", "diffusion", "plain", "invariant", "six-d", "no-chamfer", "no-diffusion", "gcn")
    ]
    first, second, third = found.lines[:3]
    assert (first.ours, first.quoted) == ((83.0, 17.0, 4.0, 103.0), (None,) * 4)
    assert (second.ours, second.quoted) == ((70.0, 14.0, 30.0, 90.0), (73.34, 14.82, 27.48, None))
    assert (third.ours, third.score) == ((None,) * 4, NOT_OURS)


def test_objects_have_one_comparison_for_each_share_and_anchor(
    object_row: Callable[..., Row], errors: Callable[..., list[Comparison]]
) -> None:
    rows = [
        object_row("lstm", 80.0, 15.0, 20.0, missing=missing, anchor=anchor)
        for missing in (0.0, 0.3)
        for anchor in ("none", "largest")
    ]
    found = errors("missing-3d", *rows)
    assert [(one.group, one.view) for one in found] == [
        (missing, f"bad/everyday/val, anchor {anchor}") for missing in (0.0, 0.3) for anchor in ("none", "largest")
    ]
    assert [one.lines[0].quoted[2] for one in found] == [4.78, 4.78, 4.36, 4.36]
