"""Wholes of real pieces are stood up by what they show, with a probability; rows and columns turn with them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.core import Locks, OutlinePieces, Poses, Puzzle
from diffassemble.core.poses import plane_rotations
from diffassemble.io.assemblies import assembly_bytes, read_assembly
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.grow import GrowSolver
from diffassemble.rendering.flat import draw_assembly, picture_of
from diffassemble.rendering.report import account


def lighter_above(pieces: OutlinePieces, poses: Poses, chosen: np.ndarray) -> tuple[int, float]:
    """Stands in for the network: pictures are upright if they are lighter above than below."""
    picture = picture_of(pieces, poses, chosen)
    worth = []
    for turn in range(4):
        seen = torch.rot90(picture, -turn, (-2, -1)).nan_to_num(0.5).mean((0, 2))
        half = len(seen) // 2
        worth.append(float(seen[:half].mean() - seen[half:].mean()))
    chances = (40 * torch.tensor(worth)).softmax(0)
    return int(chances.argmax()), float(chances.max())


def gradient() -> Tensor:
    """Light above, dark below, with blots that tell pieces apart."""
    random = np.random.default_rng(1)
    picture = np.linspace(0.95, 0.25, 240)[None, :, None] * np.ones((3, 240, 320))
    for _ in range(120):
        x, y, size = random.integers(0, 300), random.integers(0, 220), random.integers(6, 20)
        picture[:, y : y + size, x : x + size] *= random.uniform(0.75, 1.0, (3, 1, 1))
    return torch.from_numpy(picture).float()


@pytest.fixture(scope="module", params=["tabs", "shards"])
def solved(request: pytest.FixtureRequest) -> Answer:
    puzzle = cut_shapes(gradient(), request.param, 12, torch.Generator().manual_seed(3), size=80)
    return assemble(puzzle, GrowSolver(upright=lighter_above))


def test_the_whole_stands_upright_and_straight(solved: Answer) -> None:
    truth = solved.puzzle.truth
    assert truth is not None
    lean = solved.poses.rotation.double() @ truth.rotation.double().mT
    angles = torch.atan2(lean[:, 1, 0], lean[:, 0, 0])
    assert float(angles.abs().median()) < math.radians(2)
    picture = np.asarray(draw_assembly(solved).convert("L"), float)
    third = len(picture) // 3
    assert picture[:third].mean() > picture[-third:].mean() + 30
    assert solved.upright is not None
    assert solved.upright > 0.9


def test_it_is_told_and_read_back(solved: Answer, tmp_path: Path) -> None:
    (tmp_path / "assembly.json").write_bytes(assembly_bytes(solved))
    document: dict[str, Any] = json.loads((tmp_path / "assembly.json").read_bytes())
    assert document["upright"] == {"probability": solved.upright}
    assert read_assembly(tmp_path, solved.puzzle).upright == solved.upright
    assert dict(account(solved))["upright"].startswith("probability ")


def test_columns_run_to_the_right(solved: Answer) -> None:
    if solved.cells is None:
        return
    rows, cols = solved.cells.T
    across, down = solved.poses.translation.T
    assert float(across[cols == cols.max()].min()) > float(across[cols == 0].max())
    assert float(down[rows == rows.max()].min()) > float(down[rows == 0].max())


def test_silhouettes_and_locks_stay_as_they_are(jigsaw: Puzzle) -> None:
    solver = GrowSolver(upright=lighter_above)
    dark = replace(jigsaw, pieces=replace(jigsaw.outlines, coloured=False))
    assert assemble(dark, solver).upright is None
    assert jigsaw.truth is not None
    turn = plane_rotations(torch.tensor([math.pi]))[0]
    goal = replace(jigsaw.truth, rotation=turn @ jigsaw.truth.rotation, translation=jigsaw.truth.translation @ turn.T)
    locked = assemble(replace(jigsaw, locks=Locks(torch.arange(20) < 3, goal)), solver)
    assert locked.upright is None
    assert torch.equal(locked.poses.translation[:3], goal.translation[:3])
