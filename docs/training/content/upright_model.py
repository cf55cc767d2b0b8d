"""Which way is up: a score for "this stands upright" from a pretrained backbone, asked of the picture in its four turns."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from backbone import LAST, Backbone, channels_after, four_turns
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor, nn

EARLY = 10
BANDS = 3
POOLED = BANDS * (LAST + channels_after(EARLY))
_MIRRORED_TURNS = [0, 3, 2, 1]


@dataclass(frozen=True)
class UprightConfig:
    """What the scoring head is made of."""

    area: int = 192
    """pictures are looked at with about so many pixels a side"""
    hidden: int = 128
    dropout: float = 0.4
    temperature: float = 1.0
    """logits are divided by it, so that probabilities are calibrated"""


class UprightHead(nn.Module):
    """A score from features of three bands of a picture, one above the other."""

    mean: Tensor
    scale: Tensor

    def __init__(self, config: UprightConfig) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(POOLED))
        self.register_buffer("scale", torch.ones(POOLED))
        self.drop = nn.Dropout(config.dropout)
        self.plain = nn.Linear(POOLED, 1)
        self.deep = nn.Sequential(
            nn.Linear(POOLED, config.hidden), nn.GELU(), nn.Dropout(config.dropout), nn.Linear(config.hidden, 1)
        )
        nn.init.zeros_(self.plain.weight)

    def forward(self, pooled: Float[Tensor, "b p"]) -> Float[Tensor, "b"]:
        seen = self.drop((pooled - self.mean) * self.scale)
        return (self.plain(seen) + self.deep(seen)).squeeze(-1)


@torch.no_grad()
def pooled_features(backbone: Backbone, pictures: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b p"]:
    """The maps after block 10 and after the last one, averaged over three bands from top to bottom."""
    early = backbone(pictures.to(next(backbone.parameters()).dtype), EARLY)
    last = backbone.onward(early, EARLY + 1)
    return torch.cat([F.adaptive_avg_pool2d(maps.float(), (BANDS, 1)).flatten(1) for maps in (last, early)], 1)


class Upright(nn.Module):
    """Logits of the four turns; turning the picture only shifts them."""

    def __init__(self, config: UprightConfig, backbone: Backbone) -> None:
        super().__init__()
        self.config = config
        self.backbone = backbone
        self.head = UprightHead(config)

    @torch.no_grad()
    def forward(self, pictures: Float[Tensor, "b 3 h w"]) -> Float[Tensor, "b 4"]:
        """Logit k: turning the picture clockwise by k quarters makes it upright; unknown pixels are 0.5."""
        height, width = pictures.shape[-2:]
        shape = looked_at(height, width, self.config.area)
        if (height, width) != shape:
            pictures = F.interpolate(pictures, shape, mode="bilinear", antialias=True)
        scores = [self.head(pooled_features(self.backbone, view)) for view in four_turns(pictures)]
        return torch.stack(scores, 1) / self.config.temperature

    def probabilities(self, picture: Float[Tensor, "3 h w"]) -> Float[Tensor, "4"]:
        """Probabilities of the four turns; the mirror image, which needs the opposite turn, is asked too."""
        plain, mirrored = self(torch.stack([picture, picture.flip(-1)]))
        return ((plain + mirrored[_MIRRORED_TURNS]) / 2).softmax(-1)

    @classmethod
    def load(cls, folder: Path, backbone: Backbone) -> Upright:
        """A trained classifier."""
        model = cls(UprightConfig(**json.loads((folder / "config.json").read_text())["model"]), backbone)
        model.head.load_state_dict(load_file(folder / "model.safetensors"))
        return model.eval()


def looked_at(height: int, width: int, area: int) -> tuple[int, int]:
    """A size of about area × area pixels and the picture's shape whose sides are multiples of 32."""
    shape = math.sqrt(min(4.0, max(0.25, width / height)))
    return max(64, 32 * round(area / shape / 32)), max(64, 32 * round(area * shape / 32))
