"""Collections of pictures to cut puzzles from: any folder, and the two collections of the paper.

The paper's lists are in the authors' repository (github.com/IIT-PAVIS/DiffAssemble, folder datasets/data_splits): the
two text files of a collection are used if they are in its folder, or in `data_splits` in it. Without them a split of
the same sizes is used: CelebA-HQ by number, WikiArt by a seeded hash of the file's name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diffassemble.core import InputError
from diffassemble.io.pictures import PICTURE_ENDINGS, is_picture


def picture_paths(folder: Path) -> list[Path]:
    """All pictures in a folder and the folders below it, sorted by path; hidden files are passed over."""
    if not folder.exists():
        raise InputError(f"{folder} does not exist; pass a folder of pictures")
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; pass the folder that holds the pictures")
    found = sorted(filter(is_picture, folder.rglob("*")))
    if not found:
        known = " ".join(sorted(PICTURE_ENDINGS))
        raise InputError(f"{folder} holds no pictures; pass a folder with files ending in {known}")
    return found


@dataclass(frozen=True)
class PublishedCollection:
    """Sizes of a collection's split, names of its list files, and how to come by the pictures."""

    title: str
    train: int
    test: int
    lists: tuple[str, str]
    source: str
    numbered: bool


_FACES = "CelebAMask-HQ (github.com/switchablenorms/CelebAMask-HQ); pass its folder CelebA-HQ-img"
_ART = "ArtGAN (github.com/cs-chan/ArtGAN, folder 'WikiArt Dataset'); pass its folder wikiart"
COLLECTIONS = {
    "celeba-hq": PublishedCollection(
        "CelebA-HQ", 24_000, 6_000, ("CelebA-HQ_train.txt", "CelebA-HQ_test.txt"), _FACES, numbered=True
    ),
    "wikiart": PublishedCollection(
        "WikiArt", 50_503, 12_625, ("wikiart_subset_train.txt", "wikiart_subset_test.txt"), _ART, numbered=False
    ),
}


def published_split(name: str, folder: Path, *, seed: int = 0) -> tuple[list[Path], list[Path]]:
    """Training and test pictures of "celeba-hq" or "wikiart"; `seed` chooses among the hashed splits of WikiArt."""
    if name not in COLLECTIONS:
        raise InputError(f"there is no collection {name!r}; choose one of {', '.join(COLLECTIONS)}")
    collection = COLLECTIONS[name]
    try:
        paths = picture_paths(folder)
    except InputError as error:
        raise InputError(f"{error}; get {collection.title} from {collection.source}") from None
    for place in (folder, folder / "data_splits"):
        lists = [place / listed for listed in collection.lists]
        there = [file.is_file() for file in lists]
        if all(there):
            return _listed(collection, paths, lists[0]), _listed(collection, paths, lists[1])
        if any(there):
            raise InputError(f"{place} has one of {' and '.join(collection.lists)}; add the other or remove it")
    total = collection.train + collection.test
    if collection.numbered:  # names are the numbers 0, 1, 2, …; others, such as masks, are passed over
        numbers = {int(path.stem): path for path in paths if path.stem.isdecimal() and int(path.stem) < total}
        ordered = [numbers[number] for number in sorted(numbers)]
    else:  # looks random, but follows from the seed and the file names alone
        ordered = sorted(paths, key=lambda path: hashlib.sha256(f"{seed}/{path.name}".encode()).digest())
    # WikiArt has more pictures than the paper used; the rest is left alone.
    if len(ordered) < total:
        raise InputError(
            f"{folder} holds {len(ordered)} pictures of {collection.title}, the paper's split needs {total} "
            f"({collection.train} + {collection.test}); get them all from {collection.source}"
        )
    return ordered[: collection.train], ordered[collection.train : total]


def _listed(collection: PublishedCollection, paths: list[Path], file: Path) -> list[Path]:
    """The pictures named in a list file, each once, sorted by path."""
    names = {line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()}
    found = {path.name: path for path in reversed(paths) if path.name in names}
    absent = sorted(names - set(found))
    if absent:
        raise InputError(
            f"{file} names {len(names)} pictures, {len(absent)} of them are not there (first: {absent[0]}); "
            f"get {collection.title} from {collection.source}"
        )
    return sorted(found.values())


def held_out_pictures(name: str, part: int = 1) -> list[Path]:
    """Pictures to test on: all of a folder, or the test split of `celeba-hq=FOLDER` or `wikiart=FOLDER`."""
    collection, equals, folder = name.partition("=")
    if equals and collection in COLLECTIONS:
        return published_split(collection, Path(folder))[part]
    return picture_paths(Path(name))


def training_pictures(name: str) -> list[Path]:
    """Pictures to train on: all of a folder, or the training split of `celeba-hq=FOLDER` or `wikiart=FOLDER`."""
    return held_out_pictures(name, part=0)


def short_name(name: str) -> str:
    """What tables call a collection: its own name, or the last two folders of the path, on any machine alike."""
    collection, equals, _ = name.partition("=")
    return collection if equals and collection in COLLECTIONS else "/".join(Path(name).resolve().parts[-2:])


def short_names(folders: Sequence[Path]) -> list[str]:
    """What a log calls the folders: their short names, or their paths where short names are not unique."""
    paths = [os.fspath(folder) for folder in folders]
    names = [short_name(path) for path in paths]
    return names if len(set(names)) == len(names) else paths
