"""Runs end at the same place, however often they are killed on the way."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diffassemble.core import InputError
from diffassemble.network.denoiser import Denoiser
from diffassemble.training.config import Config
from diffassemble.training.jigsaw import JigsawTask
from diffassemble.training.loop import train
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
    assert first is not None
    assert second is not None
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


def test_a_run_leaves_what_it_promises(quick: Callable[..., Config], tmp_path: Path) -> None:
    network = train(quick(), JigsawTask(quick()), tmp_path, resume=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", FILE, "config.json", "last", "log.csv"]
    last = Denoiser.from_pretrained(tmp_path / "last")
    for name, value in network.state_dict().items():
        assert torch.equal(value, last.state_dict()[name])
    header, *rows = (tmp_path / "log.csv").read_text().splitlines()
    assert header.startswith("step,minutes,loss,learning_rate,score,")
    assert [row.split(",")[0] for row in rows] == ["3", "6"]


def test_a_resumed_run_ends_where_the_uninterrupted_one_does(
    quick: Callable[..., Config], finished: Path, tmp_path: Path
) -> None:
    config = quick()
    with pytest.raises(Struck):
        train(config, StruckTask(config), tmp_path / "struck", resume=False)
    struck = read_checkpoint(tmp_path / "struck")
    assert struck is not None
    assert struck.step == 3
    train(config, JigsawTask(config), tmp_path / "struck", resume=True)
    assert_same_end(finished, tmp_path / "struck")


def test_a_run_struck_before_its_first_checkpoint_starts_anew(
    quick: Callable[..., Config], finished: Path, tmp_path: Path
) -> None:
    config = quick()
    late = quick(checkpoint_minutes=60.0)
    with pytest.raises(Struck):
        train(late, StruckTask(late), tmp_path / "struck", resume=False)
    assert not (tmp_path / "struck" / FILE).exists()
    train(config, JigsawTask(config), tmp_path / "struck", resume=True)
    assert_same_end(finished, tmp_path / "struck")


def test_minutes_limit_one_call(quick: Callable[..., Config], tmp_path: Path) -> None:
    straight, short = quick(steps=5), quick(steps=5, minutes=0.05 / 60)
    train(straight, JigsawTask(straight), tmp_path / "straight", resume=False)
    calls, done = 0, 0
    while done < 5:
        train(short, JigsawTask(short), tmp_path / "short", resume=calls > 0)
        checkpoint = read_checkpoint(tmp_path / "short")
        assert checkpoint is not None
        assert checkpoint.step > done
        calls, done = calls + 1, checkpoint.step
    assert calls > 1
    assert_same_end(tmp_path / "straight", tmp_path / "short")


def test_a_finished_run_has_nothing_to_do(quick: Callable[..., Config], finished: Path, tmp_path: Path) -> None:
    config = quick()
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


def test_kill_9_at_any_moment(quick: Callable[..., Config], tmp_path: Path) -> None:
    config = quick(steps=24, validate_every=12)
    train(config, JigsawTask(config), tmp_path / "straight", resume=False)
    delays = (0.05 + 0.4 * torch.rand(3)).tolist()
    steps = []
    for delay in [*delays, None]:
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            train(config, JigsawTask(config), tmp_path / "killed", resume=True)
            os._exit(0)
        if delay is not None:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in ((0, -9) if delay is not None else (0,)), (status, delays)
        checkpoint = read_checkpoint(tmp_path / "killed")
        steps.append(checkpoint.step if checkpoint is not None else 0)
    assert steps == sorted(steps)
    assert steps[-1] == 24
    assert_same_end(tmp_path / "straight", tmp_path / "killed")
