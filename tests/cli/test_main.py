"""The command finds its verbs fast and fails with one line; nothing that users type or import is lost."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import diffassemble
import diffassemble.cli.main as entry
from diffassemble.core import InputError
from diffassemble.training.presets import PRESETS
from diffassemble_research.tables import TABLES

RECORD = (Path(__file__).parents[2] / "docs" / "decisions" / "002-public-interface.md").read_text()


def listed(start: str) -> set[str]:
    """The words of the line of the record that starts so."""
    (line,) = re.findall(rf"^{re.escape(start)} (.*)$", RECORD, re.M)
    return set(line.split())


@pytest.mark.parametrize("verb", sorted(entry.VERBS))
def test_verbs_and_their_options(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_spec(f"diffassemble.cli.{verb}") is not None
    assert 0 < len(entry.VERBS[verb]) < 60
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        entry.run(verb, [*(["jigsaw"] if verb == "train" else []), "--help"])
    found = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*(?:\.[a-z-]+)?", capsys.readouterr().out))
    wanted = {option.rstrip(",") for option in listed(f"- `{verb}`:") if option.startswith("--")}
    assert wanted <= found
    sections = {option.partition(".")[0] for option in found if "." in option}
    assert sections == ({"--model", "--data", "--training"} if verb == "train" else set())


def test_names_presets_and_tables() -> None:
    assert set(dir(diffassemble)) >= listed("Names:")
    assert all(hasattr(diffassemble, name) for name in listed("Names:"))
    assert set(PRESETS) >= listed("Presets of `train`:")
    assert set(TABLES) >= listed("Tables of `evaluate --table`:")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {verb} " in text for verb in entry.VERBS)
    assert entry.main(["--version"]) == 0
    assert capsys.readouterr() == (f"diffassemble {diffassemble.__version__}\n", "")
    assert entry.main([]) == 2
    assert "usage" in capsys.readouterr().out
    for word, meant in (("slove", "did you mean 'solve'?"), ("xyz", "see diffassemble --help")):
        assert entry.main([word]) == 2
        line = capsys.readouterr().err
        assert line.startswith("diffassemble: the verbs are demo, cut, fracture, solve")
        assert line.endswith(f"there is no '{word}', {meant}\n")
        assert line.count("\n") == 1
    assert entry.main(["--completion", "csh"]) == 2
    assert capsys.readouterr().err == "diffassemble: name one shell: diffassemble --completion bash|zsh|fish\n"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of all shells, by their names."""
    folder = tmp_path_factory.mktemp("scripts")
    for shell in entry.SHELLS:
        (folder / shell).write_text(entry._completion(shell))
    return folder


def test_bash_completes(scripts: Path) -> None:
    asked = {
        ("so",): {"solve"},
        ("solve", "my-puzzle", "--tu"): {"--turn"},
        ("solve", "--turn", ""): {"0", "90", "180", "270"},
        ("cut", "photo.jpg", "--shape", "t"): {"tabs", "torn"},
        ("train", "jigsaw-pa"): {"jigsaw-paper-form", "jigsaw-paper"},
        ("train", "jigsaw", "--res"): {"--resume"},
        ("evaluate", "--tab"): {"--table"},
        # Anything else is a file, which bash completes unasked.
        ("solve", "photo"): set(),
        ("solve", "--no-pi"): {"--no-pictures"},
    }
    lines = [f"source {scripts / 'bash'}", "run() { $(complete -p diffassemble | grep -o '_[a-z_]*diffassemble ');"]
    lines.append('echo "${COMPREPLY[*]}"; COMPREPLY=(); }')
    for words in asked:
        quoted = " ".join(f"'{word}'" for word in ("diffassemble", *words))
        lines.append(f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; run")
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert [set(line.split()) for line in done.stdout.split("\n")[: len(asked)]] == list(asked.values())
    assert "complete -o default" in (scripts / "bash").read_text()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(scripts: Path, shell: str) -> None:
    script = (scripts / shell).read_text()
    assert all(word in script for word in (*entry.VERBS, "--turn", "jigsaw-paper-form", "'tabs', 'torn'"))
    assert {"zsh": "|| _files", "fish": "complete --command"}[shell] in script
    # Where the shell is at hand, it reads the script without a word.
    if found := shutil.which(shell):
        done = subprocess.run([found, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_help_loads_no_torch() -> None:
    script = """
import contextlib, sys
from diffassemble.cli.main import main
asked = ["--help"], ["--version"], ["unknown"], ["cut", "--help"], ["evaluate", "--help"], ["--completion", "bash"]
for words in asked:
    with contextlib.suppress(SystemExit):
        main(words)
    assert "torch" not in sys.modules, words
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--missing" in done.stdout


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("a.png: is no\n picture"), 2, "diffassemble: a.png: is no picture\n"),
        (OSError(errno.ENOSPC, "No space left"), 2, "diffassemble: standard output: No space left\n"),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 2, "diffassemble: x: Permission denied\n"),
        (OSError("strange"), 2, "diffassemble: strange\n"),
        (MemoryError(), 2, "diffassemble: there is not enough memory for this; "),
        (entry.Unsolved("nothing was joined"), 1, "diffassemble: nothing was joined\n"),
        (KeyboardInterrupt(), 130, ""),
        # Mistakes of the program are not hidden.
        (KeyError("bug"), None, ""),
        (ValueError("bug"), None, ""),
    ],
)
def test_failures(
    error: BaseException,
    code: int | None,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(argv: list[str]) -> None:
        raise error

    monkeypatch.setattr(entry, "import_module", lambda name: SimpleNamespace(run=run))
    if code is None:
        with pytest.raises(type(error), match="bug"):
            entry.main(["cut"])
    else:
        assert entry.main(["cut"]) == code
        assert capsys.readouterr().err.startswith(line)


def test_a_reader_who_leaves_early() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "diffassemble", "cut", "--help"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert "Traceback" not in done.stderr
