"""What a training run learns from: pictures, and the puzzles that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class PictureConfig:
    """Which pictures."""

    folders: tuple[Path, ...] = ()
    """folders of training pictures"""
    shares: tuple[float, ...] = ()
    """how often each folder is drawn from; empty: equally often"""
    held_apart: int = 32
    """pictures of each folder that choose the checkpoint and are never trained on; at most a quarter of all"""


@dataclass(frozen=True)
class DataConfig(PictureConfig):
    """Which pictures, and what puzzles become of them."""

    grids: tuple[int, int] = (3, 12)
    """fewest and most rows and columns"""
    favourite: int = 6
    """this square grid makes up `favourite_share` of the batches"""
    favourite_share: float = 0.4
    missing: float = 0.4
    """largest share of missing pieces"""
    whole_share: float = 0.4
    """share of batches without missing pieces"""
    erode: int = 2
    """largest erosion in pixels"""
    erode_share: float = 0.2
    """share of batches with eroded pieces"""
    smallest_crop: float = 0.75
    """smallest side of a random crop, as a share of the picture's"""
    jitter: float = 0.25
    """strength of random brightness, contrast and colour"""


@dataclass(frozen=True)
class FragmentConfig:
    """Which broken objects, which whole ones to break, and what puzzles become of them."""

    folders: tuple[Path, ...] = ()
    """folders of Breaking Bad, of which the training split is used"""
    meshes: tuple[Path, ...] = ()
    """folders of whole solids that are broken here"""
    z_up: str = ""
    """a pattern of file names, such as scan_*: solids in such files stand along z, all others along y"""
    solids: int = 0
    """solids made of nothing but chance, to be broken here"""
    breaks: int = 3
    """fractures made of each solid"""
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    """how often a fracture is drawn from each of these three kinds, where there are any"""
    held_apart: int = 12
    """objects of each Breaking Bad folder that choose the checkpoint and are never trained on"""
    pieces: tuple[int, int] = (2, 20)
    """fewest and most pieces of a fracture"""
    points: int = 400
    """points a piece"""
    missing: float = 0.3
    """largest share of missing pieces"""
    whole_share: float = 0.7
    """share of batches without missing pieces"""
    joined: float = 0.0
    """share of fractures of which fragments that lie together are joined at random, as `mend` joins them"""
    stretch: float = 0.15
    """how far objects are stretched along each axis at random"""


@dataclass(frozen=True)
class FractureDataConfig(FragmentConfig):
    """Which broken objects fracture matching is learnt from, and what of it."""

    learn: Literal["surface", "fits"] = "surface"
    """surface: where the break is, and who fits whom; fits, after that: which fits are true"""
    noise: float = 0.0015
    """largest noise that half of the objects gets, as a share of their size"""
    times: int = 1
    """how often examples are made of each fracture, each time of other points, with other noise and missing pieces"""
