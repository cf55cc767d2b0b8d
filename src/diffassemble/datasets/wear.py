"""What cameras and files do to pieces: blur, uneven light, compression."""

from __future__ import annotations

import io

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from diffassemble.datasets.augmentation import uniform
from diffassemble.files.images import to_image

# JPEG compresses blocks of so many pixels apart from each other, if colours are kept as fine as brightness.
_BLOCK = 8
_QUALITIES = 50.0, 95.0


def wear(pixels: Float[Tensor, "n 3 s s"], share: float, generator: torch.Generator) -> Float[Tensor, "n 3 s s"]:
    """With the probability `share`, pieces are worn: blurred, unevenly lit, compressed, each in half of these cases."""
    if uniform(0.0, 1.0, generator) >= share:
        return pixels
    blurred, lit, compressed = (torch.rand(3, generator=generator) < 0.5).tolist()
    if blurred:
        pixels = blur(pixels, uniform(0.0, 0.25, generator))
    if lit:
        gain = 1 + 0.04 * (torch.rand(len(pixels), 3, 1, 1, generator=generator) - 0.5)
        pixels = (pixels * gain).clamp(0, 1)
    return compress(pixels, int(uniform(*_QUALITIES, generator))) if compressed else pixels


def blur(pixels: Float[Tensor, "n 3 s s"], strength: float) -> Float[Tensor, "n 3 s s"]:
    """Every pixel gives the share `strength` to each of its two neighbours, along both axes; nothing is lost."""
    kernel = torch.tensor([strength, 1 - 2 * strength, strength])
    around = F.pad(pixels, (1, 1, 1, 1), mode="replicate").flatten(0, 1)[:, None]
    return F.conv2d(F.conv2d(around, kernel.view(1, 1, 1, 3)), kernel.view(1, 1, 3, 1)).view_as(pixels)


def compress(pixels: Float[Tensor, "n 3 s s"], quality: int) -> Float[Tensor, "n 3 s s"]:
    """The pieces as JPEG files of this quality would show them, each for itself."""
    size = pixels.shape[-1]
    room = -size % _BLOCK
    padded = F.pad(pixels, (0, room, 0, room), mode="replicate")
    file = io.BytesIO()
    to_image(padded.movedim(0, 1).flatten(1, 2)).save(file, "JPEG", quality=quality, subsampling=0)
    read = torch.from_numpy(np.array(Image.open(file))).movedim(-1, 0).float() / 255
    return read.unflatten(1, (len(pixels), -1)).movedim(1, 0)[..., :size, :size].contiguous()
