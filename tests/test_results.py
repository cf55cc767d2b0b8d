"""docs/RESULTS.md and the table of README.md are what rendering docs/results/*.json gives, stale figures marked."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "results.py"))


def test_documents_are_rendered() -> None:
    """`python tools/results.py render` writes them anew, marking what has become stale."""
    assert (ROOT / "docs" / "RESULTS.md").read_text() == TOOL["render_page"]()
    readme = (ROOT / "README.md").read_text()
    assert readme == TOOL["render_readme"](readme)
    assert all(readme.count(marker) == 1 for marker in TOOL["MARKERS"])


def test_every_entry_is_complete_and_its_sources_are_there() -> None:
    package = ROOT / "src" / "diffassemble"
    for name, entry in TOOL["entries"]().items():
        assert set(entry) >= {"kind", "shows", "command", "seed", "data", "class", "weights", "code"}, name
        assert entry["class"] in ("tiny", "minutes", "hour", "overnight")
        assert all((package / "weights" / one).exists() for one in entry["weights"]), name
        assert all((package / one).exists() for one in entry["code"]), name


def test_results_have_what_a_figure_needs_and_no_paths() -> None:
    for name, result in TOOL["results"]().items():
        assert set(result) >= {"entry", "rows", "machine", "commit", "weights", "code"}
        for row in result["rows"]:
            assert row["puzzles"] > 0
            assert {"seed", "intervals", "sure", "sure_right", "false_joins"} <= row.keys()
        assert not any(word in json.dumps(result) for word in ("/tmp", "/work", "/home")), name


def test_what_changed_since_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = TOOL["entries"]()["sample-tabs"]
    hashes = {name: TOOL[f"hash_{name}"](tuple(entry[name])) for name in ("weights", "code")}
    fresh = {"entry": entry, **hashes}
    assert not TOOL["is_stale"](fresh, entry)
    assert TOOL["is_stale"]({**fresh, "weights": "0"}, entry)
    assert TOOL["is_stale"]({**fresh, "code": "0"}, entry)
    assert TOOL["is_stale"](fresh, {**entry, "seed": 1})
    assert TOOL["is_stale"](fresh, None)


def test_comments_and_docstrings_change_no_hash() -> None:
    import ast

    def words(text: str) -> list[str]:
        return list(TOOL["canonical"](ast.parse(text)))

    plain = words("def f(x):\n    return x + 1")
    assert plain == words('def f(x):\n    """Adds."""\n    return (x  # one\n            + 1)')
    assert plain != words("def f(x):\n    return x + 2")


def test_stale_rows_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        **{"solver": "hybrid", "data": "faces/val", "grid": "6x6", "missing": 0.3, "puzzles": 30, "pieces": 25.0},
        **{"accuracy": 90.0, "accuracy_free": 91.0, "seconds_per_puzzle": 2.0, "seed": 0},
        **{"intervals": {"accuracy": [88, 92], "accuracy_free": [89, 93]}, "sure": 200, "sure_right": 199},
        "false_joins": 24,
    }
    machine = {"processor": "some", "cores": 2}
    result = {"entry": {"kind": "squares", "shows": "Grids", "command": "evaluate", "seed": 0, "data": "faces"}}
    result |= {"rows": [row], "seconds": 9.0, "machine": machine, "commit": "abc", "weights": "", "code": ""}
    monkeypatch.setitem(TOOL["render_page"].__globals__, "results", lambda: {"grids": result})
    page = TOOL["render_page"]()
    assert "### grids — ⚠ stale" in page
    for part in ("91.0 (89.0–93.0)", "199 of 200", "| 24 |", "2 s (×1)", "99.5 (97.2–99.9)", "30 % missing"):
        assert part in page
    assert "grids: faces/val, 6×6, 30 % missing ⚠ stale" in page
    readme = TOOL["render_readme"]("a " + " b ".join(TOOL["MARKERS"]) + " c")
    assert readme.startswith("a ")
    assert readme.endswith(" c")
    assert "⚠ stale | 30 | 91.0 (89.0–93.0) | 99.5 (97.2–99.9) | 199 of 200 | 24 |" in readme
