"""Convolutions over the plane and its four quarter turns (Cohen & Welling 2016), exactly Z4-equivariant.

A feature map has a turn axis: (n, channels, 4, h, w). Turning the input picture clockwise turns every map and
shifts the turn axis by one: new[k] = turned old[k + 1]. Maps are halved by 2×2 means, never by strided 3×3
convolutions, whose sampling grid is not symmetric on even maps.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LiftingConvolution(nn.Module):
    """Pixels (n, c, h, w) → maps with a turn axis: one filter, seen at four turns."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, kernel, kernel))
        nn.init.kaiming_normal_(self.weight)

    def forward(self, pixels: Float[Tensor, "n c h w"]) -> Float[Tensor, "n o 4 h w"]:
        # rot90 turns counter-clockwise: slot k holds the filter turned back by k, which is the piece turned on by k.
        turned = torch.stack([torch.rot90(self.weight, turn, (-2, -1)) for turn in range(4)], 1)
        maps = F.conv2d(pixels, turned.flatten(0, 1), padding=self.weight.shape[-1] // 2)
        return maps.unflatten(1, (-1, 4))


class GroupConvolution(nn.Module):
    """Maps with a turn axis → maps with a turn axis."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, 4, kernel, kernel))
        nn.init.normal_(self.weight, std=(2 / (channels_in * 4 * kernel**2)) ** 0.5)

    def forward(self, maps: Float[Tensor, "n c 4 h w"]) -> Float[Tensor, "n o 4 h w"]:
        turned = torch.stack([torch.rot90(self.weight, turn, (-2, -1)).roll(turn, 2) for turn in range(4)], 1)
        kernel = self.weight.shape[-1]
        out = F.conv2d(maps.flatten(1, 2), turned.flatten(0, 1).flatten(1, 2), padding=kernel // 2)
        return out.unflatten(1, (-1, 4))


class GroupNorm(nn.Module):
    """Normalises over channels, turns and places of one piece; one scale per channel, the same for all turns."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, maps: Float[Tensor, "n c 4 h w"]) -> Float[Tensor, "n c 4 h w"]:
        normal = F.layer_norm(maps, maps.shape[1:])
        return normal * self.scale[:, None, None, None] + self.shift[:, None, None, None]


def halve(maps: Float[Tensor, "n c 4 h w"]) -> Float[Tensor, "n c 4 h/2 w/2"]:
    """2×2 means, which commute with quarter turns on even maps."""
    return F.avg_pool2d(maps.flatten(1, 2), 2).unflatten(1, (-1, 4))


class ResidualBlock(nn.Module):
    """Two group convolutions around a shortcut; `shrink` halves the map."""

    def __init__(self, channels_in: int, channels_out: int, shrink: bool) -> None:
        super().__init__()
        self.shrink = shrink
        self.first = GroupConvolution(channels_in, channels_out)
        self.first_norm = GroupNorm(channels_out)
        self.second = GroupConvolution(channels_out, channels_out)
        self.second_norm = GroupNorm(channels_out)
        plain = channels_in == channels_out
        self.shortcut = nn.Identity() if plain else GroupConvolution(channels_in, channels_out, kernel=1)

    def forward(self, maps: Float[Tensor, "n c 4 h w"]) -> Float[Tensor, "n o 4 _h _w"]:
        if self.shrink:
            maps = halve(maps)
        inner = F.relu(self.first_norm(self.first(maps)))
        return F.relu(self.second_norm(self.second(inner)) + self.shortcut(maps))
