"""The command finds its verbs fast and fails with one line."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
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
    assert line.startswith("diffassemble: the verbs are demo, cut, fracture, solve")
    assert line.endswith("there is no 'slove', did you mean 'solve'?\n")
    assert line.count("\n") == 1
    assert entry.main(["xyz"]) == 2
    assert capsys.readouterr().err.endswith("there is no 'xyz', see diffassemble --help\n")


def test_bash_completes(tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(program("--completion", "bash").stdout)

    def complete(*words: str) -> list[str]:
        asked = " ".join(f"'{word}'" for word in words)
        code = (
            f"source {script}; COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; "
            "$(complete -p diffassemble | grep -o '_diffassemble'); printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout.split()

    assert complete("diffassemble", "so") == ["solve"]
    assert set(complete("diffassemble", "")) >= set(entry.VERBS)
    assert complete("diffassemble", "solve", "my-puzzle", "--tu") == ["--turn"]
    assert complete("diffassemble", "solve", "--turn", "") == ["0", "90", "180", "270"]
    assert complete("diffassemble", "cut", "photo.jpg", "--shape", "t") == ["tabs", "torn"]
    assert complete("diffassemble", "train", "jigsaw-pa") == ["jigsaw-paper-form", "jigsaw-paper"]
    assert complete("diffassemble", "evaluate", "--tab") == ["--table"]
    # What is no option is a file, which bash completes by itself.
    assert complete("diffassemble", "solve", "photo") == []
    assert complete("diffassemble", "solve", "--no-pi") == ["--no-pictures"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell: str) -> None:
    script = program("--completion", shell).stdout
    assert all(word in script for word in (*entry.VERBS, "turn", "jigsaw-paper-form", "tabs torn"))
    # Where the shell is at hand, it reads the script without a word.
    if found := shutil.which(shell):
        done = subprocess.run([found, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_completion_of_an_unknown_shell() -> None:
    done = program("--completion", "csh")
    assert done.returncode == 2
    assert done.stderr == "diffassemble: name one shell: diffassemble --completion bash|zsh|fish\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["unknown"], ["cut", "--help"], ["--completion", "bash"]])
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
        (
            OSError(errno.ENOSPC, "No space left on device"),
            2,
            "diffassemble: standard output: No space left on device\n",
        ),
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
