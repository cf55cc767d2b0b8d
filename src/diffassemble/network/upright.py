"""Orientation of assembled pictures: one score for "upright", for each of the four turns of the picture.

The features are those of EfficientNet-Lite0: its first blocks are those of the weights package, the later ones were
trained further and are stored with the head.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import InputError
from diffassemble.core.settings import Fraction, Positive, Share, Width
from diffassemble.network.encoders.efficientnet import load_efficientnet
from diffassemble.network.encoders.image import TURNS
from diffassemble.network.pretrained import Pretrained, bundled_models

FROZEN = 12
"""the last block that is never trained"""

Views = Sequence[Float[Tensor, "b 192 _ _"]]
"""maps of pictures after the last frozen block, turned clockwise by no, one, two and three quarters"""


@dataclass(frozen=True)
class UprightConfig:
    """What the scoring network is made of."""

    side: Width = 192
    """pictures are resized to about side × side pixels, in their own shape"""
    hidden: Width = 128
    """width of the head's hidden layer"""
    dropout: Fraction = 0.4
    bands: Width = 3
    """bands from top to bottom over which maps are averaged"""
    longest: Positive = 30.0
    """ratio of sides above which pictures are compressed"""
    sure: Share = 0.95
    """probability from which on neither the mirror image nor other evidence is used"""


DEFAULT = UprightConfig()


class Upright(Pretrained):
    """Logits of the four turns, each scored by the same network, so that turning the picture only shifts them."""

    config_class = UprightConfig
    halved = True
    temperature: Tensor

    def __init__(self, config: UprightConfig) -> None:
        super().__init__()
        self.config = config
        blocks: Any = load_efficientnet().blocks
        self.blocks = copy.deepcopy(blocks[FROZEN + 1 :]).requires_grad_(True)
        frozen, last = blocks[FROZEN].layers[-1].convolution, blocks[-1].convolution
        pooled = config.bands * (frozen.out_channels + last.out_channels)
        self.norm = nn.BatchNorm1d(pooled, eps=0.01, affine=False)
        self.head = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(pooled, 1))
        self.deep = nn.Sequential(
            nn.Dropout(config.dropout), nn.Linear(pooled, config.hidden), nn.GELU(), nn.Linear(config.hidden, 1)
        )
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, pictures: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 4"]:
        """Logit k: turning the picture clockwise by k quarter turns makes it upright; their softmax is calibrated."""
        return self.judged(views_of(pictures, self.config.side))

    def judged(self, views: Views) -> Float[Tensor, "b t"]:
        """The logits of as many turns as there are views."""
        pooled = []
        for early in views:
            maps = early.contiguous(memory_format=torch.channels_last)
            for block in self.blocks:
                maps = block(maps)
            pooled.append(torch.cat([self._bands(early), self._bands(maps)], 1))
        seen = self.norm(torch.cat(pooled))
        return (self.head(seen) + self.deep(seen)).view(len(views), -1).T / self.temperature

    def _bands(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Means over bands from top to bottom."""
        return F.adaptive_avg_pool2d(maps, (self.config.bands, 1)).flatten(1)


@torch.no_grad()
def views_of(pictures: Float[Tensor, "b 3 h w"], side: int, turns: Sequence[int] = range(TURNS)) -> Views:
    """Maps of the frozen blocks of pictures in their four turns, or some, with about side × side pixels."""
    height, width = pictures.shape[-2:]
    network, pictures = load_efficientnet(), resized(pictures, looked_at(height, width, side))
    return [network(torch.rot90(pictures, -turn, (-2, -1)), FROZEN)[0] for turn in turns]


def looked_at(height: int, width: int, side: int, longest: float = DEFAULT.longest) -> tuple[int, int]:
    """The size of about side × side pixels in the picture's shape whose sides are multiples of 32."""
    stretch = math.sqrt(min(max(height, width) / min(height, width), longest))
    short, long = (max(1, round(side * by / 32)) * 32 for by in (1 / stretch, stretch))
    return (short, long) if height <= width else (long, short)


def resized(pictures: Float[Tensor, "b 3 h w"], size: tuple[int, int]) -> Float[Tensor, "b 3 h2 w2"]:
    """Pictures at another size, grey where colours are not known."""
    pictures = pictures.nan_to_num(0.5)
    return pictures if pictures.shape[-2:] == size else F.interpolate(pictures, size, mode="bilinear", antialias=True)


@torch.no_grad()
def upright_turn(
    model: Upright,
    picture: Float[Tensor, "3 H W"],
    allowed: Sequence[int] = (0, 1, 2, 3),
    more: Callable[[], Sequence[float]] | None = None,
) -> tuple[int, float]:
    """How many clockwise quarter turns, of those allowed, make the picture upright, and the probability of that.

    In doubt the logits of the mirror image, which needs the opposite turn, are averaged with it, and those of `more`,
    log odds of the turns allowed, are added.
    """
    logits = model(picture[None])[0]
    if logits[list(allowed)].softmax(0).max() < model.config.sure:
        mirrored = model(picture[None].flip(-1))[0]
        logits = (logits + mirrored[-torch.arange(TURNS) % TURNS]) / 2
    chances = logits[list(allowed)].softmax(0)
    if more is not None and float(chances.max()) < model.config.sure:
        chances = (chances.log() + torch.tensor(more())).softmax(0)
    best = int(chances.argmax())
    return allowed[best], round(float(chances[best]), 4)


def bundled_upright() -> Upright | None:
    """The network that comes with the package; without it or its backbone, wholes stay as they were assembled."""
    if "upright" not in bundled_models():
        return None
    try:
        load_efficientnet()
    except InputError as error:
        warn_once(f"the orientation of the whole stays unknown: {error}")
        return None
    return Upright.from_pretrained("upright")


@cache
def warn_once(line: str) -> None:
    """Print a line to the error stream, once a process."""
    from rich.console import Console

    Console(stderr=True).print(line, highlight=False, soft_wrap=True)
