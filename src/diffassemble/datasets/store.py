"""Training pictures, decoded once and kept in memory as bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from diffassemble.datasets.named import training_pictures
from diffassemble.files.images import read_picture, to_levels
from diffassemble.puzzle import InputError

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
    paths = training_pictures(os.fspath(folder))
    count = min(held_apart, len(paths) // 4)
    chosen = {len(paths) * (2 * i + 1) // (2 * count) for i in range(count)} if count else set()
    return [p for i, p in enumerate(paths) if i not in chosen], [paths[i] for i in sorted(chosen)]


def load_store(folders: Sequence[Sequence[Path]], shares: Sequence[float], smallest: int = 1) -> PictureStore:
    """Decode every picture; one with a side of under `smallest` pixels is refused."""
    loaded = tuple(tuple(packed(load_picture(path, smallest) for path in paths)) for paths in folders)
    return PictureStore(loaded, tuple(shares) or (1.0,) * len(loaded))


def packed(pictures: Iterable[UInt8[Tensor, "3 _ _"]], together: int = 256) -> Iterator[UInt8[Tensor, "3 _ _"]]:
    """The same pictures, each of its own size, in large blocks of memory.

    Kept one by one, they lie among the holes that decoding leaves behind, and take five times the room.
    """
    waiting = iter(pictures)
    while group := list(islice(waiting, together)):
        parts = torch.cat([picture.flatten() for picture in group]).split([picture.numel() for picture in group])
        yield from (part.view(picture.shape) for part, picture in zip(parts, group, strict=True))


def load_picture(path: Path, smallest: int = 1) -> UInt8[Tensor, "3 H W"]:
    """A picture as bytes; large ones are thinned to between 512 and 1024 pixels on the shorter side."""
    picture = read_picture(path)
    height, width = picture.shape[-2:]
    if min(height, width) < smallest:
        raise InputError(
            f"{path}: is {width}x{height} pixels, but these grids need {smallest} or more a side to train on; "
            "remove it or lower --data.grids"
        )
    step = max(1, min(height, width) // LARGEST_SIDE)
    return to_levels(picture if step == 1 else torch.nn.functional.avg_pool2d(picture, step))
