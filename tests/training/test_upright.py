"""The task teaches which way is up, and scores pictures it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from diffassemble.files.pictures import write_picture
from diffassemble.squares.upright import UprightConfig
from diffassemble.training.config import Config, PictureConfig
from diffassemble.training.pictures import load_square
from diffassemble.training.upright import UprightTask, UprightTraining

Learn = Callable[..., tuple[Any, list[float]]]
SMALL = UprightConfig(size=16, stem=8, widths=(16, 16), dropout=0.0)


@pytest.fixture
def task(tmp_path: Path) -> UprightTask:
    """Twelve pictures that are bright at the top and dark at the bottom."""
    generator = torch.Generator().manual_seed(0)
    for number in range(12):
        fading = torch.linspace(0.9, 0.1, 32)[:, None].expand(3, 32, 32)
        picture = fading + 0.1 * torch.randn(3, 32, 32, generator=generator)
        write_picture(picture.clamp(0, 1), tmp_path / f"{number:02}.png")
    data = PictureConfig(folders=(tmp_path,), held_apart=3)
    return UprightTask(Config(SMALL, data, UprightTraining(steps=40, pictures=8)))


def test_learns(task: UprightTask, learn: Learn) -> None:
    scores = task.validate(learn(task, 40, 3e-3)[0])
    assert scores["score"] == 100
    assert len(scores) == 3


class Counting(nn.Module):
    """Thinks that all turns are equally likely, and counts the pictures it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.seen: list[int] = []

    def forward(self, pictures: Tensor) -> Tensor:
        self.seen.append(len(pictures))
        return self.weight * torch.ones(len(pictures), 4)


def test_processes_share_out_the_pictures(task: UprightTask) -> None:
    model = Counting()
    losses = [task.loss(model, 0, rank, 3).item() for rank in range(3)]
    assert sorted(model.seen) == [2, 3, 3]
    assert sum(losses) / 3 == pytest.approx(torch.tensor(4.0).log().item())


def test_pictures_become_squares_and_those_held_apart_are_not_trained_on(tiny_upright: Callable[..., Config]) -> None:
    config = tiny_upright()
    task = UprightTask(replace(config, data=replace(config.data, shares=(0.0, 1.0))))
    assert [len(pictures) for pictures in task.store.folders] == [5, 5]
    assert task.store.shares == (0.0, 1.0)
    assert UprightTask(config).store.shares == (1.0, 1.0)
    (one, _), (two, _) = task.held_apart
    assert list(task.validate(task.build())) == ["score", one, f"{one} -30%", two, f"{two} -30%"]
    trained = [picture for pictures in task.store.folders for picture in pictures]
    held = [picture for _, pictures in task.held_apart for picture in pictures]
    assert len(held) == 2
    assert all(picture.shape == (3, 32, 32) for picture in trained + held)
    assert not any(torch.equal(one, other) for one in trained for other in held)


def test_squares_keep_the_colours(tmp_path: Path) -> None:
    colour = torch.tensor([1.0, 0.6, 0.2])[:, None, None]
    for name, shape in (("a", (40, 70)), ("b", (9, 5))):
        write_picture(colour.expand(3, *shape), tmp_path / f"{name}.png")
    for path in tmp_path.iterdir():
        assert torch.equal(load_square(path, 12), (255 * colour).to(torch.uint8).expand(3, 12, 12))
