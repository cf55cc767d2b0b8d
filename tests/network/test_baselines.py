"""Networks that answer in one go."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core.poses import random_rotations
from diffassemble.network.baselines import (
    BASELINES,
    OneShot,
    OneShotConfig,
)
from diffassemble.network.batch import PuzzleBatch

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
def test_an_answer_for_every_piece_that_noise_does_not_change(name: str) -> None:
    told = answer(network(name), batch())
    assert told.shape == (sum(COUNTS), 2, 12)
    assert told.isfinite().all()
    assert torch.equal(told[:, 0], told[:, 1])


@pytest.mark.parametrize("name", BASELINES)
def test_objects_do_not_hear_each_other(name: str) -> None:
    model, both, other = network(name), batch(), batch(1)
    first = both.puzzle == 0
    content = torch.where(first[:, None, None], both.content, other.content)
    changed = PuzzleBatch(content, both.puzzle, both.board, both.room, None)
    before, after = answer(model, both), answer(model, changed)
    assert torch.allclose(before[first], after[first], atol=1e-5)
    assert (before[~first] - after[~first]).abs().max() > 1e-4


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"lstm"}))
def test_the_order_of_pieces_does_not_matter(name: str) -> None:
    model, given = network(name), batch()
    order = torch.tensor([2, 0, 1, 7, 6, 5, 4, 3])
    shuffled = PuzzleBatch(given.content[order], given.puzzle, given.board, given.room, None)
    assert torch.allclose(answer(model, given)[order], answer(model, shuffled), atol=1e-4)


def test_the_symmetric_one_turns_with_its_pieces() -> None:
    model, given = network("se3-equiv"), batch()
    turns = random_rotations(len(given.puzzle), torch.Generator().manual_seed(2))
    turned = PuzzleBatch(given.content @ turns.mT, given.puzzle, given.board, given.room, None)
    before, after = (answer(model, some)[:, 0] for some in (given, turned))
    assert torch.allclose(before[:, :3], after[:, :3], atol=1e-4)
    rows_before, rows_after = (told[:, 3:].unflatten(1, (3, 3)) for told in (before, after))
    assert torch.allclose(rows_before @ turns.mT, rows_after, atol=1e-4)


@pytest.mark.parametrize("name", BASELINES)
def test_every_piece_is_told_of_the_others_but_not_of_padding(name: str) -> None:
    torch.manual_seed(0)
    present = torch.arange(5) < torch.tensor([[3], [5]])
    features = torch.randn(2, 5, 27) * present[..., None]
    model = BASELINES[name](27, 16).eval()
    alone = model(features[:1, :3], present[:1, :3])
    assert alone.shape == (1, 3, 12)
    assert torch.allclose(model(features, present)[0, :3], alone[0], atol=1e-5)
    changed = features.clone()
    changed[1, 4] += 3
    assert (model(changed, present) - model(features, present))[1, 0].abs().max() > 1e-5
