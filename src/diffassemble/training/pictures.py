"""Pictures to learn from: decoded once and kept as bytes, varied, and cut into an endless stream of puzzles.

Every puzzle of the stream is a pure function of (seed, step, number). So a resumed run sees what the uninterrupted one
would have seen, and several processes can share out one batch.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from diffassemble.core import Board, InputError, Matches, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.io.pictures import read_picture, to_image, to_levels
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.pictures import short_names, training_pictures
from diffassemble.training.config import SMALLEST_SIZE, DataConfig, PictureConfig

Picture = Float[Tensor, "3 H W"]
Pictures = Float[Tensor, "b 3 H W"]
Resized = Float[Tensor, "b 3 h w"]
Pixels = Float[Tensor, "n 3 s s"]
UNKNOWN = math.nan
"""colour of what is missing"""


def uniform(low: float, high: float, generator: torch.Generator) -> float:
    """One random number in [low, high)."""
    return low + (high - low) * float(torch.rand((), generator=generator))


def random_crop(picture: Picture, board: Board, smallest: float, generator: torch.Generator) -> Float[Tensor, "3 h w"]:
    """A random part with the board's shape, its side between `smallest` and all of the largest that fits."""
    height, width = picture.shape[-2:]
    unit = min(height / board.rows, width / board.cols) * uniform(smallest, 1.0, generator)
    rows, cols = int(unit * board.rows), int(unit * board.cols)
    top = int(uniform(0.0, float(height - rows + 1), generator))
    left = int(uniform(0.0, float(width - cols + 1), generator))
    return picture[:, top : top + rows, left : left + cols]


def mirror_and_relight(picture: Picture, strength: float, generator: torch.Generator) -> Picture:
    """Mirror left and right half of the time; shift brightness, contrast and colour balance; sometimes grey."""
    if uniform(0.0, 1.0, generator) < 0.5:
        picture = picture.flip(-1)
    gain = 1 + strength * (torch.rand(3, 1, 1, generator=generator) - 0.5)
    contrast = 1 + strength * (2 * uniform(0.0, 1.0, generator) - 1)
    shift = strength * (uniform(0.0, 1.0, generator) - 0.5)
    picture = ((picture * gain - 0.5) * contrast + 0.5 + shift).clamp(0, 1)
    if uniform(0.0, 1.0, generator) < 0.08:
        picture = picture.mean(0, keepdim=True).expand(3, -1, -1)
    return picture


@dataclass(frozen=True)
class PictureStore:
    """Pictures by folder; `shares` says how often each folder is drawn from."""

    folders: tuple[tuple[UInt8[Tensor, "3 H W"], ...], ...]
    shares: tuple[float, ...]

    def draw(self, generator: torch.Generator) -> Float[Tensor, "3 H W"]:
        """A random picture, colours in [0, 1]."""
        folder, number = self.choose(generator)
        return self.folders[folder][number].float() / 255

    def choose(self, generator: torch.Generator) -> tuple[int, int]:
        """The numbers of a random folder and of a picture in it."""
        folder = int(torch.multinomial(torch.tensor(self.shares), 1, generator=generator))
        return folder, int(torch.randint(len(self.folders[folder]), (), generator=generator))


