"""The task teaches how objects stand, and scores objects it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from diffassemble.fragments.datasets import break_solids
from diffassemble.fragments.orientation import OrientationConfig
from diffassemble.training.config import Config, FragmentConfig
from diffassemble.training.fragment_data import Pool, PoolMixture, make_pool
from diffassemble.training.orientation import UP, OrientationTask, OrientationTraining, candidates, partly

GENERATOR = torch.Generator().manual_seed(0)


@pytest.fixture(autouse=True)
def _drawn_alike() -> None:
    """Every test draws the same numbers, whichever ran before it."""
    GENERATOR.manual_seed(0)


@pytest.fixture(scope="module")
def pools() -> list[Pool]:
    """Twenty solids, one of each class, broken into a few pieces."""
    return [make_pool(made.meshes(), GENERATOR, 400) for made in break_solids(20, 1, (2, 4))]


@pytest.fixture
def task(pools: list[Pool], monkeypatch: pytest.MonkeyPatch) -> OrientationTask:
    monkeypatch.setattr("diffassemble.training.orientation.gather", lambda data: ([[], [], []], []))
    config = Config(
        OrientationConfig(dropout=0.0), FragmentConfig(solids=1, points=256), OrientationTraining(steps=60, objects=8)
    )
    task = OrientationTask(config)
    task.pools, task.held_apart = PoolMixture([[(pool, None) for pool in pools]], [1.0]), pools[:8]
    return task


def test_learns(task: OrientationTask, learn: Callable[..., tuple[Any, list[float]]]) -> None:
    after = task.validate(learn(task, 30, 3e-3)[0])
    names = {"up", "pose", "told", "told, right"}
    assert set(after) == {"score", *names, *(f"{name}, pieces lost" for name in names)}
    assert after["up"] >= 40  # by chance 2


def test_processes_share_out_a_batch(task: OrientationTask) -> None:
    model = task.build()
    both = [task.loss(model, 5, rank, 2).item() for rank in (0, 1)]
    assert sum(both) / 2 == pytest.approx(task.loss(model, 5, 0, 1).item(), abs=1e-5)


def test_only_the_first_candidate_is_up(pools: list[Pool]) -> None:
    points = partly(pools[0], 0.0, 200, GENERATOR)
    ways = candidates(points, GENERATOR)
    assert torch.equal(ways[0], UP)
    assert float((ways[1:] @ UP).max()) < math.cos(math.radians(5.9))
    assert torch.allclose(ways.norm(dim=-1), torch.ones(len(ways)), atol=1e-5)


def test_the_largest_fragment_is_never_lost(pools: list[Pool]) -> None:
    pool = pools[3]
    largest = pool.points[pool.areas.argmax()]
    for _ in range(5):
        points = partly(pool, 1.0, 50, GENERATOR)
        assert float(torch.cdist(points, largest).amin(1).min()) == pytest.approx(0.0, abs=1e-3)
