"""Features of square pieces (section 3.1), exactly equivariant to quarter turns.

Features come as four slots of f numbers: turning a piece clockwise by one quarter only shifts them, new slot k is old
slot k + 1. The invariant and plain variants exist for the ablation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.extensions import Registry
from diffassemble.network.encoders.efficientnet import load_efficientnet

PIECE_PIXELS = 32
TURNS = 4
FROZEN_WIDTH = 4 * (80 + 112)
"""features of one view by the pretrained network"""


ImageBackbone = Literal["light", "resnet18", "efficientnet"]
Symmetry = Literal["equivariant", "invariant", "plain"]


class Patches(nn.Module):
    """A convolution over patches that don't overlap, as one matrix product: (n, h, w, c) → (n, h/k, w/k, out)."""

    def __init__(self, kernel: int, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.linear = nn.Linear(channels_in * kernel**2, channels_out)

    def forward(self, maps: Float[Tensor, "n h w c"]) -> Float[Tensor, "n _h _w out"]:
        patches = maps.unflatten(2, (-1, self.kernel)).unflatten(1, (-1, self.kernel)).transpose(2, 3)
        return self.linear(patches.flatten(3))


class LightBackbone(nn.Module):
    """A small network for CPUs on one view of a piece, channels last: patches of 4, 8, then all 32 pixels."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.patterns = nn.Sequential(Patches(4, 3, 64), nn.GELU(), Patches(2, 64, 128), nn.GELU(), nn.Flatten())
        self.summary = nn.Sequential(
            nn.Linear(128 * (PIECE_PIXELS // 8) ** 2 + 4, 256), nn.GELU(), nn.Linear(256, features)
        )
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)

    def forward(self, views: Float[Tensor, "n s s 3"]) -> Float[Tensor, "n f"]:
        colour = views.mean((1, 2), keepdim=True)
        contrast = (views - colour).square().mean((1, 2, 3), keepdim=True).sqrt()
        patterns = self.patterns((views - colour) / (contrast + 0.1))
        return self.summary(torch.cat([patterns, colour.flatten(1), contrast.flatten(1)], 1))


class PretrainedViews(nn.Module):
    """Frozen pretrained features of one view of a piece, its colours, and its outermost `rim` of pixels."""

    def __init__(self, features: int, rim: int = 2) -> None:
        super().__init__()
        self.depth = rim
        self.frozen_norm = nn.LayerNorm(FROZEN_WIDTH)
        self.frozen = nn.Linear(FROZEN_WIDTH + 4, features)
        self.rim = nn.Linear(TURNS * rim * PIECE_PIXELS * 3, features // 2)
        width = features + features // 2
        self.mix = nn.Sequential(nn.LayerNorm(width), nn.GELU(), nn.Linear(width, features))

    def forward(self, views: Float[Tensor, "n 3 s s"], frozen: Float[Tensor, "n p"]) -> Float[Tensor, "n f"]:
        colour = views.mean((2, 3), keepdim=True)
        contrast = (views - colour).square().mean((1, 2, 3), keepdim=True).sqrt()
        pattern = (views - colour) / (contrast + 0.1)
        # Each side with its outermost line first: left, right, upper, lower.
        turned = pattern, pattern.flip(-1), pattern.mT, pattern.flip(-2).mT
        rim = torch.cat([side[..., : self.depth].flatten(1) for side in turned], 1)
        content = torch.cat([self.frozen_norm(frozen), colour.flatten(1), contrast.flatten(1)], 1)
        return self.mix(torch.cat([self.frozen(content), self.rim(rim)], 1))


def four_views(pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n 4 3 s s"]:
    """Each piece turned clockwise by 0, 1, 2 and 3 quarters."""
    return torch.stack([torch.rot90(pixels, -turn, (-2, -1)) for turn in range(TURNS)], 1)


def piece_pixels(pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n 3 32 32"]:
    """Pieces of any size, resized to that of the networks' input."""
    if pixels.shape[-1] == PIECE_PIXELS:
        return pixels
    shape = (PIECE_PIXELS, PIECE_PIXELS)
    return F.interpolate(pixels, shape, mode="bilinear", antialias=True, align_corners=False)


@torch.no_grad()
def frozen_features(
    pixels: Float[Tensor, "n 3 s s"],
    dtype: torch.dtype = torch.float32,
    at_once: int = 288,
    blocks: tuple[int, ...] = (7, 10),
) -> Float[Tensor, "n 4 p"]:
    """Features of each view of pieces with colours in [0, 1]: maps of the frozen network after these blocks."""
    network = load_efficientnet().to(pixels.device, dtype)
    parts = []
    with torch.autocast(pixels.device.type, enabled=False):
        for views in four_views(piece_pixels(pixels)).flatten(0, 1).split(at_once):
            parts.append(torch.cat([maps.flatten(1) for maps in network(views.to(dtype), *blocks)], 1).float())
    return torch.cat(parts).unflatten(0, (-1, TURNS))


BACKBONES: Mapping[str, Any] = Registry("parts", {"light": LightBackbone, "efficientnet": PretrainedViews})


class ImageEncoder(nn.Module):
    """Pieces of any size → (n, 4, f) slots; smaller or larger pieces are resized to 32 pixels."""

    def __init__(self, backbone: ImageBackbone, symmetry: Symmetry, features: int) -> None:
        super().__init__()
        self.symmetry = symmetry
        self.features = features
        free = 4 * features if symmetry == "plain" and backbone != "resnet18" else features
        self.backbone = BACKBONES[backbone](free)
        self.kind = backbone

    @property
    def width(self) -> int:
        """Numbers a piece, in all slots together."""
        return 4 * self.features

    def forward(
        self, pixels: Float[Tensor, "n 3 s s"], frozen: Float[Tensor, "n 4 p"] | None = None
    ) -> Float[Tensor, "n 4 f"]:
        """`frozen` are the pretrained network's features, if they are known already."""
        if self.kind == "efficientnet" and frozen is None:
            frozen = frozen_features(pixels)
        pixels = (piece_pixels(pixels) - 0.5) / 0.25
        if self.kind == "resnet18":
            slots = self.backbone(pixels)
        else:
            views = pixels if self.symmetry == "plain" else four_views(pixels).flatten(0, 1)
            if frozen is not None:
                of_views = frozen[:, 0] if self.symmetry == "plain" else frozen.flatten(0, 1)
                slots = self.backbone(views, of_views)
            else:
                slots = self.backbone(views.permute(0, 2, 3, 1).contiguous())
            slots = slots.view(len(pixels), TURNS, self.features)
        if self.symmetry == "invariant":
            slots = slots.mean(1, keepdim=True).expand(-1, 4, -1)
        # All slots together, which keeps the symmetry; content gets the scale of the other inputs.
        return F.layer_norm(slots, slots.shape[1:])
