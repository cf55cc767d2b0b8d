"""bfloat16 is used where it works and is faster, and never ends the program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.training import precision
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.loop import make_fabric, train
from diffassemble.training.tasks import TASKS

DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing is known of this machine yet, and what is pretended here is forgotten."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    precision.bfloat16.cache_clear()
    yield
    precision.bfloat16.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, trial: str) -> list[str]:
    """Let every trial be this one; gives the list of those made."""
    real, made = precision.try_bfloat16, []

    def tried() -> tuple[precision.Verdict, str]:
        made.append(trial)
        return real(trial)

    monkeypatch.setattr(precision, "try_bfloat16", tried)
    return made


def test_a_processor_that_dies_of_it_trains_in_float32_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, DIES)
    make_fabric(TrainingConfig())
    said = capfd.readouterr().err
    assert precision.choose_precision("cpu")[0] == "32-true"
    line = "bfloat16 does not work here (the trial was ended by SIGILL); training in float32\n"
    assert line in said
    assert "Traceback" not in said


def test_bfloat16_is_refused_where_it_would_end_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, DIES)
    with pytest.raises(InputError, match=r"--training\.precision bf16-mixed: .* SIGILL\); pass auto or 32-true"):
        make_fabric(TrainingConfig(precision="bf16-mixed"))


def test_a_trial_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(words: list[str], *, timeout: float, **_: object) -> None:
        raise subprocess.TimeoutExpired(words, timeout)

    monkeypatch.setattr(precision.subprocess, "run", hang)
    assert precision.try_bfloat16() == ("fails", "bfloat16 does not work here (no answer within 120 s)")


@pytest.mark.parametrize(
    ("trial", "verdict"), [("print(2.0)", "faster"), ("print(1.0)", "slower"), ("print()", "fails"), ("1 / 0", "fails")]
)
def test_verdicts(trial: str, verdict: str) -> None:
    found, reason = precision.try_bfloat16(trial)
    assert found == verdict
    assert bool(reason) == (verdict == "fails")
    assert "\n" not in reason


@pytest.mark.parametrize(("trial", "wanted"), [("print(2.0)", "bf16-mixed"), ("print(0.7)", "32-true")])
def test_the_faster_one_is_taken_and_remembered(monkeypatch: pytest.MonkeyPatch, trial: str, wanted: str) -> None:
    made = pretend(monkeypatch, trial)
    for _ in range(2):
        assert precision.choose_precision("cpu") == (wanted, "")
        precision.bfloat16.cache_clear()
    assert len(made) == 1
    assert precision.choose_precision("cuda") == ("bf16-mixed", "")


@pytest.mark.parametrize("name", ["jigsaw", "edge-model", "upright"])
def test_training_in_bfloat16(name: str, configs: dict[str, Config], tmp_path: Path) -> None:
    verdict, reason = precision.bfloat16()
    if verdict == "fails":
        pytest.skip(reason)
    config = configs[name]
    heard = replace(config.model, edge_model="edge-model") if name == "jigsaw" else config.model
    config = replace(config, model=heard, training=replace(config.training, precision="bf16-mixed"))
    network = train(config, TASKS[name](config), tmp_path / "run", resume=False)
    assert all(value.isfinite().all() for value in network.state_dict().values())
