"""The options of `evaluate`, and that each says what it is for."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import pytest
import tyro

from diffassemble.cli.evaluate_options import EvaluateOptions


def parsed(text: str) -> EvaluateOptions:
    return tyro.cli(EvaluateOptions, args=text.split())


def test_nothing_asked() -> None:
    options = parsed("")
    assert options == EvaluateOptions()
    assert (options.split, options.subset, options.size, options.budget) == ("val", "everyday", 32, math.inf)


def test_everything_asked() -> None:
    options = parsed(
        "--data a b --table 1 --rows x=y --anchor none largest --missing 0 0.3 --noise 0.001 --points 0 5000 "
        "--pieces 8 20 --seeds 5 --split train --subset example --json r.json --figure f.png"
    )
    assert options.data == ("a", "b")
    assert options.anchor == ("none", "largest")
    assert (options.missing, options.noise, options.points) == ((0.0, 0.3), (0.001,), (0, 5000))
    assert (options.pieces, options.seeds, options.split, options.subset) == ((8, 20), 5, "train", "example")
    assert (options.json, options.figure) == (Path("r.json"), Path("f.png"))


@pytest.mark.parametrize("bad", ["--anchor smallest", "--split test", "--pieces 2", "--points many"])
def test_bad_words_exit_with_2(bad: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        parsed(bad)
    assert stopped.value.code == 2


def test_every_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    text = capsys.readouterr().out
    for field in fields(EvaluateOptions):
        assert f"--{field.name.replace('_', '-')}" in text
    assert "largest piece stands at its true pose" in " ".join(text.replace("│", " ").split())
