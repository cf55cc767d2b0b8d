"""Options of a run: the preset's, changed on the command line, and remembered when it goes on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from diffassemble.cli.run_options import parse_run
from diffassemble.presets import PRESETS
from diffassemble.puzzle import InputError
from diffassemble.training import Config


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No runs of other people are in sight."""
    monkeypatch.chdir(tmp_path)


def write_run(config: Config, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(asdict(config), default=os.fspath))


def test_without_words_it_is_the_preset() -> None:
    options, folder = parse_run("jigsaw-paper-form", [])
    assert options.config == PRESETS["jigsaw-paper-form"].config
    assert folder == Path("runs/jigsaw-paper-form")
    assert not options.resume


def test_every_value_can_be_changed() -> None:
    words = (
        "--model.width 64 --model.no-votes --data.folders a b --data.shares 1 2 --data.grids 3 5 --training.minutes 5"
    )
    options, folder = parse_run("jigsaw", [*words.split(), "--out", "x"])
    assert options.model == replace(PRESETS["jigsaw"].config.model, width=64, votes=False)
    assert options.data.folders == (Path("a"), Path("b"))
    assert options.data.shares == (1.0, 2.0)
    assert options.data.grids == (3, 5)
    assert options.training.minutes == 5.0
    assert folder == Path("x")


def test_a_run_that_goes_on_remembers_its_options_but_not_its_minutes(tmp_path: Path) -> None:
    words = "--model.width 64 --data.folders a b --training.minutes 5 --training.steps 70"
    begun, _ = parse_run("jigsaw", words.split())
    write_run(begun.config, tmp_path / "run")
    options, _ = parse_run("jigsaw", ["--resume", "--out", str(tmp_path / "run"), "--training.pieces", "500"])
    remembered = replace(begun.training, minutes=PRESETS["jigsaw"].config.training.minutes, pieces=500)
    assert options.config == Config(begun.model, begun.data, remembered)


def test_a_run_is_not_begun_twice(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.pt").touch()
    with pytest.raises(InputError, match="holds a run already; pass --resume"):
        parse_run("jigsaw", ["--out", str(tmp_path)])
    assert parse_run("jigsaw", ["--out", str(tmp_path), "--resume"])[0].resume


def test_a_broken_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json: is not the configuration"):
        parse_run("jigsaw", ["--out", str(tmp_path), "--resume"])


def test_unknown_options_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_run("jigsaw", ["--training.colour", "red"])
    assert stopped.value.code == 2
    capsys.readouterr()


def test_help_shows_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_run("ablation-gcn", ["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for part in ("model", "data", "training"):
        for name in asdict(getattr(PRESETS["ablation-gcn"].config, part)):
            assert f"--{part}.{name.replace('_', '-')}" in text
