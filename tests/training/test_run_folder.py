"""What a run leaves in its folder and shows while it lasts."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
import torch
from rich.console import Console

from diffassemble.core import InputError
from diffassemble.network.denoiser import Denoiser
from diffassemble.training.config import Config
from diffassemble.training.run_folder import FILE, Checkpoint, Progress, Record, read_checkpoint, write_checkpoint


def checkpoint(step: int, size: int = 4) -> Checkpoint:
    weights = {"a": torch.full((size,), float(step))}
    return Checkpoint(step, 1.5, 87.5, weights, weights, {"state": {}, "param_groups": []})


def test_a_full_disk_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def network(tiny: Callable[..., Config]) -> Denoiser:
    return Denoiser(tiny().model)


def test_only_better_networks_are_kept(tiny: Callable[..., Config], tmp_path: Path, network: Denoiser) -> None:
    record = Record(tmp_path, tiny(), 0, -1.0)
    weights = tmp_path / "best" / "model.safetensors"
    record.scored(network, row(1), {"score": 50.0, "faces": 50.0})
    first = weights.read_bytes()
    network.head[0].bias.data += 1
    record.scored(network, row(2), {"score": 50.0, "faces": 50.0})
    assert weights.read_bytes() == first
    record.scored(network, row(3), {"score": 60.0, "faces": 60.0})
    assert weights.read_bytes() != first
    assert record.best == 60.0
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines[0] == "step,minutes,score,faces"
    assert lines[3] == "3,0.1,60.00,60.00"
    assert len(lines) == 4


def test_a_row_a_minute(tiny: Callable[..., Config], tmp_path: Path, network: Denoiser) -> None:
    now = 1000.0
    record = Record(tmp_path, tiny(), 0, -1.0, clock=lambda: now)
    for step in range(1, 8):
        now += 20.0
        record.passed(row(step))
    record.scored(network, row(8), {"score": 50.0})
    assert (tmp_path / "log.csv").read_text().splitlines() == ["step,minutes,score", "3,0.1,", "6,0.1,", "8,0.1,50.00"]
    Record(tmp_path, tiny(), 7, 50.0)
    assert (tmp_path / "log.csv").read_text().splitlines() == ["step,minutes,score", "3,0.1,", "6,0.1,"]


def test_steps_that_are_done_again_stand_there_once(
    tiny: Callable[..., Config], tmp_path: Path, network: Denoiser
) -> None:
    record = Record(tmp_path, tiny(), 0, -1.0)
    for step in (10, 20, 30):
        record.scored(network, row(step), {"score": 1.0, "a, b": 2.0})
    with (tmp_path / "log.csv").open("a") as log:
        log.write("40,0.")  # cut short by a kill
    Record(tmp_path, tiny(), 25, 1.0).scored(network, row(30), {"score": 1.0, "a, b": 2.0})
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["step", "10", "20", "30"]
    assert lines[0] == 'step,minutes,score,"a, b"'
    Record(tmp_path, tiny(), 0, -1.0)  # begins anew
    assert not (tmp_path / "log.csv").exists()


def test_a_line_a_minute_in_a_log_file() -> None:
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


def test_a_live_bar_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    progress = Progress(console, 10, 0, 600.0, batch=(100, "pieces"))
    with progress.bar:
        progress.advance(1, 1.25)
        progress.report({"score": 87.25, "faces 6x6": 90.0})
        progress.advance(2, 1.25)
        progress.bar.refresh()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "━" in text
    for words in ("2/10", "loss 1.2500", "validation 87.2 %", "pieces/s", "left"):
        assert words in text
    assert "validation: score 87.2 · faces 6x6 90.0" in text


def test_other_processes_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(Console(quiet=True), 10, 0, 600.0, batch=(1, "pieces"), clock=count(step=100).__next__)
    with progress.bar:
        progress.advance(1, 2.0)
        progress.report({"score": 1.0})
    assert capsys.readouterr() == ("", "")
