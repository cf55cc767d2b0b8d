"""Encoders of pieces, by the name of their backbone."""

from __future__ import annotations

from typing import Any, get_args

from diffassemble.network.encoders.image import ImageBackbone, ImageEncoder, Symmetry
from diffassemble.network.encoders.outlines import OutlineBackbone, OutlineEncoder
from diffassemble.network.encoders.points import PointBackbone, PointEncoder

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
