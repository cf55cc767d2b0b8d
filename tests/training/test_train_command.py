"""diffassemble train as users start, stop and resume it, with a preset's options changed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from diffassemble.cli import train
from diffassemble.cli.arguments import NotUnderstood
from diffassemble.cli.train import parse_run
from diffassemble.training import loop
from diffassemble.training.presets import PRESETS
from diffassemble.training.run_folder import read_checkpoint

Command = Callable[..., Any]
TINY = (
    "--model.features 8 --model.width 32 --model.layers 1 --model.heads 2 --model.pose-width 16 --model.time-width 8 "
    "--model.no-votes --model.no-edge-features --data.grids 2 2 --data.favourite 2 --data.missing 0 "
    "--data.held-apart 1 --training.pieces 8 --training.precision 32-true --training.validate-every 100 "
    "--training.checkpoint-minutes 0"
)

TINY_UPRIGHT = (
    "--model.side 32 --model.hidden 4 --data.shares 1 3 --data.held-apart 1 --training.pictures 4 "
    "--training.precision 32-true --training.validate-every 100 --training.checkpoint-minutes 0"
)


def test_help_lists_the_presets(capsys: pytest.CaptureFixture[str]) -> None:
    train.run(["--help"])
    text = capsys.readouterr().out
    for name, preset in PRESETS.items():
        assert any(line.split(None, 1) == [name, preset.purpose] for line in text.splitlines())
    assert all(len(line) <= 110 for line in text.splitlines())


def timed_by(clock: Callable[[], float]) -> Callable[[], None]:
    """What makes a child process time its run by this clock."""
    return lambda: setattr(loop, "train", partial(loop.train, clock=clock))


@pytest.mark.parametrize("seconds", [1, 61], ids=["quick", "slow"])
@pytest.mark.parametrize(("preset", "tiny"), [("jigsaw", TINY), ("upright", TINY_UPRIGHT)])
def test_minutes_then_resume(
    start: Command, picture_folders: tuple[Path, Path], tmp_path: Path, preset: str, tiny: str, seconds: int
) -> None:
    """However long a step takes; slow ones print lines of progress between."""

    def command(*words: str | Path) -> Any:
        return start(*words, prepare=timed_by(count(step=seconds).__next__))[1]()

    out = tmp_path / "run"
    begin = ["train", preset, *tiny.split(), *["--training.steps", "6", "--out"], out]
    begin += ["--data.folders", *picture_folders]
    first = command(*begin, "--training.minutes", str(10 * seconds / 60))
    assert (first.code, first.err) == (0, "")
    assert first.out.endswith(f"weights: {out / 'last'}; nothing was validated yet, go on with --resume\n")
    assert first.out.startswith("step ") == (seconds > 60)
    assert 0 < read_checkpoint(out).step < 6
    again = command(*begin)
    assert again.code == 2
    assert again.err == f"diffassemble: {out}: holds a run already; pass --resume to go on with it, or another --out\n"
    on = command("train", preset, "--resume", "--out", out)
    assert (on.code, on.err) == (0, "")
    *_, validation, weights = on.out.splitlines()
    assert validation.startswith("validation: score ")
    assert weights.startswith(f"weights: {out / 'best'} (best on held-out pictures) and {out / 'last'}")
    assert read_checkpoint(out).step == 6


@pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_asked_to_stop_saves_and_says_how_to_go_on(
    start: Command, picture_folders: tuple[Path, Path], tmp_path: Path, wish: signal.Signals
) -> None:
    readings = count()

    def clock() -> float:
        """Sends the signal at one of its readings, after the first step."""
        if (reading := next(readings)) == 20:
            os.kill(os.getpid(), wish)
        return reading

    out = tmp_path / "run"
    words = ["train", "jigsaw", *TINY.split(), "--training.steps", "100000", "--training.checkpoint-minutes", "60"]
    done = start(*words, "--data.folders", *picture_folders, "--out", out, prepare=timed_by(clock))[1]()
    assert done.code == 128 + wish, done.err
    step = read_checkpoint(out).step
    assert 0 < step < 100
    assert done.out.endswith(
        f"stopped and saved at step {step}; go on with: diffassemble train jigsaw --resume --out {out}\n"
    )


def test_resume_without_a_checkpoint_is_refused(command: Command, tmp_path: Path) -> None:
    answer = command("train", "jigsaw", "--resume", "--out", tmp_path / "run")
    assert answer.code == 2
    assert "holds no checkpoint to go on from; leave out --resume" in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a preset to train: jigsaw, upright"),
        (["jigsav"], "there is no preset 'jigsav'; name a preset to train"),
        (["jigsaw"], "must be folders of training pictures; pass --data.folders"),
        (["jigsaw", "--data.folders", "nowhere"], "nowhere does not exist; pass a folder of pictures"),
        (["jigsaw", "--data.folders", "empty"], "empty holds no pictures"),
        (["jigsaw", "--data.folders", "broken"], "broken/0.png: is not a picture"),
        (["jigsaw", "--data.folders", "small"], "small/0.png: is 40x30 pixels, but these grids need 83"),
        (["jigsaw", "--data.folders", "wikiart=small"], "get them all from ArtGAN"),
        (["jigsaw", "--data.folders", "small", "--model.heads", "7"], "--model.heads 7: must be a divisor"),
    ],
)
def test_bad_input(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "broken", "small"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "0.png").write_text("no picture")
    Image.effect_noise((40, 30), 50).save(tmp_path / "small" / "0.png")
    before = sorted(tmp_path.rglob("*"))
    done = command("train", *words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("diffassemble: ")
    assert done.err.count("\n") == 1
    assert message in done.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_without_rights_and_a_full_disk_are_reported_in_one_line(
    command: Command, picture_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ["train", "jigsaw", *TINY.split(), "--data.folders", picture_folders[0], "--out"]
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = command(*words, locked / "run", rights=False)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"diffassemble: {locked / 'run'}: Permission denied\n"
    done = command(*words, tmp_path / "run", largest_file=5000)
    assert done.code == 2
    path = tmp_path / "run" / "checkpoint.pt"
    assert done.err == f"diffassemble: {path}: cannot be written (File too large)\n"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.json"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative folders of runs are the test's own."""
    monkeypatch.chdir(tmp_path)


