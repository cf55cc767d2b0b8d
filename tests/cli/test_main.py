"""The command finds its verbs fast and fails with one line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

import diffassemble
import diffassemble.cli.main as entry
from diffassemble.core import InputError


def program(*argv: str) -> subprocess.CompletedProcess[str]:
    """The command as users start it."""
    return subprocess.run([sys.executable, "-m", "diffassemble", *argv], capture_output=True, text=True, check=False)


def test_help_lists_every_verb() -> None:
    done = program("--help")
    assert done.returncode == 0
    assert all(f"  {verb} " in done.stdout for verb in entry.VERBS)
    assert done.stderr == ""


def test_version() -> None:
    done = program("--version")
    assert done.returncode == 0
    assert done.stdout == f"diffassemble {diffassemble.__version__}\n"


def test_no_verb_shows_help_but_did_no_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main([]) == 2
    assert "usage" in capsys.readouterr().out


def test_unknown_verb_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["slove"]) == 2
    line = capsys.readouterr().err
    assert line.startswith("diffassemble: unknown verb 'slove'; use one of: demo, cut, fracture, solve")
    assert line.count("\n") == 1


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["unknown"], ["cut", "--help"]])
def test_help_loads_no_torch(words: list[str]) -> None:
    script = f"""
import contextlib, sys
from diffassemble.cli.main import main
with contextlib.suppress(SystemExit):
    main({words})
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


@pytest.mark.parametrize("verb", sorted(entry.VERBS))
def test_every_verb_has_its_module(verb: str) -> None:
    assert find_spec(f"diffassemble.cli.{verb}") is not None
    assert 0 < len(entry.VERBS[verb]) < 60


def failing(error: BaseException) -> Callable[[list[str]], None]:
    def run(argv: list[str]) -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("a.png: is no\n picture"), 2, "diffassemble: a.png: is no picture\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "diffassemble: No space left on device\n"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 2, "diffassemble: x: Permission denied\n"),
        (OSError("strange"), 2, "diffassemble: strange\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures(
    error: BaseException,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(entry, "import_module", lambda name: SimpleNamespace(run=failing(error)))
    assert entry.main(["cut"]) == code
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("error", [KeyError, ValueError])
def test_mistakes_of_the_program_are_not_hidden(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "import_module", lambda name: SimpleNamespace(run=failing(error("bug"))))
    with pytest.raises(error, match="bug"):
        entry.main(["cut"])


def test_a_reader_who_leaves_early() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "diffassemble", "cut", "--help"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert "Traceback" not in done.stderr
