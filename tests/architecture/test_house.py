"""The house stays as it was laid out: small files, each with its test, and a front door that opens at once."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

import diffassemble

SOURCE = Path(diffassemble.__file__).parent
TESTS = Path(__file__).parents[1]
FILES = sorted(SOURCE.rglob("*.py"))
WITHOUT_TWIN = {"__init__.py", "__main__.py"}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in WITHOUT_TWIN], ids=name_of)
def test_every_file_has_its_twin(path: Path) -> None:
    place = path.relative_to(SOURCE)
    assert (TESTS / place.parent / f"test_{place.name}").is_file()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short_and_say_what_they_are_for(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            assert (body[-1].end_lineno or 0) - body[0].lineno < 45, node.name


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_randomness_enters_by_generators_only(path: Path) -> None:
    drawn = {f"torch.{name}" for name in ("rand", "randn", "randint", "randperm", "multinomial", "bernoulli", "normal")}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in drawn:
            assert any(word.arg == "generator" for word in node.keywords), f"line {node.lineno}"


def test_nothing_is_left_undone() -> None:
    unfinished = ("TO" + "DO", "FIX" + "ME", "X" + "XX", "NotImplementedError")
    found = [(name_of(path), word) for path in FILES for word in unfinished if word in path.read_text()]
    assert not found


def test_no_names_that_say_nothing() -> None:
    empty = {"utils", "util", "misc", "common", "helpers", "new", "v2", "base"}
    assert not [name_of(path) for path in FILES if {path.stem, path.parent.name} & empty]


def test_public_names_all_resolve() -> None:
    assert 10 <= len(diffassemble.__all__) <= 20
    assert sorted(diffassemble.__all__) == list(diffassemble.__all__) == dir(diffassemble)
    for name in diffassemble.__all__:
        assert getattr(diffassemble, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = diffassemble.nonsense


def test_the_front_door_opens_at_once() -> None:
    script = "import sys, diffassemble; sys.exit(bool({'torch', 'numpy', 'PIL', 'scipy'} & set(sys.modules)))"
    began = time.monotonic()
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    assert time.monotonic() - began < 3  # a tenth of that on a machine with nothing else to do


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["train", "--help"], ["solve", "--help"], ["demo", "--help"]]
)
def test_help_comes_without_torch(words: list[str]) -> None:
    script = (
        "import sys; from diffassemble.cli.main import main\n"
        f"try: code = main({words!r})\n"
        "except SystemExit as stop: code = stop.code\n"
        "sys.exit(code or 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