def test_without_options_it_is_the_preset_and_every_value_can_be_changed() -> None:
    options, folder = parse_run("jigsaw-paper-form", [])
    assert options.config == PRESETS["jigsaw-paper-form"].config
    assert folder == Path("runs/jigsaw-paper-form")
    assert not options.resume
    words = "--model.width 64 --model.no-votes --data.folders a b --data.shares 1 2 --data.grids 3 5"
    options, folder = parse_run("jigsaw", [*words.split(), "--training.minutes", "5", "--out", "x"])
    assert options.config.model == replace(PRESETS["jigsaw"].config.model, width=64, votes=False)
    assert options.config.data.folders == (Path("a"), Path("b"))
    assert options.config.data.shares == (1.0, 2.0)
    assert options.config.data.grids == (3, 5)
    assert options.config.training.minutes == 5.0
    assert folder == Path("x")
    with pytest.raises(NotUnderstood, match=r"unrecognized options: --training\.colour"):
        parse_run("jigsaw", ["--training.colour", "red"])


def test_a_run_that_goes_on_remembers_its_options_but_not_its_minutes(tmp_path: Path) -> None:
    words = "--model.width 64 --data.folders a b --training.minutes 5 --training.steps 70"
    begun, _ = parse_run("jigsaw", words.split())
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint.pt").touch()
    (tmp_path / "run" / "config.json").write_text(json.dumps(asdict(begun.config), default=os.fspath))
    options, _ = parse_run("jigsaw", ["--resume", "--out", str(tmp_path / "run"), "--training.pieces", "500"])
    remembered = replace(begun.config.training, minutes=PRESETS["jigsaw"].config.training.minutes, pieces=500)
    assert options.config == replace(begun.config, training=remembered)


@pytest.mark.parametrize("preset", ["ablation-gcn", "upright"])
def test_help_shows_all_options(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_run(preset, ["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for part in ("model", "data", "training"):
        for name in asdict(getattr(PRESETS[preset].config, part)):
            assert f"--{part}.{name.replace('_', '-')}" in text