def split_paths(folder: Path, held_apart: int) -> tuple[list[Path], list[Path]]:
    """Training pictures and the ones held apart to choose the checkpoint: evenly spread, at most a quarter of all."""
    paths = training_pictures(os.fspath(folder))
    count = min(held_apart, len(paths) // 4)
    chosen = {len(paths) * (2 * i + 1) // (2 * count) for i in range(count)} if count else set()
    return [p for i, p in enumerate(paths) if i not in chosen], [paths[i] for i in sorted(chosen)]


HeldApart = list[tuple[str, tuple[UInt8[Tensor, "3 _ _"], ...]]]
"""names of folders and their pictures that are never trained on"""


def load_pictures(
    data: PictureConfig, load: Callable[[Path], UInt8[Tensor, "3 _ _"]]
) -> tuple[PictureStore, HeldApart]:
    """Pictures to learn from, and by folder those held apart, each as `load` reads it."""
    splits = [split_paths(folder, data.held_apart) for folder in data.folders]
    shares = data.shares or (1.0,) * len(splits)
    store = PictureStore(tuple(tuple(packed(map(load, train))) for train, _ in splits), shares)
    named = zip(short_names(data.folders), splits, strict=True)
    return store, [(name, tuple(packed(map(load, held)))) for name, (_, held) in named]


def packed(pictures: Iterable[UInt8[Tensor, "3 _ _"]], together: int = 256) -> Iterator[UInt8[Tensor, "3 _ _"]]:
    """The same pictures, each of its own size, in large blocks of memory.

    Kept one by one, they lie among the holes that decoding leaves behind, and take five times the room.
    """
    waiting = iter(pictures)
    while group := list(islice(waiting, together)):
        parts = torch.cat([picture.flatten() for picture in group]).split([picture.numel() for picture in group])
        yield from (part.view(picture.shape) for part, picture in zip(parts, group, strict=True))


def load_picture(path: Path, smallest: int = 1, largest: int = 512) -> UInt8[Tensor, "3 H W"]:
    """A picture as bytes; the shorter side of large ones is reduced by a whole factor to `largest` pixels or more."""
    picture = read_picture(path)
    height, width = picture.shape[-2:]
    if min(height, width) < smallest:
        raise InputError(
            f"{path}: is {width}x{height} pixels, but these grids need {smallest} or more a side to train on; "
            "remove it or lower --data.grids"
        )
    step = max(1, min(height, width) // largest)
    return to_levels(picture if step == 1 else F.avg_pool2d(picture, step))


def load_thin(path: Path, side: int) -> UInt8[Tensor, "3 H W"]:
    """A picture in its own shape, its shorter side at most this long."""
    levels = load_picture(path)
    scale = side / min(levels.shape[-2:])
    if scale >= 1:
        return levels
    size = [max(side, round(length * scale)) for length in levels.shape[-2:]]
    return to_levels(F.interpolate(levels[None].float() / 255, size, mode="bilinear", antialias=True)[0])


@dataclass(frozen=True)
class Source:
    """The whole picture that a puzzle was cut from, and numbers that no other picture of the run has."""

    picture: Picture
    number: tuple[int, ...]


@dataclass(frozen=True)
class Portion:
    """One process's part of a batch.

    `first` is the number of its first puzzle in the whole batch. The mean over processes of `weight` times the
    mean over the own puzzles is the mean over the whole batch, also where it can't be shared out evenly. All pieces
    lost `erode` pixels at every side. `sources` are given for puzzles whose pictures come again and again, `matches`
    for puzzles whose matches are known.
    """

    puzzles: list[Puzzle]
    first: int
    weight: float
    erode: int = 0
    sources: tuple[Source | None, ...] = ()
    matches: tuple[Matches, ...] = ()


class PuzzleStream:
    """Batches of puzzles of one grid, one missing share and one erosion each."""

    def __init__(self, store: PictureStore, config: DataConfig, pieces: int, seed: int) -> None:
        self.store, self.config, self.pieces, self.seed = store, config, pieces, seed

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""
        generator = seeded(self.seed, step)
        board = self._board(generator)
        config = self.config
        whole = uniform(0.0, 1.0, generator) < config.whole_share
        missing = 0.0 if whole else uniform(0.0, config.missing, generator)
        worn = uniform(0.0, 1.0, generator) < config.erode_share and config.erode > 0
        erode = int(torch.randint(1, config.erode + 1, (), generator=generator)) if worn else 0
        enlarge = uniform(0.0, 1.0, generator) < 0.5
        numbers, weight = share_out(max(1, self.pieces // board.cells), rank, world)
        cut = [self._puzzle(step, number, board, missing, erode, enlarge) for number in numbers]
        return Portion([puzzle for puzzle, _ in cut], numbers.start, weight, erode, tuple(source for _, source in cut))

    def _board(self, generator: torch.Generator) -> Board:
        if uniform(0.0, 1.0, generator) < self.config.favourite_share:
            return Board(self.config.favourite, self.config.favourite)
        low, high = self.config.grids
        rows, cols = (int(x) for x in torch.randint(low, high + 1, (2,), generator=generator))
        if uniform(0.0, 1.0, generator) < 0.5:
            cols = rows
        return Board(rows, cols)

    def _puzzle(
        self, step: int, number: int, board: Board, missing: float, erode: int, enlarge: bool
    ) -> tuple[Puzzle, Source | None]:
        config, generator = self.config, seeded(self.seed, step, number)
        folder, chosen = self.store.choose(generator)
        favourite, again = Board(config.favourite, config.favourite), None
        varied = generator
        if board == favourite and config.variants and not erode:
            again = self.seed, folder, chosen, int(torch.randint(config.variants, (), generator=generator))
            varied = seeded(*again)
        picture = self.store.folders[folder][chosen].float() / 255
        picture = random_crop(picture, board, config.smallest_crop, varied)
        picture = mirror_and_relight(picture, config.jitter, varied)
        # Pieces of 32 pixels as in the paper, or, for fine grids, sharp ones of fewer pixels.
        size = 32 if enlarge or again else max(SMALLEST_SIZE, 32 * 6 // max(6, board.rows, board.cols))
        puzzle = cut_picture(picture, board, generator, size=size, missing=missing, erode=erode)
        return puzzle, None if again is None else Source(picture, again)


def share_out(total: int, rank: int, world: int) -> tuple[range, float]:
    """The numbers among 0 … total − 1 that fall to process `rank` of `world`, and their weight in the mean.

    A process for which nothing is left gets the first one at no weight, since all must take part in a step.
    """
    first, end = (-(-total * place // world) for place in (rank, rank + 1))
    if first == end:
        return range(1), 0.0
    return range(first, end), (end - first) * world / total


@dataclass(frozen=True)
class Variation:
    """How far a varied picture may be from the given one."""

    smallest_crop: float
    """smallest side of a crop, as a share of the picture's"""
    tilt: float
    """largest tilt in degrees"""
    light: float
    """strength of random brightness, contrast and colour"""
    holed_share: float
    """share of pictures with missing cells"""


def vary(pictures: Pictures, size: tuple[int, int], variation: Variation, generator: torch.Generator) -> Resized:
    """One variation of each picture, of `size` pixels; colours stay in [0, 1], what is missing is NaN."""
    crops = tilted_crops(pictures, size, variation, generator)
    return with_holes(relit(crops, variation.light, generator), variation.holed_share, generator)


def tilted_crops(
    pictures: Pictures, size: tuple[int, int], variation: Variation, generator: torch.Generator
) -> Resized:
    """Samples of random crops, slightly stretched and tilted, half of them mirrored left to right."""
    count = len(pictures)
    side = _between(count, variation.smallest_crop, 1.0, generator)
    stretch = torch.exp(_between(count, -0.12, 0.12, generator))
    across, down = (side * stretch).clamp(max=1), (side / stretch).clamp(max=1)
    left = _between(count, -1.0, 1.0, generator) * (1 - across)
    top = _between(count, -1.0, 1.0, generator) * (1 - down)
    mirror = torch.rand(count, generator=generator).lt(0.5) * 2.0 - 1
    angle = math.radians(variation.tilt) * _between(count, -1.0, 1.0, generator)
    cosine, sine = angle.cos(), angle.sin()
    first = torch.stack([mirror * across * cosine, -mirror * across * sine, left], 1)
    second = torch.stack([down * sine, down * cosine, top], 1)
    grid = F.affine_grid(torch.stack([first, second], 1), [count, 3, *size], align_corners=False)
    return F.grid_sample(pictures, grid, padding_mode="reflection", align_corners=False)


def relit(pictures: Pictures, strength: float, generator: torch.Generator) -> Pictures:
    """Other gamma, contrast, brightness, saturation and colour balance; one in ten is grey."""
    count = len(pictures)

    def around(middle: float, reach: float) -> Tensor:
        return _between(count, middle - reach, middle + reach, generator).view(-1, 1, 1, 1)

    pictures = pictures ** torch.exp(around(0.0, strength))
    mean = pictures.mean((1, 2, 3), keepdim=True)
    pictures = (pictures - mean) * around(1.0, strength) + mean + around(0.0, strength / 3)
    grey = pictures.mean(1, keepdim=True)
    saturation = around(1.0, 1.5 * strength) * torch.rand(count, 1, 1, 1, generator=generator).ge(0.1)
    pictures = (pictures - grey) * saturation + grey
    balance = 1 + 0.7 * strength * (torch.rand(count, 3, 1, 1, generator=generator) - 0.5)
    return (pictures * balance).clamp(0, 1)


def with_holes(pictures: Pictures, holed_share: float, generator: torch.Generator) -> Pictures:
    """Some pictures lose 5 to 50 % of the square cells of a grid, which has 4 to 8 of them along the shorter side."""
    count, cells = len(pictures), int(torch.randint(4, 9, (), generator=generator))
    rows, cols = (round(cells * length / min(pictures.shape[-2:])) for length in pictures.shape[-2:])
    missing = _between(count, 0.05, 0.5, generator) * torch.rand(count, generator=generator).lt(holed_share)
    lost = torch.rand(count, 1, rows, cols, generator=generator) < missing.view(-1, 1, 1, 1)
    # "nearest" would make cells of uneven width, always in the same order, which tells which way is up.
    lost_pixels = F.interpolate(lost.float(), pictures.shape[-2:], mode="nearest-exact")
    return torch.where(lost_pixels > 0, UNKNOWN, pictures)


def _between(count: int, low: float, high: float, generator: torch.Generator) -> Float[Tensor, "b"]:
    return low + (high - low) * torch.rand(count, generator=generator)


def wear(
    pixels: Pixels, share: float, generator: torch.Generator, qualities: tuple[float, float] = (50.0, 95.0)
) -> Pixels:
    """With the probability `share`, pieces are worn: blurred, unevenly lit, compressed, each in half of these cases."""
    if uniform(0.0, 1.0, generator) >= share:
        return pixels
    blurred, lit, compressed = (torch.rand(3, generator=generator) < 0.5).tolist()
    if blurred:
        pixels = blur(pixels, uniform(0.0, 0.25, generator))
    if lit:
        gain = 1 + 0.04 * (torch.rand(len(pixels), 3, 1, 1, generator=generator) - 0.5)
        pixels = (pixels * gain).clamp(0, 1)
    return compress(pixels, int(uniform(*qualities, generator))) if compressed else pixels


def blur(pixels: Pixels, strength: float) -> Pixels:
    """Every pixel gives the share `strength` to each of its two neighbours, along both axes; nothing is lost."""
    kernel = torch.tensor([strength, 1 - 2 * strength, strength])
    around = F.pad(pixels, (1, 1, 1, 1), mode="replicate").flatten(0, 1)[:, None]
    return F.conv2d(F.conv2d(around, kernel.view(1, 1, 1, 3)), kernel.view(1, 1, 3, 1)).view_as(pixels)


def compress(pixels: Pixels, quality: int) -> Pixels:
    """The pieces as JPEG files of this quality would show them, each for itself: JPEG compresses blocks of 8 pixels."""
    size = pixels.shape[-1]
    room = -size % 8
    padded = F.pad(pixels, (0, room, 0, room), mode="replicate")
    file = io.BytesIO()
    to_image(padded.movedim(0, 1).flatten(1, 2)).save(file, "JPEG", quality=quality, subsampling=0)
    read = torch.from_numpy(np.array(Image.open(file))).movedim(-1, 0).float() / 255
    return read.unflatten(1, (len(pixels), -1)).movedim(1, 0)[..., :size, :size].contiguous()
