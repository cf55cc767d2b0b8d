"""Fractures to learn from and to measure on: Breaking Bad's (Sellán et al. 2022), and those made here."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from diffassemble.core import InputError, Mesh
from diffassemble.core.seeds import seeded
from diffassemble.fragments.breaking import fracture
from diffassemble.fragments.shapes import SOLIDS, make_solid
from diffassemble.io.meshes import read_mesh, read_precisely

PACKED_SCALE = 65_000
Split = Literal["train", "val", "all"]
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)
"""what NumPy raises on archives that are broken or cut short"""
VERSION = 4
"""raise it when solids or breaks come out differently, so that what was kept of them is made anew"""
_SEED = 2
# Of eight fractures made here one is smooth, and one sawn.
_ROUGHNESS = {6: 0.35, 7: 0.0}
HELD_OUT = 1_000_000
"""number of the first made fracture that is never learnt from"""
FORMATS = frozenset({".ply", ".obj", ".stl", ".glb", ".off"})


@dataclass(frozen=True)
class Fracture:
    """One object broken once; `source` is the folder of its pieces, or the packed file of all fractures of it."""

    source: Path
    category: str
    object: str
    fracture: str
    pieces: int

    @property
    def name(self) -> str:
        """What tells it from all others of its subset."""
        return f"{self.category}/{self.object}/{self.fracture}"

    @property
    def files(self) -> list[Path]:
        """What it is read from."""
        return [self.source] if self.source.suffix == ".npz" else piece_files(self.source)

    def meshes(self) -> list[Mesh]:
        """The fragments where they belong in the whole, in the files' unit, without doubled inner walls."""
        if self.source.suffix == ".npz":
            return _unpacked(self.source, self.fracture)
        exact = [read_precisely(file) for file in self.files]
        return [mesh.placed(mesh.vertices.float()) for mesh in exact]


def find_fractures(
    root: Path | str, split: Split = "all", subset: str = "everyday", pieces: tuple[int, int] = (2, 20)
) -> list[Fracture]:
    """The fractures of a subset with a number of pieces in this range, both ends included, sorted by object and name.

    An object's split counts for it in every subset, so what is held out in one is not trained on from another.
    """
    root = Path(root)
    if not (root / subset).is_dir():
        raise InputError(f"{root}: has no folder {subset!r}; pass the folder of Breaking Bad that holds it")
    everything = list(_every(root, subset))
    wanted = _wanted(root, split, subset, {fracture.object for fracture in everything})
    found = [one for one in everything if one.object in wanted and pieces[0] <= one.pieces <= pieces[1]]
    if not found:
        wanted_pieces = f"{pieces[0]} to {pieces[1]} pieces"
        raise InputError(f"{root / subset}: has no fractures of {wanted_pieces} in its split {split!r}")
    return sorted(found, key=lambda one: (one.category, one.object, _natural(one.fracture)))


def piece_files(folder: Path) -> list[Path]:
    """The pieces of one fracture in the order of their numbers."""
    return sorted(folder.glob("piece_*.obj"), key=lambda file: _natural(file.stem))


def _every(root: Path, subset: str) -> Iterator[Fracture]:
    """All fractures, packed ones and then those as published."""
    for file in sorted((root / subset).rglob("*.npz")):
        try:
            with np.load(file, allow_pickle=False) as arrays:
                counts = {key[:-3]: len(arrays[key]) - 1 for key in arrays.files if key.endswith("/vo")}
        except UNREADABLE as error:
            raise InputError(f"{file}: is not a packed object, or broken; get it anew") from error
        for number, count in counts.items():
            yield Fracture(file, _category(file.parent, root / subset), file.stem, number, count)
    for folder in sorted({file.parent for file in (root / subset).rglob("piece_0.obj")}):
        category, count = _category(folder.parents[1], root / subset), len(piece_files(folder))
        yield Fracture(folder, category, folder.parent.name, folder.name, count)


def _category(folder: Path, subset: Path) -> str:
    """The class of objects in a folder: its name, or, at the top, the subset's."""
    return subset.name if folder == subset else folder.name


def _wanted(root: Path, split: Split, subset: str, objects: set[str]) -> set[str]:
    """The objects of a split, among those that are there."""
    if split == "all":
        return objects
    packed, listed = root / "val_objects.txt", root / "data_split" / f"{subset}.{split}.txt"
    if packed.is_file():
        held_out = _listed(packed)
        return objects & held_out if split == "val" else objects - held_out
    if not listed.is_file():
        lists = f"{packed.name} nor data_split/{listed.name}"
        raise InputError(f"{root}: has neither {lists}, which tell the split; add one")
    named = _listed(listed)
    absent = sorted(named - objects)
    if absent:
        raise InputError(f"{listed}: {len(absent)} of its {len(named)} objects are not there (first: {absent[0]})")
    return named


