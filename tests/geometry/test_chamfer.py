"""Chamfer distances against hand-made cases and all pairs."""

from __future__ import annotations

import torch

from diffassemble.core.surfaces import chamfer_distance

FIRST, SECOND = (torch.randn(3, size, 3, generator=torch.Generator().manual_seed(size)) for size in (20, 31))


def test_a_shifted_point_and_a_cloud_with_one_stray() -> None:
    origin, shifted = torch.zeros(1, 1, 3), torch.tensor([[[3.0, 0, 4.0]]])
    assert chamfer_distance(origin, shifted).item() == 50
    pair = torch.cat([origin, shifted], 1)
    assert chamfer_distance(origin, pair).item() == 12.5
    assert chamfer_distance(pair, origin).item() == 12.5
    assert chamfer_distance(pair, pair.flip(1)).item() == 0


def test_it_is_that_of_all_pairs() -> None:
    distances = (FIRST[:, :, None] - SECOND[:, None]).square().sum(-1)
    expected = distances.amin(2).mean(1) + distances.amin(1).mean(1)
    torch.testing.assert_close(chamfer_distance(FIRST, SECOND), expected)


def test_its_gradient_pulls_clouds_together() -> None:
    moving = FIRST.clone().requires_grad_()
    before = chamfer_distance(moving, SECOND)
    before.sum().backward()
    assert moving.grad is not None
    after = chamfer_distance(moving.detach() - 0.5 * moving.grad, SECOND)
    assert (after < before).all()
    assert torch.autograd.gradcheck(
        chamfer_distance, (FIRST[:1, :4].double().requires_grad_(), SECOND[:1, :5].double())
    )
