"""The measures that others used before gradients: how unlike two sides are, colour by colour.

Sides are numbered as in `image`; pairs within one piece are infinitely unlike. Symmetric.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.compatibility.image import SIDES, side_lines


def squared_differences(pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "sides sides"]:
    """The sum of squared colour differences across the border (Cho, Avidan and Freeman 2010), as one product."""
    edge = side_lines(pixels)[:, 0].double() - 0.5
    power = edge.square().sum((1, 2))
    shared = edge.flatten(1) @ edge.flip(1).flatten(1).T
    return _apart((power[:, None] + power - (shared + shared.T)).clamp(min=0))


def prediction_errors(
    pixels: Float[Tensor, "n 3 s s"], p: float = 0.3, q: float = 1 / 16
) -> Float[Tensor, "sides sides"]:
    """Each side continues its gradient into the other: (Σ |error|^p)^(q/p), both ways (Pomeranz et al. 2011).

    With p = q = 1 it is the plain L1 measure.
    """
    edge, inner = side_lines(pixels).double().unbind(1)
    foretold, facing = 2 * edge - inner, edge.flip(1)
    one_way = torch.cdist(foretold.flatten(1), facing.flatten(1), p=p) ** p
    return _apart((one_way + one_way.T) ** (q / p))


def _apart(unlike: Float[Tensor, "sides sides"]) -> Float[Tensor, "sides sides"]:
    piece = torch.arange(len(unlike), device=unlike.device) // SIDES
    return unlike.float().masked_fill_(piece[:, None] == piece, torch.inf)
