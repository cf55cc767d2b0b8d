"""Pictures by what a user calls them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from diffassemble.datasets.pictures import picture_paths
from diffassemble.datasets.published import COLLECTIONS, published_split


def held_out_pictures(name: str) -> list[Path]:
    """Pictures to test on: all of a folder, or the test split of `celeba-hq=FOLDER` or `wikiart=FOLDER`."""
    collection, equals, folder = name.partition("=")
    if equals and collection in COLLECTIONS:
        return published_split(collection, Path(folder))[1]
    return picture_paths(Path(name))


def training_pictures(name: str) -> list[Path]:
    """Pictures to train on: all of a folder, or the training split of `celeba-hq=FOLDER` or `wikiart=FOLDER`."""
    collection, equals, folder = name.partition("=")
    if equals and collection in COLLECTIONS:
        return published_split(collection, Path(folder))[0]
    return picture_paths(Path(name))


def short_name(name: str) -> str:
    """What tables call a collection: its own name, or the last two folders of the path, on any machine alike."""
    collection, equals, _ = name.partition("=")
    return collection if equals and collection in COLLECTIONS else "/".join(Path(name).resolve().parts[-2:])


def short_names(folders: Sequence[Path]) -> list[str]:
    """What a log calls the folders: their short names, or their paths if these are not told apart by them."""
    paths = [os.fspath(folder) for folder in folders]
    names = [short_name(path) for path in paths]
    return names if len(set(names)) == len(names) else paths
