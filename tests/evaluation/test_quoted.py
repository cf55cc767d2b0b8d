"""The paper's figures: complete, and those that the text of the paper speaks of."""

from __future__ import annotations

import pytest

from diffassemble.core import Board
from diffassemble.evaluation.quoted import FACES, PAINTINGS, PAPER_NAMES, TABLES

BOARDS = [Board(6, 6), Board(8, 8), Board(10, 10), Board(12, 12)]


@pytest.mark.parametrize("name", TABLES)
def test_every_method_has_a_figure_for_every_column(name: str) -> None:
    table = TABLES[name]
    assert {(entry.method, entry.pictures) for entry in table.quoted} == {
        (method, pictures) for method in table.methods for pictures in table.pictures
    }
    assert len(table.quoted) == len(table.methods) * len(table.pictures)
    assert all(len(entry.figures) == len(table.grids) for entry in table.quoted)
    assert set(table.pictures) <= set(PAPER_NAMES)
    assert all(0 < figure <= (1000 if table.timed else 100) for entry in table.quoted for figure in entry.figures)


def test_the_best_of_the_columns() -> None:
    table = TABLES["3"]

    def best(pictures: str) -> list[tuple[float, str]]:
        columns = zip(*(table.figures(method, pictures, BOARDS) for method in table.methods), strict=True)
        return [max((figure or 0.0, method) for figure, method in zip(c, table.methods, strict=True)) for c in columns]

    assert best(FACES) == [(99.51, "diffusion"), (97.45, "huroyan"), (99.3, "diffusion"), (97.76, "diffusion")]
    assert best(PAINTINGS) == [(94.62, "yu"), (92.95, "yu"), (90.99, "yu"), (89.88, "yu")]


def test_what_is_missing_and_where_the_paper_says_nothing() -> None:
    assert (TABLES["3"].missing, TABLES["4"].missing) == (0.0, 0.3)
    assert TABLES["4"].figures("diffusion", FACES, BOARDS) == (96.92, None, None, 76.49)
    assert TABLES["4"].figures("hybrid", FACES, BOARDS) == (None,) * 4
    assert TABLES["3"].figures("yu", PAINTINGS, [Board(6, 8)]) == (None,)


def test_times_stand_at_the_pieces_of_the_figure() -> None:
    table = TABLES["time"]
    assert [grid * grid for grid in table.grids] == [36, 144, 400, 625, 900]
    last = Board(30, 30)
    assert [table.figures(method, FACES, [last])[0] for method in table.methods] == [55.1, 92.0, 152.0, 5.0]
