"""Training pictures as bytes, split into those to learn from and those held apart; made varied for learning."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

DATA = Path(os.environ["DIFFASSEMBLE_DATA"])
FOLDERS = ("faces", "paintings", "photos")
HELD = {"faces": 250, "paintings": 300, "photos": 40}
UNKNOWN = 0.5


def load(folder: str, split: str = "train", chosen: Sequence[int] | None = None) -> UInt8[Tensor, "n 3 s s"]:
    """All pictures of a folder, by name, or the chosen ones."""
    paths = sorted((DATA / folder / split).glob("*"))
    paths = [p for p in paths if p.suffix.lower() in (".jpg", ".png")]
    paths = paths if chosen is None else [paths[i] for i in chosen]
    arrays = np.stack([np.asarray(Image.open(path).convert("RGB")) for path in paths])
    return torch.from_numpy(arrays).permute(0, 3, 1, 2).contiguous()


def held_apart(count: int, held: int) -> Tensor:
    """Which of `count` pictures are held apart: evenly spread."""
    mask = torch.zeros(count, dtype=torch.bool)
    mask[[count * (2 * i + 1) // (2 * held) for i in range(held)]] = True
    return mask


def resized(picture: Float[Tensor, "3 H W"], height: int, width: int) -> Float[Tensor, "3 h w"]:
    """The picture at another size, without aliasing."""
    if picture.shape[-2:] == (height, width):
        return picture
    return F.interpolate(picture[None], (height, width), mode="bicubic", antialias=True)[0].clamp(0, 1)


def cropped(picture: Tensor, aspect: float, smallest: float, random: np.random.Generator) -> Tensor:
    """A random part of the given width over height, its size between `smallest` and all of the largest that fits."""
    height, width = picture.shape[-2:]
    unit = min(height, width / aspect) * random.uniform(smallest, 1.0)
    rows, cols = int(round(unit)), int(round(unit * aspect))
    rows, cols = min(rows, height), min(cols, width)
    top, left = random.integers(0, height - rows + 1), random.integers(0, width - cols + 1)
    return picture[:, top : top + rows, left : left + cols]


def relit(picture: Tensor, strength: float, random: np.random.Generator) -> Tensor:
    """Other brightness, contrast and colour balance; sometimes grey."""
    gain = torch.tensor(1 + strength * (random.random((3, 1, 1)) - 0.5), dtype=torch.float32)
    contrast, shift = 1 + strength * random.uniform(-1, 1), strength * random.uniform(-0.5, 0.5)
    picture = ((picture * gain - 0.5) * contrast + 0.5 + shift).clamp(0, 1)
    return picture.mean(0, keepdim=True).expand(3, -1, -1) if random.random() < 0.08 else picture


def damaged(
    picture: Float[Tensor, "3 h w"], rows: int, cols: int, missing: float, wrong: float, random: np.random.Generator
) -> Float[Tensor, "3 h w"]:
    """The picture with a share of its cells unknown and another share of them changed round and turned."""
    height, width = picture.shape[-2:]
    size = max(4, -(-height // rows))
    whole = F.interpolate(picture[None], (rows * size, cols * size), mode="bilinear", antialias=True)[0]
    cells = whole.reshape(3, rows, size, cols, size).permute(1, 3, 0, 2, 4).reshape(rows * cols, 3, size, size).clone()
    chosen = np.flatnonzero(random.random(len(cells)) < wrong)
    if len(chosen) > 1:
        moved = cells[random.permutation(chosen)]
        cells[chosen] = torch.stack([torch.rot90(c, int(random.integers(4)), (1, 2)) for c in moved])
    cells[torch.from_numpy(random.random(len(cells)) < missing)] = UNKNOWN
    whole = cells.reshape(rows, cols, 3, size, size).permute(2, 0, 3, 1, 4).reshape(3, rows * size, cols * size)
    return F.interpolate(whole[None], (height, width), mode="bilinear", antialias=True)[0].clamp(0, 1)
