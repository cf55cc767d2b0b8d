"""Photographs of pieces that lie apart on a table, made by code so that the truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import skimage.data
import torch
from PIL import Image, ImageFilter
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.squares.cut import cut_picture


@dataclass(frozen=True)
class Photo:
    """A photograph (3, H, W) with where each piece lies, by which angle (degrees, clockwise), and which one it is."""

    picture: Tensor
    centres: Tensor
    angles: Tensor
    order: Tensor
    puzzle: Puzzle


def _lay(
    puzzle: Puzzle, sides: list[int], seed: int
) -> tuple[Image.Image, Image.Image, list[tuple[float, float, float]]]:
    """Pieces at any angle, each in a field of its own: colours, what they cover, and centre and angle of each."""
    generator = torch.Generator().manual_seed(seed)
    step = round(max(sides) * 1.75)
    cols = math.ceil(len(sides) ** 0.5)
    size = cols * step + step // 2, math.ceil(len(sides) / cols) * step + step // 2
    layer, cover, places = Image.new("RGB", size), Image.new("L", size), []
    for place, (pixels, side) in enumerate(zip(puzzle.pixels, sides, strict=True)):
        angle = float(torch.rand((), generator=generator)) * 360
        piece = Image.fromarray((pixels * 255).round().byte().movedim(0, -1).numpy())
        large = piece.resize((4 * side, 4 * side), Image.Resampling.LANCZOS).convert("RGBA")
        turned = large.rotate(-angle, expand=True, resample=Image.Resampling.BICUBIC)
        turned = turned.resize((turned.width // 4, turned.height // 4), Image.Resampling.LANCZOS)
        jitter = (torch.rand(2, generator=generator) - 0.5) * side * 0.15
        x, y = (place % cols + 0.75) * step + jitter[0], (place // cols + 0.75) * step + jitter[1]
        corner = round(float(x) - turned.width / 2), round(float(y) - turned.height / 2)
        layer.paste(turned.convert("RGB"), corner, turned.getchannel("A"))
        cover.paste(turned.getchannel("A"), corner, turned.getchannel("A"))
        places.append((corner[0] + turned.width / 2, corner[1] + turned.height / 2, angle))
    return layer, cover, places


def _photograph(
    layer: Image.Image, cover: Image.Image, background: tuple[int, int, int], shadow: float, seed: int
) -> Tensor:
    """Pieces on a table that is lit from one side, with the shadows they cast, and noise."""
    width, height = layer.size
    y, x = np.mgrid[0:height, 0:width]
    table = np.array(background) - 30 * (0.7 * x / width + 0.5 * y / height)[..., None]
    moved = Image.new("L", layer.size)
    moved.paste(cover, (4, 6))
    dark = np.asarray(moved.filter(ImageFilter.GaussianBlur(4))) / 255
    covered = np.asarray(cover)[..., None] / 255
    seen = table * (1 - shadow * dark[..., None]) * (1 - covered) + np.asarray(layer) * covered
    seen = seen + np.random.default_rng(seed).normal(0, 3, seen.shape)
    return torch.from_numpy(seen.clip(0, 255).round() / 255).movedim(-1, 0).float()


@pytest.fixture(scope="session")
def photograph() -> Callable[..., Photo]:
    """Cut a sample picture, scatter its pieces and take a photo; `sides` are the pieces' sizes in it."""

    def make(
        name: str = "coffee",
        sides: list[int] | int = 56,
        background: tuple[int, int, int] = (90, 140, 90),
        shadow: float = 0.35,
        seed: int = 0,
    ) -> Photo:
        picture = torch.from_numpy(getattr(skimage.data, name)()).movedim(-1, 0).float() / 255
        puzzle = cut_picture(picture, Board(3, 3), torch.Generator().manual_seed(seed), size=64)
        sizes = sides if isinstance(sides, list) else [sides] * len(puzzle)
        layer, cover, places = _lay(puzzle, sizes, seed)
        seen = _photograph(layer, cover, background, shadow, seed)
        where = torch.tensor(places)
        return Photo(seen, where[:, :2], where[:, 2], torch.arange(len(puzzle)), puzzle)

    return make
