"""Networks that answer in one go."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diffassemble.core.poses import random_rotations
from diffassemble.network.batch import PuzzleBatch
from diffassemble_research.baselines import BASELINES, OneShot, OneShotConfig

COUNTS = (3, 5)


def batch(seed: int = 0) -> PuzzleBatch:
    """Two objects of random clouds."""
    count = sum(COUNTS)
    points = torch.randn(count, 64, 3, generator=torch.Generator().manual_seed(seed)) / 8
    index = torch.arange(len(COUNTS)).repeat_interleave(torch.tensor(COUNTS))
    return PuzzleBatch(points - points.mean(1, keepdim=True), index, torch.zeros(count, 4), torch.ones(count, 3), None)


def network(name: str) -> OneShot:
    torch.manual_seed(0)
    backbone = "vn_dgcnn" if name == "se3-equiv" else "pointnet"
    return OneShot(OneShotConfig(name, backbone, features=8, width=32)).eval()  # type: ignore[arg-type]


def answer(model: OneShot, given: PuzzleBatch) -> torch.Tensor:
    with torch.no_grad():
        noisy = model.space.prior((len(given.puzzle), 2), torch.Generator().manual_seed(1))
        return model(noisy, torch.ones(len(given.puzzle), 2, dtype=torch.long), model.condition(given))


@pytest.mark.parametrize("name", BASELINES)
def test_answers_depend_on_the_pieces_of_the_object_alone_and_but_for_lstm_not_on_their_order(name: str) -> None:
    model, both = network(name), batch()
    before = answer(model, both)
    assert before.shape == (sum(COUNTS), 2, 12)
    assert before.isfinite().all()
    assert torch.equal(before[:, 0], before[:, 1])  # noise changes nothing
    changed = replace(both, content=torch.cat([both.content[:4], batch(1).content[4:]]))
    after = answer(model, changed)
    assert torch.allclose(before[:3], after[:3], atol=1e-5)
    assert (before[3] - after[3]).abs().max() > 1e-6
    order = torch.tensor([2, 0, 1, 7, 6, 5, 4, 3])
    shuffled = replace(both, content=both.content[order])
    assert name == "lstm" or torch.allclose(before[order], answer(model, shuffled), atol=1e-4)


def test_the_symmetric_one_turns_with_its_pieces() -> None:
    model, given = network("se3-equiv"), batch()
    turns = random_rotations(len(given.puzzle), torch.Generator().manual_seed(2))
    turned = replace(given, content=given.content @ turns.mT)
    before, after = (answer(model, some)[:, 0] for some in (given, turned))
    assert torch.allclose(before[:, :3], after[:, :3], atol=1e-4)
    rows_before, rows_after = (found[:, 3:].unflatten(1, (3, 3)) for found in (before, after))
    assert torch.allclose(rows_before @ turns.mT, rows_after, atol=1e-4)
