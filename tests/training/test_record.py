"""The folder of a run tells its story once, whatever happened to the process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from diffassemble.network.denoiser import Denoiser
from diffassemble.training.config import Config, read_config
from diffassemble.training.run_folder import Record


def row(step: int) -> dict[str, str]:
    return {"step": str(step), "minutes": "0.1"}


@pytest.fixture
def network(tiny: Callable[..., Config]) -> Denoiser:
    return Denoiser(tiny().model)


def test_configuration_is_kept(tiny: Callable[..., Config], tmp_path: Path) -> None:
    Record(tmp_path / "new", tiny(), 0, -1.0)
    assert read_config(tmp_path / "new" / "config.json", tiny()) == tiny()


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


def test_a_new_run_starts_a_new_log(tiny: Callable[..., Config], tmp_path: Path, network: Denoiser) -> None:
    Record(tmp_path, tiny(), 0, -1.0).scored(network, row(10), {"score": 1.0})
    Record(tmp_path, tiny(), 0, -1.0)
    assert not (tmp_path / "log.csv").exists()
    (tmp_path / "log.csv").touch()
    Record(tmp_path, tiny(), 0, -1.0)
    assert not (tmp_path / "log.csv").exists()
