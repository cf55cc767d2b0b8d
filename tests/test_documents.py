"""What the documents say of the code is so: their examples run, what they name is there, and benchmarks load."""

from __future__ import annotations

import ast
import os
import re
import runpy
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from unittest.mock import patch

import pytest

from diffassemble import kinds
from diffassemble.core.limits import LIMITS
from diffassemble.network import encoders
from diffassemble.squares import pictures

DOCS = Path(__file__).parents[1] / "docs"
ROOT = DOCS.parent / "src" / "diffassemble"
EXAMPLES = re.findall(r"```python\n(.*?)```", (DOCS / "ARCHITECTURE.md").read_text(), re.S)
NAMES = re.findall(
    r"`((?:core|diffusion|network|squares|fragments|training|evaluation)(?:\.(?!py`)\w+)+)`",
    "".join((DOCS / name).read_text() for name in ("ARCHITECTURE.md", "PAPER.md")),
)
PLACES = re.findall(r"`((?:\w+/)*\w+\.py)`", (DOCS / "ARCHITECTURE.md").read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=["solver", "kind", "matcher", "encoder", "dataset"])
def test_examples_run(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "KINDS", dict(kinds.KINDS))
    monkeypatch.setattr(pictures, "COLLECTIONS", dict(pictures.COLLECTIONS))
    monkeypatch.setattr(encoders, "ENCODERS", dict(encoders.ENCODERS))
    names = {"photo": str(files("skimage.data") / "rocket.jpg")}
    exec(compile(example, "ARCHITECTURE.md", "exec"), names)


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_names_are_there(name: str) -> None:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(["diffassemble", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return
    pytest.fail(f"nothing is called {name}")


@pytest.mark.parametrize("place", sorted(set(PLACES)))
def test_files_are_there(place: str) -> None:
    assert any((base / place).exists() for base in (ROOT, DOCS.parent)) or list(ROOT.rglob(place))


@pytest.mark.parametrize("script", sorted((DOCS.parent / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_benchmarks_load(script: Path) -> None:
    with patch.dict(os.environ):
        names = runpy.run_path(str(script), run_name="not main")
    assert callable(names["main"])
    assert script.name in (script.parent / "README.md").read_text()


def test_the_guide_shows_the_limits() -> None:
    table = next(part for part in ast.parse((ROOT / "core" / "limits.py").read_text()).body if _is_limits(part))
    assert isinstance(table, ast.ClassDef)
    fields, words = table.body[1::2], table.body[2::2]
    guide = (DOCS / "GUIDE.md").read_text()
    for field, word in zip(fields, words, strict=True):
        assert isinstance(field, ast.AnnAssign)
        assert isinstance(field.target, ast.Name)
        assert isinstance(word, ast.Expr)
        value = getattr(LIMITS, field.target.id)
        told = f"{value:,}" if isinstance(value, int) else f"{value:.0e}"
        assert f"| {ast.literal_eval(word.value)} | {told} |" in guide


def _is_limits(part: ast.stmt) -> bool:
    return isinstance(part, ast.ClassDef) and part.name == "Limits"


def test_architecture_and_decisions_are_short() -> None:
    assert len((DOCS / "ARCHITECTURE.md").read_text().splitlines()) <= 150
    for record in (DOCS / "decisions").glob("*.md"):
        assert len(record.read_text().splitlines()) <= 40, record.name
        assert re.match(r"\d{3}-", record.name)
