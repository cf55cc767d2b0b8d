"""The loss of denoising, which a perfect denoiser brings to nothing."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.training.denoising import rotation_loss, translation_loss


def rotations(count: int, seed: int) -> Tensor:
    angle = 7 * torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    cosine, sine = angle.cos(), angle.sin()
    return torch.stack([cosine, -sine, sine, cosine], -1).view(-1, 2, 2)


def poses(count: int, seed: int) -> Poses:
    generator = torch.Generator().manual_seed(seed)
    return Poses(rotations(count, seed), torch.randn(count, 2, generator=generator, dtype=torch.double))


@given(st.integers(1, 9), st.integers(0, 1000), st.booleans())
def test_rotation_loss_is_the_distance_of_the_product_from_the_identity(count: int, seed: int, noisy: bool) -> None:
    true, predicted = poses(count, seed), poses(count, seed + 1)
    if noisy:  # what a network predicts is no rotation
        predicted = Poses(torch.randn_like(predicted.rotation), predicted.translation)
    product = true.rotation.mT @ predicted.rotation
    literally = torch.linalg.matrix_norm(product - torch.eye(2, dtype=torch.double)).square().mean()
    torch.testing.assert_close(rotation_loss(true, predicted), literally)


def test_the_truth_costs_nothing_and_a_half_turn_most() -> None:
    true = Poses(torch.eye(2)[None], torch.zeros(1, 2))
    assert rotation_loss(true, true) == translation_loss(true, true) == 0
    assert rotation_loss(true, Poses(-torch.eye(2)[None], torch.zeros(1, 2))) == 8
