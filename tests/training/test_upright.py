"""The task teaches which way is up, and scores pictures it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.io.pictures import write_picture
from diffassemble.network.upright import UprightConfig, looked_at
from diffassemble.training.config import Config
from diffassemble.training.pictures import load_thin
from diffassemble.training.upright import VARIANTS, UprightData, UprightTask, UprightTraining, varied

Learn = Callable[..., tuple[Any, list[float]]]
SMALL = UprightConfig(side=32, hidden=4, dropout=0.0)


@pytest.fixture
def task(tmp_path: Path) -> UprightTask:
    """Twelve pictures that are bright at the top and dark at the bottom."""
    generator = torch.Generator().manual_seed(0)
    for number in range(12):
        fading = torch.linspace(0.9, 0.1, 32)[:, None].expand(3, 32, 32)
        picture = fading + 0.1 * torch.randn(3, 32, 32, generator=generator)
        write_picture(picture.clamp(0, 1), tmp_path / f"{number:02}.png")
    data = UprightData(folders=(tmp_path,), held_apart=3, variants=8, cache=tmp_path / "cache")
    return UprightTask(Config(SMALL, data, UprightTraining(steps=40, pictures=8)))


def test_learns_and_says_how_sure_it_is(task: UprightTask, learn: Learn) -> None:
    model, _ = learn(task, 20, 1e-3)
    scores = task.validate(model)
    assert len(scores) == 3
    assert min(scores.values()) > 60
    assert model.temperature != 1
    heat = float(model.temperature)
    assert task.validate(model) == scores
    assert model.temperature == heat


def test_what_comes_again_is_looked_at_once(task: UprightTask, monkeypatch: pytest.MonkeyPatch) -> None:
    model = task.build().eval()
    fresh = task.loss(model, 0, 0, 1)
    monkeypatch.setattr("diffassemble.training.upright.views_of", None)
    torch.testing.assert_close(task.loss(model, 0, 0, 1), fresh, rtol=0.01, atol=0.01)


def test_processes_share_out_the_pictures(task: UprightTask) -> None:
    model = task.build().eval()
    losses = [task.loss(model, 0, rank, 3).item() for rank in range(3)]
    assert sum(losses) / 3 == pytest.approx(task.loss(model, 0, 0, 1).item(), rel=0.01)


@pytest.mark.parametrize("shape", sorted({shape for shape, _ in VARIANTS}))
def test_variations_have_no_unknown_pixels(shape: tuple[int, int]) -> None:
    picture = torch.randint(256, (3, 50, 60), generator=torch.Generator().manual_seed(0)).byte()
    for seed in range(4):
        seen = varied(picture, shape, 96, torch.Generator().manual_seed(seed))
        assert seen.shape[-2:] == looked_at(*shape, 96)
        assert 0 <= seen.min() <= seen.max() <= 1


def test_pictures_held_apart_are_not_trained_on(tiny_upright: Callable[..., Config]) -> None:
    config = tiny_upright()
    task = UprightTask(replace(config, data=replace(config.data, shares=(0.0, 1.0))))
    assert [len(pictures) for pictures in task.store.folders] == [5, 5]
    assert task.store.shares == (0.0, 1.0)
    (one, _), (two, _) = task.held_apart
    assert list(task.validate(task.build())) == ["score", one, f"{one} -30%", two, f"{two} -30%"]
    trained = [picture for pictures in task.store.folders for picture in pictures]
    held = [picture for _, pictures in task.held_apart for picture in pictures]
    assert len(held) == 2
    assert not any(torch.equal(one, other) for one in trained for other in held)


def test_pictures_keep_their_colours_and_shape(tmp_path: Path) -> None:
    colour = torch.tensor([1.0, 0.6, 0.2])[:, None, None]
    for name, shape, thin in (("a", (40, 70), (12, 21)), ("b", (9, 5), (9, 5))):
        write_picture(colour.expand(3, *shape), tmp_path / f"{name}.png")
        levels = (255 * colour).to(torch.uint8)
        assert torch.equal(load_thin(tmp_path / f"{name}.png", 12), levels.expand(3, *thin))
