"""Training pictures, decoded once and kept in memory as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diffassemble.datasets.pictures import picture_paths
from diffassemble.files.images import read_picture

LARGEST_SIDE = 512


@dataclass(frozen=True)
class PictureStore:
    """Pictures by folder; `shares` says how often each folder is drawn from."""

    folders: tuple[tuple[UInt8[Tensor, "3 H W"], ...], ...]
    shares: tuple[float, ...]

    def draw(self, generator: torch.Generator) -> Float[Tensor, "3 H W"]:
        """A random picture, colours in [0, 1]."""
        folder = int(torch.multinomial(torch.tensor(self.shares), 1, generator=generator))
        pictures = self.folders[folder]
        return pictures[int(torch.randint(len(pictures), (), generator=generator))].float() / 255


def split_paths(folder: Path, held_apart: int) -> tuple[list[Path], list[Path]]:
    """Training pictures and the ones held apart to choose the checkpoint: evenly spread, at most a quarter of all."""
    paths = picture_paths(folder)
    count = min(held_apart, len(paths) // 4)
    chosen = {len(paths) * (2 * i + 1) // (2 * count) for i in range(count)} if count else set()
    return [p for i, p in enumerate(paths) if i not in chosen], [paths[i] for i in sorted(chosen)]


def load_store(folders: Sequence[Sequence[Path]], shares: Sequence[float]) -> PictureStore:
    """Decode every picture; large ones are thinned to about 512 pixels a side."""
    loaded = tuple(tuple(_bytes(path) for path in paths) for paths in folders)
    return PictureStore(loaded, tuple(shares) or (1.0,) * len(loaded))


def _bytes(path: Path) -> UInt8[Tensor, "3 H W"]:
    picture = read_picture(path)
    step = max(1, min(picture.shape[-2:]) // LARGEST_SIDE)
    if step > 1:
        picture = torch.nn.functional.avg_pool2d(picture, step)
    return (picture * 255).round().to(torch.uint8)
