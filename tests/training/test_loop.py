"""Runs end at the same place, however often they are killed on the way; one step, its pace, the moving average."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diffassemble.core import InputError
from diffassemble.network.denoiser import Denoiser
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.jigsaw import JigsawTask
from diffassemble.training.loop import Learner, follow, learning_rate, make_fabric, train
from diffassemble.training.run_folder import FILE, read_checkpoint


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
    """A run that was never interrupted; nobody may write there."""
    folder = tmp_path_factory.mktemp("runs") / "straight"
    train(quick(), JigsawTask(quick()), folder, resume=False)
    return folder


class Struck(Exception):
    """The power fails."""


class StruckTask(JigsawTask):
    """Fails at one step."""

    at = 3

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        if step == self.at:
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
    config = quick()
    assert sorted(path.name for path in finished.iterdir()) == ["best", FILE, "config.json", "last", "log.csv"]
    header, *rows = (finished / "log.csv").read_text().splitlines()
    assert header.startswith("step,minutes,loss,learning_rate,score,")
    assert [row.split(",")[0] for row in rows] == ["3", "6"]
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    before = (tmp_path / "last" / "model.safetensors").read_bytes()
    train(config, JigsawTask(config), tmp_path, resume=True)
    assert (tmp_path / "last" / "model.safetensors").read_bytes() == before


def test_another_model_does_not_go_on(quick: Callable[..., Config], tmp_path: Path) -> None:
    config, other = quick(steps=1), quick(model={"width": 64})
    train(config, JigsawTask(config), tmp_path, resume=False)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(InputError, match="another model"):
        train(other, JigsawTask(other), tmp_path, resume=True)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize("seed", range(3))
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


def learner_of(config: Config) -> Learner:
    return Learner(JigsawTask(config), config.training, make_fabric(config.training))


def test_learning_rate_rises_stays_and_falls() -> None:
    training = TrainingConfig(steps=100, warmup=10, decay=0.4, learning_rate=1.0)
    rates = [learning_rate(step, training) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * step for step in range(1, 11)])
    assert set(rates[10:60]) == {1.0}
    assert rates[60:] == pytest.approx([(100 - step) / 40 for step in range(60, 100)])
    assert 0 < rates[-1] < 0.03


def test_the_average_follows_slowly_and_keeps_counters() -> None:
    model, average = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    nn.init.constant_(model.weight, 1.0)
    nn.init.constant_(average.weight, 0.0)
    model.num_batches_tracked += 5
    expected = 0.0
    for decay in (0.5, 0.9, 0.9):
        follow(average, model, decay)
        expected = decay * expected + (1 - decay) * 1.0
    torch.testing.assert_close(average.weight.detach(), torch.full((2,), expected))
    assert average.num_batches_tracked == 5
    assert model.weight.tolist() == [1.0, 1.0]


class Repeated(JigsawTask):
    """The same batch at every step, which can be learnt by heart."""

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        return super().loss(model, 0, rank, world)


def test_learning_lowers_the_loss(tiny: Callable[..., Config]) -> None:
    config = tiny(model={"votes": False, "edge_features": False}, steps=30, learning_rate=1e-2, decay=0.0)
    learner = Learner(Repeated(config), config.training, make_fabric(config.training))
    losses = [learner.step() for _ in range(30)]
    assert losses[-1] < 0.25 * losses[0]


def test_dropout_is_taken_up_again_too(tiny: Callable[..., Config], tmp_path: Path) -> None:
    class Forgetful(JigsawTask):
        def build(self) -> Denoiser:
            network = super().build()
            network.head.insert(0, nn.Dropout(0.5))
            return network

    training = tiny().training
    task = Forgetful(tiny())
    straight, first, second = (Learner(task, training, make_fabric(training)) for _ in range(3))
    losses = [straight.step() for _ in range(3)]
    assert [first.step()] == losses[:1]
    second.restore(first.checkpoint(0.0, 0.0), tmp_path)
    torch.rand(100)
    assert [second.step(), second.step()] == losses[1:]


def test_a_learner_can_begin_with_the_weights_of_another(tiny: Callable[..., Config], tmp_path: Path) -> None:
    trained = learner_of(tiny(seed=1))
    trained.model.save_pretrained(tmp_path / "trained")
    begun = learner_of(tiny(start_from=str(tmp_path / "trained")))
    for name, value in trained.model.state_dict().items():
        assert torch.equal(value, begun.model.state_dict()[name]), name
        assert torch.equal(value, begun.average.state_dict()[name]), name
    with pytest.raises(InputError, match=r"--training\.start-from .*: is a network of another shape"):
        learner_of(tiny(model={"width": 64}, start_from=str(tmp_path / "trained")))


def test_adagrad_learns(tiny: Callable[..., Config]) -> None:
    assert learner_of(tiny(optimizer="adagrad")).step() > 0
