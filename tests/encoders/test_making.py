"""Every encoder keeps the promises that the denoiser relies on."""

import pytest
import torch

from diffassemble.network.encoders import ENCODERS, make_encoder
from diffassemble.network.encoders.points import PLAIN_NETWORKS

CONTENT = {"light": (3, 32, 32), "resnet18": (3, 32, 32)}


@pytest.mark.parametrize("backbone", ENCODERS)
def test_the_width_is_what_comes_out(backbone: str) -> None:
    symmetry = "plain" if backbone in PLAIN_NETWORKS else "equivariant"
    encoder = make_encoder(backbone, symmetry, 8)
    content = torch.rand(5, *CONTENT.get(backbone, (64, 3)), generator=torch.Generator().manual_seed(0))
    assert encoder(content).flatten(1).shape == (5, encoder.width)
