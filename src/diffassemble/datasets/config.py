"""What a training run learns from: pictures, and the puzzles that are made of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
