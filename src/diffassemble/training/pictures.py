"""Pictures to learn from: decoded once and kept as bytes, varied, and cut into an endless stream of puzzles."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Gt, Interval, Le
from jaxtyping import Float, UInt8
from torch import Tensor

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Cases, Fraction, Natural, Settings, Share, Weight
from diffassemble.io.pictures import read_picture, to_levels
from diffassemble.squares.cut import SMALLEST_PIECE, cut_picture
from diffassemble.squares.pictures import short_names, training_pictures
from diffassemble.training.config import Config
from diffassemble.training.data import Mixture, Portion, missing_share, share_out, split_apart, uniform

SMALLEST_SIZE = 16
"""fewest pixels a side that pieces are cut with"""
DEEPEST = (SMALLEST_SIZE - SMALLEST_PIECE) // 2
"""most pixels that erosion may take from such a piece at every side"""
GridSide = Annotated[int, Interval(ge=2, le=999)]
Picture = Float[Tensor, "3 H W"]
Levels = UInt8[Tensor, "3 _ _"]
HeldApart = list[tuple[str, tuple[Levels, ...]]]
"""names of folders and their pictures that are never trained on"""


@dataclass(frozen=True)
class PictureConfig(Settings):
    """Which pictures."""

    folders: tuple[Path, ...] = ()
    """folders of training pictures"""
    shares: tuple[Weight, ...] = ()
    """how often each folder is drawn from; empty: equally often"""
    held_apart: Natural = 32
    """pictures of each folder that choose the checkpoint and are never trained on; at most a quarter of all"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not self.folders:
            yield "folders", "folders of training pictures; pass --data.folders DIR [DIR ...]"
        if len(set(self.folders)) < len(self.folders):
            yield "folders", "different folders; pass --data.shares to draw more often from one"
        if self.shares and len(self.shares) != len(self.folders):
            yield "shares", f"{len(self.folders)} numbers, one for each folder"
        if self.shares and not any(self.shares):
            yield "shares", "more than 0 for some folder"
        if getattr(self, "cache", None) and not getattr(self, "variants", 0):
            yield "cache", "empty without --data.variants: pictures that never come again need not be kept"


@dataclass(frozen=True)
class DataConfig(PictureConfig):
    """Which pictures, and what puzzles become of them."""

    grids: tuple[GridSide, GridSide] = (3, 12)
    """fewest and most rows and columns"""
    favourite: GridSide = 6
    """this square grid makes up `favourite_share` of the batches"""
    favourite_share: Share = 0.4
    missing: Fraction = 0.4
    """largest share of missing pieces"""
    whole_share: Share = 0.4
    """share of batches without missing pieces"""
    erode: Annotated[int, Interval(ge=0, le=DEEPEST)] = 2
    """largest erosion in pixels"""
    erode_share: Share = 0.2
    """share of batches with eroded pieces"""
    smallest_crop: Annotated[float, Gt(0), Le(1)] = 0.75
    """smallest side of a random crop, as a share of the picture's"""
    jitter: Share = 0.25
    """strength of random brightness, contrast and colour"""
    variants: Cases = 0
    """crops and lights of each picture on the favourite grid, which then come again and again; 0: always others"""
    cache: Path | None = None
    """folder that keeps the frozen features of such pictures, so that each is encoded only once"""

    @property
    def largest(self) -> int:
        """The most rows and columns of a puzzle."""
        return max(self.favourite, self.grids[1])

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.grids[0] > self.grids[1]:
            yield "grids", "the fewest rows, then the most"


def load_pictures(data: PictureConfig, load: Callable[[Path], Levels]) -> tuple[Mixture[Levels], HeldApart]:
    """Pictures to learn from, and by folder those held apart, each as `load` reads it."""
    splits = [split_apart(training_pictures(os.fspath(folder)), data.held_apart) for folder in data.folders]
    groups = [tuple(packed(map(load, train))) for train, _ in splits]
    named = zip(short_names(data.folders), splits, strict=True)
    return Mixture(groups, data.shares or (1.0,) * len(groups)), [
        (name, tuple(packed(map(load, held)))) for name, (_, held) in named
    ]


