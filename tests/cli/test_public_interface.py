"""Nothing that users type or import is lost: docs/decisions/002-public-interface.md lists it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import diffassemble
from diffassemble.cli.main import VERBS, run
from diffassemble.training.presets import PRESETS
from diffassemble_research.tables import TABLES

RECORD = (Path(__file__).parents[2] / "docs" / "decisions" / "002-public-interface.md").read_text()


def listed(start: str) -> set[str]:
    """The words of the line that starts so."""
    (line,) = re.findall(rf"^{re.escape(start)} (.*)$", RECORD, re.M)
    return set(line.split())


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_options(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        run(verb, [*(["jigsaw"] if verb == "train" else []), "--help"])
    found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*(?:\.[a-z-]+)?", capsys.readouterr().out))
    wanted = {option.rstrip(",") for option in listed(f"- `{verb}`:") if option.startswith("--")}
    assert wanted <= found
    sections = {option.partition(".")[0] for option in found if "." in option}
    assert sections == ({"--model", "--data", "--training"} if verb == "train" else set())


def test_names() -> None:
    assert set(dir(diffassemble)) >= listed("Names:")
    assert all(hasattr(diffassemble, name) for name in listed("Names:"))


def test_presets_and_tables() -> None:
    assert set(PRESETS) >= listed("Presets of `train`:")
    assert set(TABLES) >= listed("Tables of `evaluate --table`:")
