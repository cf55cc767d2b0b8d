"""The middle of an object of which pieces are missing: what is round is thought to be whole.

The middle of the box of what is left lies beside that of the whole. But most vessels are turned about an axis, so half
of a rim tells where all of it was.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# Heights and radii by which an object is looked at about an axis; radii are in steps of this length.
_LAYERS, _STEP, _RINGS = 16, 0.02, 60
# Axes are tried within this distance of the middle, in so many places each way, ever closer.
_REACH, _PLACES, _CLOSER = 0.24, 13, (1.0, 0.25, 0.08)
# A ring is round if its points lie in at least this share of its sectors, at as many heights.
_SECTORS, _ROUND, _ALIKE = 16, 0.5, 3
# What is missing is less than this where the surface is merely not quite round.
_NOTABLE = 0.05


def completed_box(points: Float[Tensor, "p 3"]) -> tuple[Float[Tensor, "3"], Float[Tensor, "3"]]:
    """Least and greatest coordinates of an upright object (y is up) whose longest side is about 1, rings made whole."""
    low, high = points.amin(0), points.amax(0)
    layer = ((points[:, 1] - low[1]) / (high[1] - low[1]).clamp(min=1e-6) * _LAYERS).long().clamp(max=_LAYERS - 1)
    axis = find_axis(points[:, [0, 2]], layer)
    radius = _round_radius(points[:, [0, 2]] - axis, layer)
    for side, across in enumerate((0, 2)) if radius > 0 else ():
        least, most = axis[side] - radius, axis[side] + radius
        low[across] = least if least < low[across] - _NOTABLE else low[across]
        high[across] = most if most > high[across] + _NOTABLE else high[across]
    return low, high


def find_axis(points: Float[Tensor, "p 2"], layer: Tensor) -> Float[Tensor, "2"]:
    """Where the vertical axis stands about which the surface, by height and radius, gathers in the fewest cells."""
    axis = (points.amin(0) + points.amax(0)) / 2
    steps = torch.linspace(-_REACH, _REACH, _PLACES)
    places = torch.cartesian_prod(steps, steps)
    for share in _CLOSER:
        tried = axis + share * places
        radius = (points - tried[:, None]).norm(dim=-1) / _STEP
        inner = radius.floor()
        mass = torch.zeros(len(tried), _LAYERS * (_RINGS + 1))
        for ring, part in ((inner, 1 - (radius - inner)), (inner + 1, radius - inner)):
            mass.scatter_add_(1, layer * (_RINGS + 1) + ring.long().clamp(max=_RINGS), part)
        axis = tried[mass.square().sum(1).argmax()]
    return axis


def _round_radius(points: Float[Tensor, "p 2"], layer: Tensor) -> float:
    """The radius of the largest ring about the origin that is round; 0 if none is."""
    radius = points.norm(dim=-1)
    sector = (torch.atan2(points[:, 1], points[:, 0]) / (2 * torch.pi) * _SECTORS).floor().long() % _SECTORS
    seen: Bool[Tensor, "l r s"] = torch.zeros(_LAYERS, _RINGS + 1, _SECTORS, dtype=torch.bool)
    for shift in (0, 1):  # a ring is two steps wide
        ring = ((radius / _STEP).long() + shift).clamp(max=_RINGS)
        seen[layer, ring, sector] = True
    found = ((seen.float().mean(-1) >= _ROUND).sum(0) >= _ALIKE).nonzero()
    return float(radius[(radius / _STEP).long() <= int(found.max())].max()) if len(found) else 0.0