def packed(pictures: Iterable[Levels], together: int = 256) -> Iterator[Levels]:
    """The same pictures, each of its own size, in large blocks of memory.

    Kept one by one, they fragment the memory that decoding leaves behind, and take five times the room.
    """
    waiting = iter(pictures)
    while group := list(islice(waiting, together)):
        parts = torch.cat([picture.flatten() for picture in group]).split([picture.numel() for picture in group])
        yield from (part.view(picture.shape) for part, picture in zip(parts, group, strict=True))


def load_picture(path: Path, smallest: int = 1, largest: int = 512) -> Levels:
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


class PuzzleStream:
    """Batches of puzzles of one grid, one missing share and one erosion each; every crop fits into every grid."""

    def __init__(self, config: Config) -> None:
        self.config: DataConfig = config.data
        self.pieces, self.seed = config.training.pieces, config.training.seed
        # One pixel a piece is for rounding.
        smallest = math.ceil(self.config.largest * (SMALLEST_PIECE + 1) / self.config.smallest_crop)
        self.pictures, self.held_apart = load_pictures(self.config, partial(load_picture, smallest=smallest))

    @staticmethod
    def check(config: Config) -> None:
        """Refuse batches that the largest puzzle does not fit into."""
        most, pieces = config.data.largest, config.training.pieces
        if pieces < most**2:
            wanted = f"{most**2} or more, so that a {most}x{most} puzzle fits into a batch; or lower --data.grids"
            raise InputError(f"--training.pieces {pieces}: must be {wanted}")

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""
        generator, config = seeded(self.seed, step), self.config
        board = self._board(generator)
        missing = missing_share(config, generator)
        worn = uniform(0.0, 1.0, generator) < config.erode_share and config.erode > 0
        erode = int(torch.randint(1, config.erode + 1, (), generator=generator)) if worn else 0
        enlarge = uniform(0.0, 1.0, generator) < 0.5
        numbers, weight = share_out(max(1, self.pieces // board.cells), rank, world)
        cut = [self._puzzle(step, number, board, missing, erode, enlarge) for number in numbers]
        puzzles, pictures = [puzzle for puzzle, _ in cut], tuple(picture for _, picture in cut)
        return Portion(puzzles, numbers.start, weight, erode, pictures)

    def _board(self, generator: torch.Generator) -> Board:
        if uniform(0.0, 1.0, generator) < self.config.favourite_share:
            return Board(self.config.favourite, self.config.favourite)
        low, high = self.config.grids
        rows, cols = (int(x) for x in torch.randint(low, high + 1, (2,), generator=generator))
        return Board(rows, rows if uniform(0.0, 1.0, generator) < 0.5 else cols)

    def _puzzle(
        self, step: int, number: int, board: Board, missing: float, erode: int, enlarge: bool
    ) -> tuple[Puzzle, Picture | None]:
        """A puzzle, and its whole picture if that comes again."""
        config, generator = self.config, seeded(self.seed, step, number)
        folder, chosen = self.pictures.choose(generator)
        again = board == Board(config.favourite, config.favourite) and config.variants > 0 and not erode
        varied = generator
        if again:
            variant = int(torch.randint(config.variants, (), generator=generator))
            varied = seeded(self.seed, folder, chosen, variant)
        picture = self.pictures.groups[folder][chosen].float() / 255
        picture = random_crop(picture, board, config.smallest_crop, varied)
        picture = mirror_and_relight(picture, config.jitter, varied)
        # Pieces of 32 pixels as in the paper, or, for fine grids, sharp ones of fewer pixels.
        size = 32 if enlarge or again else max(SMALLEST_SIZE, 32 * 6 // max(6, board.rows, board.cols))
        puzzle = cut_picture(picture, board, generator, size=size, missing=missing, erode=erode)
        return puzzle, picture if again else None
