"""The task teaches how true placements look, and false ones are false."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Board
from diffassemble.files.pictures import write_picture
from diffassemble.squares.critic import CriticConfig
from diffassemble.training.config import Config, PictureConfig
from diffassemble.training.critic import CriticTask, CriticTraining, false_placement, shifted, strayed

SMALL = CriticConfig(stem=8, widths=(16, 16, 16), hidden=16, dropout=0.0)
BOARD = Board(6, 6)


@pytest.fixture
def task(tmp_path: Path) -> CriticTask:
    """Pictures of one bright disc in the middle, on a ground that fades from top to bottom."""
    generator = torch.Generator().manual_seed(0)
    span = torch.linspace(-1, 1, 64)
    disc = (span[:, None] ** 2 + span[None] ** 2 < 0.3).float()
    for number in range(16):
        picture = 0.6 * disc + 0.3 * (1 - span[:, None]) / 2 + 0.05 * torch.randn(3, 64, 64, generator=generator)
        write_picture(picture.clamp(0, 1), tmp_path / f"{number:02}.png")
    data = PictureConfig(folders=(tmp_path,), held_apart=4)
    return CriticTask(Config(SMALL, data, CriticTraining(steps=40, pictures=4)))


def test_learns(task: CriticTask, learn: Callable[..., tuple[Any, list[float]]]) -> None:
    model, losses = learn(task, 60, 3e-3)
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    assert set(task.validate(model)) == {"score", *(name for name, _ in task.held_apart)}


@pytest.mark.parametrize("kind", range(7))
def test_false_placements_hold_the_same_pieces_elsewhere(kind: int) -> None:
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        at = torch.arange(36)
        at[torch.rand(36, generator=generator) < 0.3] = -1
        cells, turns = false_placement(at, BOARD, kind, generator)
        assert Counter(cells.tolist()) == Counter(at.tolist())
        assert bool(((cells != at) | ((cells >= 0) & (turns % 4 != 0))).any())


def test_a_shift_keeps_what_stays_on_the_board_together() -> None:
    at = torch.arange(36)
    at[::4] = -1
    moved = shifted(at, BOARD, torch.Generator().manual_seed(1))
    where = {int(piece): cell for cell, piece in enumerate(moved.tolist()) if piece >= 0}
    ways = Counter((where[int(p)] // 6 - int(p) // 6, where[int(p)] % 6 - int(p) % 6) for p in at[at >= 0])
    assert ways.most_common(1)[0][1] >= 12


def test_on_a_full_board_pieces_can_only_be_turned() -> None:
    at = torch.arange(36)
    cells, turns = strayed(at, 2, torch.Generator().manual_seed(0))
    assert torch.equal(cells, at)
    assert int((turns > 0).sum()) == 2
