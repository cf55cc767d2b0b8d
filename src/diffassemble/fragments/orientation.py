"""Canonical orientation: which direction of an object is up, and which way it faces.

A direction is scored by what the object looks like about it: how much of its surface is at each height and distance
from the axis, and how round it is there. This does not change when the object is turned about that axis, so a network
that recognises an upright bottle need not learn all its turns. Which way the object faces is then read off its surface
unrolled about the axis: turning the object shifts that picture.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core.settings import Fraction, Width
from diffassemble.network.pretrained import Pretrained

HEIGHTS, RADII, HARMONICS, SECTORS = 24, 12, 4, 48
_FARTHEST = 2.4
"""greatest height and radius of the cells, in root mean square radii of the object"""


@dataclass(frozen=True)
class OrientationConfig:
    """What the two networks are made of."""

    widths: tuple[Width, Width, Width] = (24, 48, 64)
    """channels of the convolutions"""
    dropout: Fraction = 0.2


@dataclass(frozen=True)
class DirectionSearchConfig:
    """How the upward direction is searched: `first` directions and the principal axes are scored, and the `best` are
    refined by `about` directions around each within ever fewer degrees (`closer`)."""

    first: int = 400
    best: int = 4
    about: int = 24
    closer: tuple[float, ...] = (10.0, 4.0, 1.5)
    beside: int = 2
    """sectors to either side of the one that an object faces by which count as the same"""


SEARCH = DirectionSearchConfig()


class OrientationModel(Pretrained):
    """Scores of directions for being up, and of ways for being the front."""

    config_class = OrientationConfig

    def __init__(self, config: OrientationConfig) -> None:
        super().__init__()
        self.config = config
        first, second, third = config.widths
        self.profile = nn.Sequential(
            nn.Conv2d(1 + HARMONICS, first, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(first, second, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(second, third, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Flatten(),
            nn.Dropout(config.dropout),
            nn.Linear(third * (HEIGHTS // 4) * (RADII // 4), third),
            nn.GELU(),
            nn.Linear(third, 1),
        )
        self.around = nn.Sequential(
            nn.Conv1d(3 * HEIGHTS, third, 5, padding=2, padding_mode="circular"),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Conv1d(third, third, 9, padding=8, dilation=2, padding_mode="circular"),
            nn.GELU(),
            nn.Conv1d(third, third, 9, padding=16, dilation=4, padding_mode="circular"),
            nn.GELU(),
            nn.Conv1d(third, 1, 1),
        )

    def up(self, points: Float[Tensor, "b p 3"], directions: Float[Tensor, "b d 3"]) -> Float[Tensor, "b d"]:
        """How much each direction looks like up."""
        return self.profile(profiles(points, directions).flatten(0, 1)).view(directions.shape[:2])

    def front(self, points: Float[Tensor, "b p 3"]) -> Float[Tensor, "b s"]:
        """Of upright objects (y is up): how much each sector, from x to −z, looks like that of the x axis."""
        return self.around(unrolled(points)).squeeze(1)

    def forward(
        self, points: Float[Tensor, "b p 3"], directions: Float[Tensor, "b d 3"], tilted: Float[Tensor, "c p 3"]
    ) -> tuple[Float[Tensor, "b d"], Float[Tensor, "c s"]]:
        """Both scores of centred objects, upright and nearly so, for learning."""
        return self.up(points, directions), self.front(tilted)

    @torch.no_grad()
    def canonical_rotation(
        self, points: Float[Tensor, "p 3"], config: DirectionSearchConfig = SEARCH
    ) -> Float[Tensor, "3 3"]:
        """The rotation that brings an object to its canonical orientation: y up, its front along x."""
        points = centred(points[None])
        tried = torch.cat([sphere(config.first), principal_axes(points[0])])
        for angle in config.closer:
            best = tried[self.up(points, tried[None])[0].topk(config.best).indices]
            tried = torch.cat([best, *(cone(direction, angle, config.about) for direction in best)])
        upright = upright_rotation(tried[self.up(points, tried[None])[0].argmax()])
        return about_y(-self.facing(points[0] @ upright.T, config)[0]) @ upright

    @torch.no_grad()
    def facing(
        self, points: Float[Tensor, "p 3"], config: DirectionSearchConfig = SEARCH
    ) -> tuple[Float[Tensor, ""], float]:
        """By which angle about y an upright object is turned, and the probability that this is right to two sectors.

        For what looks alike from all sides any angle will do; its probability is that of chance, 0.1.
        """
        beside = range(-config.beside, config.beside + 1)
        probability = self.front(points[None])[0].softmax(0)
        near = torch.stack([probability.roll(-shift) for shift in beside], 1)
        best = near.sum(1).argmax()
        within = (near[best] * torch.tensor(beside)).sum() / near[best].sum()
        return (best + within) * (2 * math.pi / SECTORS), float(near[best].sum())


def centred(points: Float[Tensor, "b p 3"]) -> Float[Tensor, "b p 3"]:
    """The same about their mean, with a root mean square radius of 1."""
    points = points - points.mean(1, keepdim=True)
    return points / points.square().sum(-1).mean(-1).sqrt().clamp(min=1e-9)[:, None, None]


def profiles(points: Float[Tensor, "b p 3"], directions: Float[Tensor, "b d 3"]) -> Float[Tensor, "b d c h r"]:
    """What centred objects look like about each direction: √ of their surface by height and radius, and harmonics.

    A harmonic is how strongly the surface at one height and radius gathers in 1, 2, 3 or 4 places of the circle.
    """
    one, two = across(directions)
    height, x, y = (points @ axis.mT for axis in (directions, one, two))
    radius = (x.square() + y.square()).sqrt().clamp(min=1e-6)
    row = ((height / _FARTHEST + 1) / 2 * HEIGHTS - 0.5).clamp(0, HEIGHTS - 1)
    col = (radius / _FARTHEST * RADII - 0.5).clamp(0, RADII - 1)
    wave = torch.complex(x / radius, y / radius)
    values, power = [torch.ones_like(x)], torch.ones_like(wave)
    for _ in range(HARMONICS):
        power = power * wave
        values += [power.real, power.imag]
    cells = splat(torch.stack(values, 2).permute(0, 3, 2, 1), row.mT, col.mT)
    strength = cells[:, :, 1:].unflatten(2, (-1, 2)).square().sum(3).sqrt()
    scale = HEIGHTS * RADII / 16 / points.shape[1]
    return torch.cat([cells[:, :, :1], strength], 2).mul(scale).clamp(min=1e-8).sqrt()


def splat(
    values: Float[Tensor, "b d v p"], row: Float[Tensor, "b d p"], col: Float[Tensor, "b d p"]
) -> Float[Tensor, "b d v h r"]:
    """Sums of values on a grid; each is shared out among the four cells about its place."""
    sums = values.new_zeros(*values.shape[:3], HEIGHTS * RADII)
    low_row, low_col = row.floor(), col.floor()
    for down in (0, 1):
        for right in (0, 1):
            share = (1 - (row - low_row - down).abs()) * (1 - (col - low_col - right).abs())
            place = (low_row + down).clamp(max=HEIGHTS - 1) * RADII + (low_col + right).clamp(max=RADII - 1)
            index = place.long()[:, :, None].expand_as(values)
            sums.scatter_add_(3, index, values * share[:, :, None])
    return sums.unflatten(3, (HEIGHTS, RADII))


def unrolled(points: Float[Tensor, "b p 3"]) -> Float[Tensor, "b c s"]:
    """The surface of centred, upright objects by height (channels) and sector: Σ 1, Σ r and Σ r² with r the radius."""
    height = ((points[..., 1] / _FARTHEST + 1) / 2 * HEIGHTS).long().clamp(0, HEIGHTS - 1)
    angle = torch.atan2(-points[..., 2], points[..., 0]) / (2 * math.pi) * SECTORS
    place = height * SECTORS + angle.round().long() % SECTORS
    radius = points[..., [0, 2]].norm(dim=-1)
    empty = torch.zeros(len(points), HEIGHTS * SECTORS, device=points.device)
    sums = [empty.scatter_add(1, place, value) for value in (torch.ones_like(radius), radius, radius.square())]
    scaled = [total * (HEIGHTS * SECTORS / 16 / points.shape[1]) for total in sums]
    return torch.cat([total.unflatten(1, (HEIGHTS, SECTORS)) for total in scaled], 1)


def across(directions: Float[Tensor, "*n 3"]) -> tuple[Float[Tensor, "*n 3"], Float[Tensor, "*n 3"]]:
    """Two directions at right angles to each one and to each other."""
    helper = torch.zeros_like(directions)
    helper.scatter_(-1, directions.abs().argmin(-1, keepdim=True), 1.0)
    one = F.normalize(torch.linalg.cross(directions, helper, dim=-1), dim=-1)
    return one, torch.linalg.cross(directions, one, dim=-1)


def upright_rotation(up: Float[Tensor, "3"]) -> Float[Tensor, "3 3"]:
    """A rotation that takes this direction to y."""
    one, two = across(up)
    return torch.stack([two, up, one])


def about_y(angle: float | Tensor) -> Float[Tensor, "3 3"]:
    """A turn about y, which takes x towards −z."""
    c, s = torch.as_tensor(angle).cos(), torch.as_tensor(angle).sin()
    return torch.stack([c, 0 * c, s, 0 * c, 0 * c + 1, 0 * c, -s, 0 * c, c]).view(3, 3).float()


def sphere(count: int) -> Float[Tensor, "d 3"]:
    """Directions spread evenly, along a spiral."""
    step = torch.arange(count) + 0.5
    height, angle = 1 - 2 * step / count, step * math.pi * (3 - math.sqrt(5))
    ring = (1 - height.square()).sqrt()
    return torch.stack([ring * angle.cos(), height, ring * angle.sin()], -1)


def cone(direction: Float[Tensor, "3"], degrees: float, count: int) -> Float[Tensor, "d 3"]:
    """Directions spread evenly over the cap within an angle of this one."""
    step = torch.arange(count) + 0.5
    away, angle = math.radians(degrees) * (step / count).sqrt(), step * math.pi * (3 - math.sqrt(5))
    one, two = across(direction)
    sideways = angle.cos()[:, None] * one + angle.sin()[:, None] * two
    return away.cos()[:, None] * direction + away.sin()[:, None] * sideways


def principal_axes(points: Float[Tensor, "p 3"]) -> Float[Tensor, "6 3"]:
    """The axes of the surface's second moments, both ways."""
    axes = torch.linalg.eigh(points.mT @ points / len(points)).eigenvectors.mT
    return torch.cat([axes, -axes])
