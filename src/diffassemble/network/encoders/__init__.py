"""Encoders of pieces, by the name of their backbone; that of outlines, which is small, is here."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.network.encoders.image import ImageBackbone, ImageEncoder, Symmetry
from diffassemble.network.encoders.points import PointBackbone, PointEncoder

OutlineBackbone = Literal["outline"]


class OutlineEncoder(nn.Module):
    """A small network on the outline's size and on the magnitudes of its Fourier coefficients, `waves` either way."""

    def __init__(
        self, backbone: OutlineBackbone, symmetry: Symmetry, features: int, waves: int = 12, hidden: int = 64
    ) -> None:
        super().__init__()
        self.width, self.waves = features, waves
        self.layers = nn.Sequential(nn.Linear(2 * waves, hidden), nn.GELU(), nn.Linear(hidden, features))

    def forward(self, outlines: Float[Tensor, "n p 2"]) -> Float[Tensor, "n f"]:
        """Features of closed outlines by evenly spaced points, clockwise as seen."""
        curve = torch.complex(*outlines.float().unbind(-1))
        strength = torch.fft.fft(curve, norm="forward").abs()
        # A clockwise circle is the first wave.
        size = strength[:, 1:2].clamp(min=1e-6)
        waves = torch.cat([strength[:, 2 : self.waves + 1], strength[:, -self.waves :]], 1) / size
        return self.layers(torch.cat([size.log(), torch.log(waves + 1e-3)], 1))


Backbone = ImageBackbone | PointBackbone | OutlineBackbone
Encoder = ImageEncoder | PointEncoder | OutlineEncoder
ENCODERS: dict[str, Any] = {
    **dict.fromkeys(get_args(ImageBackbone), ImageEncoder),
    **dict.fromkeys(get_args(PointBackbone), PointEncoder),
    **dict.fromkeys(get_args(OutlineBackbone), OutlineEncoder),
}


def make_encoder(backbone: str, symmetry: Symmetry, features: int) -> Any:
    """An encoder of pixels, points or outlines; all have a `width` and map the content of n pieces to n features."""
    return ENCODERS[backbone](backbone, symmetry, features)
