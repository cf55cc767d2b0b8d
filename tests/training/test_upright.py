"""The task teaches which way is up, and scores pictures it has not seen."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from diffassemble.datasets.config import DataConfig
from diffassemble.files.images import write_picture
from diffassemble.model.upright import UprightConfig
from diffassemble.training.config import TrainingConfig
from diffassemble.training.learner import Task
from diffassemble.training.upright import UprightTask

SMALL = UprightConfig(size=16, stem=8, widths=(16, 16), dropout=0.0)


@pytest.fixture
def task(tmp_path: Path) -> UprightTask:
    generator = torch.Generator().manual_seed(0)
    for number in range(12):
        fading = torch.linspace(0.9, 0.1, 32)[:, None].expand(3, 32, 32)
        picture = fading + 0.1 * torch.randn(3, 32, 32, generator=generator)
        write_picture(picture.clamp(0, 1), tmp_path / f"{number:02}.png")
    return UprightTask(SMALL, DataConfig(folders=(tmp_path,), held_apart=3), TrainingConfig(steps=40), pictures=8)


def test_is_a_task_and_learns(task: UprightTask) -> None:
    assert isinstance(task, Task)
    torch.manual_seed(0)
    model = task.build()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for step in range(40):
        optimizer.zero_grad()
        task.loss(model, step, 0, 1).backward()
        optimizer.step()
    scores = task.validate(model)
    assert scores["score"] == 100
    assert len(scores) == 3


def test_a_step_is_a_function_of_its_number(task: UprightTask) -> None:
    model = task.build()
    assert task.loss(model, 3, 0, 1) == task.loss(model, 3, 0, 1)
    assert task.loss(model, 3, 0, 1) != task.loss(model, 4, 0, 1)
