"""The demo shows what it promises, offline, whatever the weights."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from diffassemble.cli import demo
from diffassemble.cli.main import run
from diffassemble.core import InputError
from diffassemble.io.assemblies import read_assembly
from diffassemble.io.puzzles import read_puzzle


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coarser grids, to be quick."""
    monkeypatch.setattr(demo, "SAMPLES", dict.fromkeys(demo.SAMPLES, (2, 3)))
    monkeypatch.setattr(demo, "JIGSAWS", {"coffee": 6})
    monkeypatch.setattr(demo, "OBJECTS", {"cookie": 2})


def offline(*_: Any, **__: Any) -> None:
    raise AssertionError("the network was used")


@pytest.mark.usefixtures("small_samples")
def test_everything_is_there_and_said_to_be_there(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.socket.connect", offline)
    out = tmp_path / "demo"
    run("demo", ["--out", str(out), "--model", str(tiny_model)])
    text = capsys.readouterr().out
    for name in demo.SAMPLES:
        assert f"{name}, cut 2x3" in text
        puzzle = read_puzzle(out / name / "puzzle")
        assert puzzle.truth is not None
        assert len(read_assembly(out / name / "solved", puzzle).poses) == 6
        for picture in ("before-after.png", "confidence.png", "solved/steps.gif", "solved/assembled.png"):
            with Image.open(out / name / picture) as image:
                image.load()
        for picture in ("before-after.png", "confidence.png", "solved/steps.gif"):
            assert f"  {out / name / picture}\n" in text
    assert len(re.findall("score: .* pieces (right|fit together)", text)) == 3
    assert "coffee, cut into 6 pieces with tabs" in text
    assert (out / "coffee-tabs" / "solved" / "plan.png").stat().st_size > 1000
    assert (out / "coffee-tabs" / "before-after.png").exists()
    assert "cookie, broken into 2 pieces" in text
    assert len(re.findall("score: .* fragments (right|fit together)", text)) == 1
    assert (out / "cookie" / "solved" / "assembled.glb").stat().st_size > 1000
    assert (out / "cookie" / "before-after.png").exists()
    assert f"diffassemble solve {out / 'coffee-tabs' / 'puzzle'}" in text


def test_an_earlier_demo_is_replaced_only_if_asked(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "SAMPLES", {"coffee": (2, 3)})
    monkeypatch.setattr(demo, "JIGSAWS", {})
    monkeypatch.setattr(demo, "OBJECTS", {})
    words = ["--out", str(tmp_path / "demo"), "--model", str(tiny_model)]
    run("demo", words)
    with pytest.raises(InputError, match="already exists; choose another --out or pass --overwrite"):
        run("demo", words)
    run("demo", [*words, "--overwrite", "--seed", "1"])
    (tmp_path / "demo" / "mine.txt").touch()
    with pytest.raises(InputError, match=r"holds other files \(mine\.txt\)"):
        run("demo", [*words, "--overwrite"])
    capsys.readouterr()


def test_without_weights_nothing_is_written(command: Callable[..., Any], tmp_path: Path) -> None:
    done = command("demo", "--out", tmp_path / "demo", "--model", tmp_path / "nowhere")
    assert (done.code, done.out) == (2, "")
    assert "no model" in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_samples_are_a_portrait_and_a_wide_picture() -> None:
    assert demo.SAMPLES == {"astronaut": (6, 6), "chelsea": (6, 8)}
    for name, (rows, cols) in demo.SAMPLES.items():
        puzzle = demo._sample(name, rows, cols, seed=0)
        assert len(puzzle) == rows * cols
        assert puzzle.pieces.size >= 48
