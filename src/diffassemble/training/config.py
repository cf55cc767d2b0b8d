"""Everything a training run depends on, as one value that is also its command line.

A run is a `Config` of three parts; which classes they are, the task says whose defaults it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge, Gt, Interval, Le, Lt

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS
from diffassemble.core.settings import (
    Cases,
    Count,
    Fraction,
    Natural,
    Positive,
    Settings,
    Share,
    Weight,
    check_settings,
    read_settings,
)
from diffassemble.io.reading import read_json
from diffassemble.squares.cut import SMALLEST_PIECE

SMALLEST_SIZE = 16
"""fewest pixels a side that pieces are cut with"""
DEEPEST = (SMALLEST_SIZE - SMALLEST_PIECE) // 2
"""most pixels that erosion may take from such a piece at every side"""
GridSide = Annotated[int, Interval(ge=2, le=999)]
_Fragments = Annotated[int, Interval(ge=2, le=LIMITS.fragments)]
_Outlines = Annotated[int, Interval(ge=3, le=LIMITS.outlines)]


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
    """folder that keeps what a pretrained network shows of such pictures, so that it looks at each only once"""

    @property
    def largest(self) -> int:
        """The most rows and columns of a puzzle."""
        return max(self.favourite, self.grids[1])

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.grids[0] > self.grids[1]:
            yield "grids", "the fewest rows, then the most"
        if self.cache and not self.variants:
            yield "cache", "empty without --data.variants: pictures that never come again need not be kept"


@dataclass(frozen=True)
class FragmentConfig(Settings):
    """Which broken objects, which whole ones to break, and what puzzles become of them."""

    folders: tuple[Path, ...] = ()
    """folders of Breaking Bad, of which the training split is used"""
    meshes: tuple[Path, ...] = ()
    """folders of whole solids that are broken here"""
    z_up: str = "[A-Z0-9]*"
    """file names of solids that stand along z, as Google's scanned objects do; all others stand along y"""
    solids: Cases = 0
    """solids made of nothing but chance, to be broken here"""
    breaks: Cases = 3
    """fractures made of each solid"""
    shares: tuple[Weight, Weight, Weight] = (0.6, 0.2, 0.2)
    """how often a fracture is drawn from each of these three kinds, where there are any"""
    held_apart: Natural = 12
    """objects of each Breaking Bad folder that choose the checkpoint and are never trained on"""
    pieces: tuple[_Fragments, _Fragments] = (2, 20)
    """fewest and most pieces of a fracture"""
    points: Annotated[int, Interval(ge=32, le=LIMITS.points)] = 400
    """points a piece"""
    missing: Fraction = 0.3
    """largest share of missing pieces"""
    whole_share: Share = 0.7
    """share of batches without missing pieces"""
    joined: Share = 0.0
    """share of fractures of which fragments that lie together are joined at random, as `mend` joins them"""
    stretch: Fraction = 0.15
    """how far objects are stretched along each axis at random; not where matches are heard"""
    wrong: Fraction = 0.4
    """largest share of matches, where they are heard, that say something wrong"""
    unheard: Fraction = 0.3
    """largest share of them that are lost"""
    matching: str = "fracture-matching"
    """networks that find them: a bundled model, a folder or a hub id"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not (self.folders or self.meshes or self.solids):
            yield "folders", "something to learn from; pass --data.folders DIR, --data.meshes DIR or --data.solids N"
        if self.pieces[0] > self.pieces[1]:
            yield "pieces", "the fewest pieces, then the most"
        if not any(self.shares):
            yield "shares", "more than 0 for some kind"


@dataclass(frozen=True)
class OutlineConfig(Settings):
    """Which sheets are cut, and what puzzles become of them."""

    shapes: tuple[Literal["tabs", "torn", "shards", "strips"], ...] = ("tabs", "torn", "shards", "strips")
    """how sheets are cut, in turn"""
    folders: tuple[Path, ...] = ()
    """folders of pictures to cut as well, whose pieces are compared as those of users are"""
    pictures: Cases = 96
    """pictures of these folders that are cut"""
    found_share: Share = 0.5
    """share of puzzles whose matches were found so, if there are any; those of all others are made up"""
    sheets: Annotated[int, Interval(ge=1, le=LIMITS.cases)] = 80
    """sheets that are cut beforehand; turns, losses and made-up matches are always others"""
    held_apart: Natural = 24
    """sheets that choose the checkpoint and are never trained on"""
    pieces: tuple[_Outlines, _Outlines] = (4, 40)
    """fewest and most pieces of a sheet"""
    missing: Fraction = 0.3
    """largest share of missing pieces"""
    whole_share: Share = 0.5
    """share of puzzles without missing pieces"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.pieces[0] > self.pieces[1]:
            yield "pieces", "the fewest pieces, then the most"
        if not self.shapes:
            yield "shapes", "some of tabs, torn, shards and strips"


