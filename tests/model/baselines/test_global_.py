"""What is padded is not heard."""

import torch
from torch import Tensor

from diffassemble.network.baselines import Global


def test_padding_changes_nothing(padded: tuple[Tensor, Tensor]) -> None:
    features, present = padded
    model = Global(features.shape[-1], 16).eval()
    alone = model(features[:1, :3], present[:1, :3])
    assert alone.shape == (1, 3, 12)
    assert torch.allclose(model(features, present)[0, :3], alone[0], atol=1e-5)


def test_every_piece_is_told_of_the_others(padded: tuple[Tensor, Tensor]) -> None:
    features, present = padded
    model = Global(features.shape[-1], 16).eval()
    changed = features.clone()
    changed[1, 4] += 3
    assert (model(changed, present) - model(features, present))[1, 0].abs().max() > 1e-5
