"""Options of a run: the preset's, changed on the command line, and remembered when it goes on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from diffassemble.cli.train import parse_run
from diffassemble.core import InputError
from diffassemble.training.config import Config
from diffassemble.training.presets import PRESETS


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
    assert options.config.model == replace(PRESETS["jigsaw"].config.model, width=64, votes=False)
    assert options.config.data.folders == (Path("a"), Path("b"))
    assert options.config.data.shares == (1.0, 2.0)
    assert options.config.data.grids == (3, 5)
    assert options.config.training.minutes == 5.0
    assert folder == Path("x")


def test_a_run_that_goes_on_remembers_its_options_but_not_its_minutes(tmp_path: Path) -> None:
    words = "--model.width 64 --data.folders a b --training.minutes 5 --training.steps 70"
    begun, _ = parse_run("jigsaw", words.split())
    write_run(begun.config, tmp_path / "run")
    options, _ = parse_run("jigsaw", ["--resume", "--out", str(tmp_path / "run"), "--training.pieces", "500"])
    remembered = replace(begun.config.training, minutes=PRESETS["jigsaw"].config.training.minutes, pieces=500)
    assert options.config == replace(begun.config, training=remembered)


def test_the_upright_classifier_has_options_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "--data.folders a b --data.shares 1 2 --model.widths 8 16 --training.pictures 4"
    begun, folder = parse_run("upright", words.split())
    preset = PRESETS["upright"].config
    assert folder == Path("runs/upright")
    assert begun.config.model == replace(preset.model, widths=(8, 16))
    assert begun.config.training == replace(preset.training, pictures=4)
    write_run(begun.config, tmp_path / "run")
    assert parse_run("upright", ["--resume", "--out", str(tmp_path / "run")])[0].config == begun.config
    for foreign in ("--data.grids 3 5", "--training.noises 2", "--model.votes"):
        with pytest.raises(SystemExit) as stopped:
            parse_run("upright", foreign.split())
        assert stopped.value.code == 2
    capsys.readouterr()


def test_a_run_of_another_kind_does_not_go_on(tmp_path: Path) -> None:
    write_run(PRESETS["upright"].config, tmp_path / "run")
    with pytest.raises(InputError, match=r"config\.json: is not the configuration of a run of this preset"):
        parse_run("jigsaw", ["--resume", "--out", str(tmp_path / "run")])


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


@pytest.mark.parametrize("preset", ["ablation-gcn", "upright"])
def test_help_shows_all_options(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_run(preset, ["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for part in ("model", "data", "training"):
        for name in asdict(getattr(PRESETS[preset].config, part)):
            assert f"--{part}.{name.replace('_', '-')}" in text
