"""Runs end at the same place, however often they are killed; what they keep and show; logs and precision."""

from __future__ import annotations

import csv
import io
import os
import pickle
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, nn

from diffassemble.core import InputError
from diffassemble.network.denoiser import Denoiser
from diffassemble.training import precision, run_folder
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.jigsaw import JigsawTask
from diffassemble.training.loop import Learner, follow, learning_rate, make_fabric, train
from diffassemble.training.presets import PRESETS
from diffassemble.training.run_folder import FILE, Checkpoint, Progress, Record, read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def quick(tiny: Callable[..., Config]) -> Callable[..., Config]:
    """Little to learn and little to validate, since all runs here are made twice."""

    def make(model: dict[str, Any] | None = None, **changes: Any) -> Config:
        config = tiny(model={"edge_features": False, "votes": False, **(model or {})}, **changes)
        data = replace(config.data, folders=config.data.folders[:1], grids=(2, 2), missing=0.0)
        return replace(config, data=data)

    return make


@pytest.fixture(scope="module")
def finished(quick: Callable[..., Config], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never interrupted; no test may write there."""
    folder = tmp_path_factory.mktemp("runs") / "straight"
    train(quick(), JigsawTask(quick()), folder, resume=False, logger="tensorboard")
    return folder


class Struck(Exception):
    """The power fails."""


class StruckTask(JigsawTask):
    """Fails at one step."""

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        if step == 3:
            raise Struck
        return super().loss(model, step, rank, world)


def assert_same_end(one: Path, two: Path) -> None:
    """Bit for bit the same state, the same log but for times and smoothed losses, and the same weights."""
    first, second = read_checkpoint(one), read_checkpoint(two)
    assert (first.step, first.best) == (second.step, second.best)
    for part in ("weights", "average"):
        for name, value in getattr(first, part).items():
            assert torch.equal(value, getattr(second, part)[name]), name
    assert str(first.optimizer) == str(second.optimizer)
    for name in ("best", "last"):
        weights = [(folder / name / "model.safetensors").read_bytes() for folder in (one, two)]
        assert weights[0] == weights[1]
    rows = [[line.split(",") for line in (folder / "log.csv").read_text().splitlines()] for folder in (one, two)]
    assert [row[:1] + row[3:] for row in rows[0]] == [row[:1] + row[3:] for row in rows[1]]


@pytest.mark.parametrize("minutes", [0.0, 60.0], ids=["after a checkpoint", "before the first one"])
def test_a_resumed_run_ends_where_the_uninterrupted_one_does(
    quick: Callable[..., Config], finished: Path, tmp_path: Path, minutes: float
) -> None:
    begun = quick(checkpoint_minutes=minutes)
    with pytest.raises(Struck):
        train(begun, StruckTask(begun), tmp_path / "struck", resume=False)
    kept = read_checkpoint(tmp_path / "struck")
    assert (kept is None) if minutes else (kept is not None and kept.step == 3)
    train(quick(), JigsawTask(quick()), tmp_path / "struck", resume=True)
    assert_same_end(finished, tmp_path / "struck")


def test_a_finished_run_left_what_it_promises_and_has_nothing_to_do(
    quick: Callable[..., Config], finished: Path, tmp_path: Path
) -> None:
    names = ["best", FILE, "config.json", "last", "log.csv", "tensorboard"]
    assert sorted(path.name for path in finished.iterdir()) == names
    rows = list(csv.DictReader((finished / "log.csv").read_text().splitlines()))
    assert list(rows[0])[:5] == ["step", "minutes", "loss", "learning_rate", "score"]
    assert [row["step"] for row in rows] == ["3", "6"]
    logged = EventAccumulator(str(finished / "tensorboard")).Reload()
    for name in ("loss", "score"):
        written = [(int(row["step"]), pytest.approx(float(row[name]), abs=1e-4)) for row in rows]
        assert [(one.step, one.value) for one in logged.Scalars(name)] == written
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    before = [(tmp_path / name).read_bytes() for name in ("last/model.safetensors", FILE)]
    train(quick(), JigsawTask(quick()), tmp_path, resume=True)
    assert (tmp_path / "last" / "model.safetensors").read_bytes() == before[0]
    other = quick(model={"width": 64})
    with pytest.raises(InputError, match="another model"):
        train(other, JigsawTask(other), tmp_path, resume=True)
    assert read_checkpoint(tmp_path).step == 6


@pytest.mark.parametrize("seed", range(2))
def test_kill_9_at_any_moment(quick: Callable[..., Config], finished: Path, tmp_path: Path, seed: int) -> None:
    """In a step, before and after the checkpoint is written, and half-way through writing it."""
    chance = Random(seed)
    steps = []
    for kill in (True, True, False):
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            if kill:
                die_at(chance)
            train(quick(), JigsawTask(quick()), tmp_path / "killed", resume=True)
            os._exit(0)
        chance.random()  # as the child has drawn, so that the next one dies elsewhere
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in ((0, -9) if kill else (0,))
        checkpoint = read_checkpoint(tmp_path / "killed")
        steps.append(checkpoint.step if checkpoint is not None else 0)
    assert steps == sorted(steps)
    assert steps[-1] == 6
    assert_same_end(finished, tmp_path / "killed")


def die_at(chance: Random) -> None:
    """End this process without warning at some of the calls that write and read files, or compute a loss."""
    left, sync, loss = int(20 * chance.random()), os.fsync, JigsawTask.loss

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args)

        return run

    os.fsync = counted(sync)
    JigsawTask.loss = counted(loss)  # type: ignore[method-assign]


def test_learning_rate_rises_stays_and_falls() -> None:
    training = TrainingConfig(steps=100, warmup=10, decay=0.4, learning_rate=1.0)
    rates = [learning_rate(step, training) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * step for step in range(1, 11)])
    assert set(rates[10:60]) == {1.0}
    assert rates[60:] == pytest.approx([(100 - step) / 40 for step in range(60, 100)])


def test_the_average_follows_slowly_and_keeps_counters() -> None:
    model, average = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    nn.init.constant_(average.weight, 0.0)
    model.num_batches_tracked += 5
    expected = 0.0
    for decay in (0.5, 0.9, 0.9):
        follow(average, model, decay)
        expected = decay * expected + (1 - decay) * 1.0
    torch.testing.assert_close(average.weight.detach(), torch.full((2,), expected))
    assert average.num_batches_tracked == 5
    assert model.weight.tolist() == [1.0, 1.0]


def test_dropout_is_taken_up_again_too(quick: Callable[..., Config], tmp_path: Path) -> None:
    class Forgetful(JigsawTask):
        def build(self) -> Denoiser:
            network = super().build()
            network.head.insert(0, nn.Dropout(0.5))
            return network

    training = quick().training
    task = Forgetful(quick())
    straight, first, second = (Learner(task, training, make_fabric(training)) for _ in range(3))
    losses = [straight.step() for _ in range(3)]
    assert [first.step()] == losses[:1]
    second.restore(first.checkpoint(0.0, 0.0), tmp_path)
    torch.rand(100)
    assert [second.step(), second.step()] == losses[1:]


def test_a_learner_can_begin_with_the_weights_of_another(quick: Callable[..., Config], tmp_path: Path) -> None:
    def learner_of(config: Config) -> Learner:
        return Learner(JigsawTask(config), config.training, make_fabric(config.training))

    trained = learner_of(quick(seed=1))
    trained.model.save_pretrained(tmp_path / "trained")
    begun = learner_of(quick(start_from=str(tmp_path / "trained"), optimizer="adagrad"))
    for name, value in trained.model.state_dict().items():
        assert torch.equal(value, begun.model.state_dict()[name]), name
        assert torch.equal(value, begun.average.state_dict()[name]), name
    assert begun.step() > 0
    with pytest.raises(InputError, match=r"--training\.start-from .*: is a network of another shape"):
        learner_of(quick(model={"width": 64}, start_from=str(tmp_path / "trained")))


# What a run keeps.


def checkpoint(step: int) -> Checkpoint:
    weights = {"a": torch.full((4,), float(step))}
    return Checkpoint(step, 1.5, 87.5, weights, weights, {"state": {}, "param_groups": []})


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checkpoint(checkpoint(1), tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_checkpoint(checkpoint(2), tmp_path)
    assert read_checkpoint(tmp_path).step == 1
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch trapped",)


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense" * 50, *(pickle.dumps(x, protocol=2) for x in (Trap(), [1, 2], {"epoch": 3}))],
    ids=["empty", "nonsense", "trap", "list", "another program's"],
)
def test_other_files_are_refused_and_never_run(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint\.pt: is (not a checkpoint|empty)"):
        read_checkpoint(tmp_path)
    assert not (tmp_path / "trapped").exists()


def row(step: int) -> dict[str, str]:
    return {"step": str(step), "minutes": "0.1"}


def lines_of(folder: Path) -> list[str]:
    return (folder / "log.csv").read_text().splitlines()


def test_only_better_networks_are_kept_and_repeated_steps_are_logged_once(
    tiny: Callable[..., Config], tmp_path: Path
) -> None:
    network, record = Denoiser(tiny().model), Record(tmp_path, tiny(), 0, -1.0)
    kept = []
    for step, score in ((10, 50.0), (20, 50.0), (30, 60.0)):
        record.scored(network, row(step), {"score": score, "a, b": score})
        kept.append((tmp_path / "best" / "model.safetensors").read_bytes())
        network.head[0].bias.data += 1
    assert kept[0] == kept[1] != kept[2]
    assert record.best == 60.0
    assert lines_of(tmp_path)[0] == 'step,minutes,score,"a, b"'
    assert lines_of(tmp_path)[3] == "30,0.1,60.00,60.00"
    with (tmp_path / "log.csv").open("a") as log:
        log.write("40,0.")  # cut short by a kill
    Record(tmp_path, tiny(), 25, 60.0).scored(network, row(30), {"score": 1.0, "a, b": 2.0})
    assert [line.split(",")[0] for line in lines_of(tmp_path)] == ["step", "10", "20", "30"]
    Record(tmp_path, tiny(), 0, -1.0)  # begins anew
    assert not (tmp_path / "log.csv").exists()


def test_a_row_a_minute(tiny: Callable[..., Config], tmp_path: Path) -> None:
    now = 1000.0
    record = Record(tmp_path, tiny(), 0, 90.0, clock=lambda: now)
    for step in range(1, 8):
        now += 20.0
        record.passed(row(step))
    record.scored(Denoiser(tiny().model), row(8), {"score": 50.0})
    assert lines_of(tmp_path) == ["step,minutes,score", "3,0.1,", "6,0.1,", "8,0.1,50.00"]


def test_progress_is_a_line_a_minute_in_a_file_and_a_live_bar_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 1000.0
    console = Console(file=io.StringIO(), width=200)
    progress = Progress(console, 1000, 0, 600.0, (100, "pieces"), clock=lambda: now)
    with progress.bar:
        for step in range(1, 11):
            now += 20.0
            progress.advance(step, 2.0)
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "step 4/1000 · loss 2.0000 · 5 pieces/s · 5 h 32 min left"
    assert len(lines) == 2
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    for some in (console, Console(quiet=True)):
        progress = Progress(some, 10, 0, 600.0, (100, "pieces"), clock=count(step=100).__next__)
        with progress.bar:
            progress.advance(1, 1.25)
            progress.report({"score": 87.25, "faces 6x6": 90.0})
            progress.advance(2, 1.25)
            progress.bar.refresh()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for words in ("━", "2/10", "loss 1.2500", "validation 87.2 %", "pieces/s", "left"):
        assert words in text
    assert "validation: score 87.2 · faces 6x6 90.0" in text
    assert capsys.readouterr() == ("", "")


def test_loggers_that_are_not_installed_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run_folder, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'diffassemble\[wandb\]'"):
        run_folder.make_log("wandb", tmp_path, 0)
    assert run_folder.make_log("csv", tmp_path, 0) is None


# bfloat16 is used where it works and is faster, and never ends the program.

DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
REASON = "bfloat16 does not work here"


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], list[str]]]:
    """Lets every trial be another, on a machine of which nothing is known; gives the list of those made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    precision.bfloat16.cache_clear()
    real = precision.try_bfloat16

    def trial(script: str) -> list[str]:
        made: list[str] = []
        monkeypatch.setattr(precision, "try_bfloat16", lambda: (made.append(script), real(script))[1])
        return made

    yield trial
    precision.bfloat16.cache_clear()


def test_a_processor_that_dies_of_it_trains_in_float32_and_reports_it(
    pretend: Callable[[str], list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    pretend(DIES)
    make_fabric(TrainingConfig())
    err = capfd.readouterr().err
    assert f"{REASON} (the trial was ended by SIGILL); training in float32\n" in err
    assert "Traceback" not in err
    with pytest.raises(InputError, match=r"--training\.precision bf16-mixed: .* SIGILL\); pass auto or 32-true"):
        make_fabric(TrainingConfig(precision="bf16-mixed"))


@pytest.mark.parametrize(
    ("trial", "speedup", "reason"),
    [("print(2.0)", 2.0, ""), ("print()", 0.0, f"{REASON} (no answer)"), ("1 / 0", 0.0, f"{REASON} (ZeroDivision")],
)
def test_trials(trial: str, speedup: float, reason: str) -> None:
    found, why = precision.try_bfloat16(trial)
    assert found == speedup
    assert why.startswith(reason)
    assert bool(why) == bool(reason)


def test_a_trial_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(words: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr(precision.subprocess, "run", hang)
    assert precision.try_bfloat16() == (0.0, f"{REASON} (no answer within 120 s)")


@pytest.mark.parametrize(("trial", "wanted"), [("print(2.0)", "bf16-mixed"), ("print(0.7)", "32-true")])
def test_the_faster_one_is_taken_and_remembered(pretend: Callable[[str], list[str]], trial: str, wanted: str) -> None:
    made = pretend(trial)
    for _ in range(2):
        assert precision.choose_precision("auto", "cpu") == (wanted, "")
        precision.bfloat16.cache_clear()
    assert len(made) == 1
    assert precision.choose_precision("auto", "cuda") == ("bf16-mixed", "")


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("name", ["jigsaw", "edge-model", "upright"])
def test_training_in_bfloat16(name: str, configs: dict[str, Config], tmp_path: Path) -> None:
    config = configs[name]
    model = replace(config.model, edge_model="edge-model") if name == "jigsaw" else config.model
    config = replace(config, model=model, training=replace(config.training, precision="bf16-mixed", steps=1))
    network = train(config, PRESETS[name].learner(config), tmp_path / "run", resume=False)
    assert all(value.isfinite().all() for value in network.state_dict().values())