def _listed(file: Path) -> set[str]:
    """The objects of a list with one path a line."""
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return {Path(line).name.removesuffix(".npz") for line in lines if line}


def _unpacked(file: Path, fracture: str) -> list[Mesh]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            vertices, faces, corners, triangles = (arrays[f"{fracture}/{key}"] for key in ("v", "f", "vo", "fo"))
    except UNREADABLE as error:
        raise InputError(f"{file}: has no fracture {fracture}, or is broken; get it anew") from error
    places = torch.from_numpy(vertices.astype(np.float32)) / PACKED_SCALE
    numbers = torch.from_numpy(faces.astype(np.int64))
    return [
        Mesh(places[corners[i] : corners[i + 1]], numbers[triangles[i] : triangles[i + 1]])
        for i in range(len(corners) - 1)
    ]


def _natural(name: str) -> list[str | int]:
    """A key that sorts numbers by their value: 2 before 10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


@dataclass(frozen=True)
class MadeFracture:
    """A solid in a file, or of a class that can be made, broken into so many pieces in the way of its number."""

    source: Path
    number: int
    pieces: int
    z_up: bool = False
    """whether the solid in the file stands along z instead of y"""

    @property
    def category(self) -> str:
        """The class of a solid that is made, or else the folder of its file."""
        return self.source.name if self.source.name in SOLIDS else self.source.parent.name

    @property
    def name(self) -> str:
        return f"{self.category}/{self.source.stem}/{self.fracture}"

    @property
    def fracture(self) -> str:
        return f"made_{VERSION}_{self.number}_{self.pieces}" + "_z" * self.z_up

    @property
    def files(self) -> list[Path]:
        return [] if self.source.name in SOLIDS else [self.source]

    def meshes(self) -> list[Mesh]:
        """The fragments where they belong in the whole."""
        generator = seeded(_SEED, self.number, self.pieces)
        whole = make_solid(self.source.name, generator) if self.source.name in SOLIDS else read_mesh(self.source)
        if self.z_up:
            whole = replace(whole, vertices=whole.vertices[:, [0, 2, 1]] * torch.tensor([1.0, 1.0, -1.0]))
        chips, roughness = 0.2 if self.number % 3 == 0 else 0.0, _ROUGHNESS.get(self.number % 8, 1.0)
        return fracture(whole, self.pieces, generator, chips, roughness)


def break_files(
    folder: Path, breaks: int, pieces: tuple[int, int], held_out: frozenset[str] = frozenset(), z_up: str = ""
) -> list[MadeFracture]:
    """Fractures to make of all solids below a folder, but of none whose name holds the name of an object held out.

    Files whose names match the pattern `z_up` hold solids that stand along z; all others stand along y.
    """
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in FORMATS)
    allowed = [file for file in files if not any(name in file.stem for name in held_out)]
    return [
        MadeFracture(file, number, _drawn_pieces(number, pieces), fnmatchcase(file.stem, z_up))
        for place, file in enumerate(allowed)
        for number in range(breaks * place, breaks * (place + 1))
    ]


def break_solids(count: int, breaks: int, pieces: tuple[int, int], first: int = 0) -> list[MadeFracture]:
    """Fractures to make of `count` solids, class after class; each is broken once, for a solid costs little.

    From the number HELD_OUT on they are others than those to learn from.
    """
    classes = sorted(SOLIDS)
    return [
        MadeFracture(Path(classes[number % len(classes)]), number, _drawn_pieces(number, pieces))
        for number in range(first, first + count * breaks)
    ]


def _drawn_pieces(number: int, pieces: tuple[int, int]) -> int:
    """Few pieces are more common than many."""
    low, high = pieces
    share = float(torch.rand((), generator=seeded(_SEED, number))) ** 1.5
    return low + int(share * (high - low + 1))


def holds_fractures(folder: Path) -> bool:
    """Whether a folder is (part of) Breaking Bad, packed or as published; a folder that isn't there holds nothing.

    Known by its list of splits, or by any .npz file or piece of a fracture in the folder or below it.
    """
    if (folder / "val_objects.txt").is_file() or (folder / "data_split").is_dir():
        return True
    names = (name for _, _, names in os.walk(folder) for name in names if not name.startswith("."))
    return any(fnmatchcase(name, "*.npz") or fnmatchcase(name, "piece_*.obj") for name in names)