@dataclass(frozen=True)
class RecordedConfig(Settings):
    """Which puzzles of flat pieces, whose places are known."""

    folders: tuple[Path, ...] = ()
    """folders of puzzle folders, or of pictures of pieces with a truth.csv, as `evaluate` takes them"""
    held_apart: Natural = 10
    """puzzles that choose the checkpoint and are never trained on; at most a quarter of all"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not self.folders:
            yield "folders", "folders of puzzles with known places; pass --data.folders DIR [DIR ...]"


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How long and how hard, whatever is learnt."""

    start_from: str = ""
    """a bundled model, a folder or a hub id whose weights to begin with; empty: at random"""
    steps: Count = 20000
    """batches to learn from, in all calls together"""
    minutes: Positive = 600.0
    """stop after this long, in one call, even if `steps` are not done; go on with --resume"""
    optimizer: Literal["adamw", "adagrad"] = "adamw"
    learning_rate: Positive = 6e-4
    weight_decay: Weight = 0.01
    warmup: Natural = 300
    """first steps, in which the learning rate rises"""
    decay: Share = 0.35
    """last share of the steps, in which the learning rate falls to zero"""
    clip: Positive = 1.0
    """longest gradient"""
    average: Fraction = 0.999
    """decay of the moving average of the weights, which is what is kept"""
    validate_every: Count = 1000
    """steps between two looks at the pictures held apart"""
    checkpoint_minutes: Weight = 4.0
    """most work that a kill may cost"""
    seed: Annotated[int, Ge(0), Lt(2**32)] = 0
    devices: Annotated[int, Interval(ge=1, le=LIMITS.processes)] = 1
    """processes that share out each batch, on every machine"""
    nodes: Annotated[int, Interval(ge=1, le=LIMITS.processes)] = 1
    """machines that share out each batch; torchrun starts the processes there"""
    accelerator: Literal["cpu", "cuda", "mps", "auto"] = "cpu"
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """auto: bfloat16 where the processor computes in it, and faster than in float32"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.nodes > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
            yield "nodes", "1 without torchrun, which starts the processes on several machines; see docs/TRAINING.md"
        if self.accelerator == "cuda" and self.devices > torch.cuda.device_count():
            there = torch.cuda.device_count()
            yield "devices", f"at most {there}, the CUDA devices here; or pass --training.accelerator"


@dataclass(frozen=True)
class Config:
    """One complete run."""

    model: Any
    data: Any
    training: Any


def check_config(config: Config) -> None:
    """Refuse values out of bounds and values that do not go together, by the names of their options."""
    for section in ("model", "data", "training"):
        check_settings(getattr(config, section), section)


def read_config(path: Path, defaults: Config) -> Config:
    """The configuration that a run wrote into its folder, made of the same classes as the defaults of its task."""
    parts = read_json(path, "configuration of a run", sys.float_info.max)
    try:
        return Config(**{name: read_settings(type(part), parts[name]) for name, part in vars(defaults).items()})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: is not the configuration of a run of this preset and version ({error})") from error
