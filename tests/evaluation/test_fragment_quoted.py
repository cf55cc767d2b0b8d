"""Quoted figures: complete, and those that the text of the paper speaks of."""

from __future__ import annotations

import pytest

from diffassemble.evaluation.fragment_quoted import CHANCE, FRAGMENT_TABLES


@pytest.mark.parametrize("name", FRAGMENT_TABLES)
def test_every_quoted_method_has_all_shares_once(name: str) -> None:
    table = FRAGMENT_TABLES[name]
    told = [(entry.method, entry.missing) for entry in table.quoted]
    assert len(set(told)) == len(told)
    assert set(told) == {(method, missing) for method, _ in told for missing in table.missing}
    assert all(0 < entry.rmse_r < 90 and 0 < entry.rmse_t < 25 for entry in table.quoted)
    assert all(0 < entry.part_accuracy < 100 for entry in table.quoted)


@pytest.mark.parametrize("name", FRAGMENT_TABLES)
def test_chance_rows_stand_in_every_table(name: str) -> None:
    table = FRAGMENT_TABLES[name]
    assert table.methods[:2] == CHANCE
    assert set(table.methods) - set(CHANCE) <= {entry.method for entry in table.quoted}
    assert "diffusion" in table.methods


def test_tables_1_and_2_agree_where_they_overlap() -> None:
    first, second = FRAGMENT_TABLES["1"], FRAGMENT_TABLES["2"]
    for method in ("diffusion", "plain", "no-diffusion"):
        one, two = first.figures(method, 0.0), second.figures(method, 0.0)
        assert one is not None
        assert two is not None
        rounded = (two.rmse_r, two.rmse_t, two.part_accuracy)
        assert (one.rmse_r, one.rmse_t, one.part_accuracy) == pytest.approx(rounded, abs=0.051)


def test_missing_pieces() -> None:
    table = FRAGMENT_TABLES["missing-3d"]
    assert table.missing == (0.0, 0.1, 0.2, 0.3)
    assert table.pieces == (8, 20)
    courses = [table.figures("diffusion", share) for share in table.missing]
    assert [one.part_accuracy for one in courses if one] == [11.61, 11.20, 10.67, 10.43]
    assert table.figures("diffusion", 0.5) is None
    assert table.figures("nsm", 0.0) is None
