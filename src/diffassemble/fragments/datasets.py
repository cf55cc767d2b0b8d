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
        """Unique in its subset."""
        return f"{self.category}/{self.object}/{self.fracture}"

    @property
    def files(self) -> list[Path]:
        """What it is read from."""
        return [self.source] if self.source.suffix == ".npz" else piece_files(self.source)

    def meshes(self) -> list[Mesh]:
        """The fragments where they belong in the whole, in the files' unit, without doubled inner walls."""
        if self.source.suffix != ".npz":
            exact = [read_precisely(file) for file in self.files]
            return [mesh.placed(mesh.vertices.float()) for mesh in exact]
        try:
            with np.load(self.source, allow_pickle=False) as arrays:
                vertices, faces, *ends = (arrays[f"{self.fracture}/{key}"] for key in ("v", "f", "vo", "fo"))
        except UNREADABLE as error:
            raise InputError(f"{self.source}: has no fracture {self.fracture}, or is broken; get it anew") from error
        places = torch.from_numpy(vertices.astype(np.float32)) / PACKED_SCALE
        numbers = torch.from_numpy(faces.astype(np.int64))
        parts = (places.tensor_split(ends[0][1:-1].tolist()), numbers.tensor_split(ends[1][1:-1].tolist()))
        return [Mesh(*part) for part in zip(*parts, strict=True)]


def find_fractures(
    root: Path | str, split: Split = "all", subset: str = "everyday", pieces: tuple[int, int] = (2, 20)
) -> list[Fracture]:
    """The fractures of a subset with a number of pieces in this range, both ends included, sorted by object and name.

    An object's split counts for it in every subset, so what is held out in one is not trained on from another.
    """
    root = Path(root)
    if not (root / subset).is_dir():
        raise InputError(f"{root}: has no folder {subset!r}; pass the folder of Breaking Bad that holds it")
    everything = list(_every(root / subset))
    wanted = _wanted(root, split, subset, {fracture.object for fracture in everything})
    found = [one for one in everything if one.object in wanted and pieces[0] <= one.pieces <= pieces[1]]
    if not found:
        counts = f"{pieces[0]} to {pieces[1]} pieces"
        raise InputError(f"{root / subset}: has no fractures of {counts} in its split {split!r}")
    return sorted(found, key=lambda one: (one.category, one.object, _natural(one.fracture)))


def piece_files(folder: Path) -> list[Path]:
    """The pieces of one fracture in the order of their numbers."""
    return sorted(folder.glob("piece_*.obj"), key=lambda file: _natural(file.stem))


def _every(subset: Path) -> Iterator[Fracture]:
    """All fractures, packed ones and then those as published; at the top the subset's name is the class."""
    for file in sorted(subset.rglob("*.npz")):
        try:
            with np.load(file, allow_pickle=False) as arrays:
                counts = {key[:-3]: len(arrays[key]) - 1 for key in arrays.files if key.endswith("/vo")}
        except UNREADABLE as error:
            raise InputError(f"{file}: is not a packed object, or broken; get it anew") from error
        for number, count in counts.items():
            yield Fracture(file, file.parent.name, file.stem, number, count)
    for folder in sorted({file.parent for file in subset.rglob("piece_0.obj")}):
        yield Fracture(folder, folder.parents[1].name, folder.parent.name, folder.name, len(piece_files(folder)))


def _wanted(root: Path, split: Split, subset: str, objects: set[str]) -> set[str]:
    """The objects of a split, among those that are there."""

    def listed(file: Path) -> set[str]:
        lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
        return {Path(line).name.removesuffix(".npz") for line in lines if line}

    if split == "all":
        return objects
    packed, one = root / "val_objects.txt", root / "data_split" / f"{subset}.{split}.txt"
    if packed.is_file():
        return objects & listed(packed) if split == "val" else objects - listed(packed)
    if not one.is_file():
        raise InputError(
            f"{root}: has neither {packed.name} nor data_split/{one.name}, which define the split; add one"
        )
    named = listed(one)
    absent = sorted(named - objects)
    if absent:
        raise InputError(f"{one}: {len(absent)} of its {len(named)} objects are not there (first: {absent[0]})")
    return named


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
    """whether the solid in the file is upright along z instead of y"""

    @property
    def files(self) -> list[Path]:
        """What it is read from."""
        return [] if self.source.name in SOLIDS else [self.source]

    @property
    def category(self) -> str:
        """The class of a solid that is made, or else the folder of its file."""
        return self.source.parent.name if self.files else self.source.name

    @property
    def fracture(self) -> str:
        """Its name among those of the solid."""
        return f"made_{VERSION}_{self.number}_{self.pieces}" + "_z" * self.z_up

    @property
    def name(self) -> str:
        """Unique among all that are made."""
        return f"{self.category}/{self.source.stem}/{self.fracture}"

    def meshes(self) -> list[Mesh]:
        """The fragments where they belong in the whole; of eight fractures one is smooth, and one sawn."""
        generator = seeded(_SEED, self.number, self.pieces)
        whole = read_mesh(self.source) if self.files else make_solid(self.source.name, generator)
        if self.z_up:
            whole = replace(whole, vertices=whole.vertices[:, [0, 2, 1]] * torch.tensor([1.0, 1.0, -1.0]))
        chips, roughness = 0.2 if self.number % 3 == 0 else 0.0, {6: 0.35, 7: 0.0}.get(self.number % 8, 1.0)
        return fracture(whole, self.pieces, generator, chips, roughness)


def break_files(
    folder: Path, breaks: int, pieces: tuple[int, int], held_out: frozenset[str] = frozenset(), z_up: str = ""
) -> list[MadeFracture]:
    """Fractures to make of all solids below a folder, but of none whose name holds the name of an object held out.

    Files whose names match the pattern `z_up` hold solids that are upright along z; all others along y.
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
    classes, numbers = sorted(SOLIDS), range(first, first + count * breaks)
    return [MadeFracture(Path(classes[one % len(classes)]), one, _drawn_pieces(one, pieces)) for one in numbers]


def _drawn_pieces(number: int, pieces: tuple[int, int]) -> int:
    """Few pieces are more common than many."""
    share = float(torch.rand((), generator=seeded(_SEED, number))) ** 1.5
    return pieces[0] + int(share * (pieces[1] - pieces[0] + 1))


def holds_fractures(folder: Path) -> bool:
    """Whether a folder is (part of) Breaking Bad, packed or as published; a folder that isn't there holds nothing.

    Known by its list of splits, or by any .npz file or piece of a fracture in the folder or below it.
    """
    if (folder / "val_objects.txt").is_file() or (folder / "data_split").is_dir():
        return True
    names = (name for _, _, names in os.walk(folder) for name in names if not name.startswith("."))
    return any(fnmatchcase(name, "*.npz") or fnmatchcase(name, "piece_*.obj") for name in names)
