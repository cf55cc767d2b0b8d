"""Tables of broken objects for people, in which ours and quoted figures keep apart."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from diffassemble.evaluation.fragment_benchmark import FragmentRow
from diffassemble.evaluation.fragment_comparison import compare_fragments
from diffassemble.evaluation.fragment_quoted import FRAGMENT_TABLES
from diffassemble.evaluation.fragment_tables import (
    describe,
    fragment_comparison_table,
    fragment_groups_table,
    fragment_results_table,
)
from diffassemble.evaluation.tables import write_rows


def printed(table: Table, width: int = 100) -> str:
    output = io.StringIO()
    Console(width=width, file=output).print(table)
    return output.getvalue()


def test_results_tell_means_and_on_what(fragment_row: Callable[..., FragmentRow]) -> None:
    row = fragment_row("diffusion", 71.25, 14.5, 31.0, missing=0.2, anchor="largest", seeds=5)
    text = printed(fragment_results_table([row]), 110)
    for part in ("diffusion", "bad/everyday/val", "anchor largest", "20% missing", "0.1% noise", "71.2", "91.2", "×5"):
        assert part in text
    for part in ("81.2", "14.5", "31.0", "30.0", "15.5", "3.2", "0.25 s", "812 MB", "class means", "chance: R 86"):
        assert part in " ".join(text.split())
    assert describe(row).endswith("anchor largest, 20% missing, 0.1% noise")


def test_a_narrow_terminal_still_shows_every_number(fragment_row: Callable[..., FragmentRow]) -> None:
    text = printed(fragment_results_table([fragment_row("diffusion", 71.25, 14.5, 100.0, missing=0.2, seeds=5)]), 80)
    assert "…" not in text
    for part in ("diffusion", "71.2", "14.5", "100.0", "99.0", "0.25 s", "812 MB"):
        assert part in text


def test_groups_stand_side_by_side(fragment_row: Callable[..., FragmentRow]) -> None:
    text = printed(fragment_groups_table([fragment_row("mend", 8.0, 1.0, 93.0)]))
    for part in ("pieces", "3–4", "area", "< 1 %", "93.0", "8.0°", "12.5", "80.5°"):
        assert part in text
    assert "sure" not in text.split("mend")[0]


def test_ours_and_quoted_have_columns_of_their_own(fragment_row: Callable[..., FragmentRow]) -> None:
    rows = [fragment_row("diffusion", 70.5, 13.2, 31.0, seeds=5), fragment_row("identity", 83.1, 17.6, 4.2)]
    (comparison,) = compare_fragments(FRAGMENT_TABLES["1"], rows)
    text = printed(fragment_comparison_table(comparison))
    lines = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert lines["diffusion"] == [
        "70.5",
        "±1.5",
        "73.3",
        "13.2",
        "±0.4",
        "14.8",
        "31.0",
        "±2.5",
        "27.5",
        "90.5",
        "±1.2",
    ]
    assert lines["identity"] == ["83.1", "17.6", "4.2", "103.1"]
    assert lines["dgl"] == ["81.4", "14.9", "25.4"]
    assert "9 fractures of bad/everyday/val, anchor none" in " ".join(text.split())
    assert "Quoted: from other objects" in " ".join(text.split())
    assert "Quoted" not in printed(fragment_comparison_table(comparison, explained=False))


def test_rows_can_be_read_back(tmp_path: Path, fragment_row: Callable[..., FragmentRow]) -> None:
    rows = [fragment_row("diffusion", 70.5, 13.2, 31.0), fragment_row("identity", 83.1, 17.6, 4.2, seeds=5)]
    write_rows(rows, tmp_path / "rows.json")
    read = json.loads((tmp_path / "rows.json").read_text())
    assert read == json.loads(json.dumps([asdict(row) for row in rows]))
    assert read[0]["deviation"] is None
    assert read[0]["by_pieces"][1]["name"] == "3–4"
    assert read[1]["plain"]["rmse_r"] == 83.1
