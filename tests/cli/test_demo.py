"""The demo shows what it promises, offline, whatever the weights."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from diffassemble.cli import demo
from diffassemble.io.assemblies import read_assembly
from diffassemble.io.puzzles import read_puzzle


def test_everything_is_there_and_listed(
    command: Callable[..., Any], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.socket.connect", None)  # offline
    few = {"coffee-tabs": ("coffee", 6), "astronaut": ("astronaut", (2, 3)), "cookie": ("cookie", 2)}
    monkeypatch.setattr(demo, "SAMPLES", few)
    out = tmp_path / "demo"
    words = ["demo", "--out", out, "--model", tiny_model]
    done = command(*words)
    assert done.code == 0, done.err
    for line in ("astronaut, cut 2x3", "coffee, cut into 6 pieces with tabs", "cookie, broken into 2 pieces"):
        assert line in done.out
    puzzle = read_puzzle(out / "astronaut" / "puzzle")
    assert puzzle.truth is not None
    assert len(read_assembly(out / "astronaut" / "solved", puzzle).poses) == 6
    for folder in ("astronaut", "coffee-tabs", "cookie"):
        for picture in ("before-after.png", "confidence.png", "solved/steps.gif"):
            with Image.open(out / folder / picture) as image:
                image.load()
            assert f"  {out / folder / picture}\n" in done.out
    assert len(re.findall("score: .* (right|fit together)", done.out)) == 3
    assert (out / "coffee-tabs" / "solved" / "plan.png").stat().st_size > 1000
    assert (out / "cookie" / "solved" / "assembled.glb").stat().st_size > 1000
    assert f"diffassemble solve {out / 'coffee-tabs' / 'puzzle'}" in done.out
    # An earlier demo is replaced only if that is asked for, files of others never.
    assert "already exists; choose another --out or pass --overwrite" in command(*words).err
    (out / "mine.txt").touch()
    assert re.search(r"holds other files \(mine\.txt\)", command(*words, "--overwrite").err)


def test_without_weights_nothing_is_written(command: Callable[..., Any], tmp_path: Path) -> None:
    done = command("demo", "--out", tmp_path / "demo", "--model", tmp_path / "nowhere")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "no model" in done.err
    assert not list(tmp_path.iterdir())
