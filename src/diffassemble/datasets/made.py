"""Fractures of our own making: of whole solids in files, and of solids out of nothing but chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from diffassemble.cutting.mesh import fracture
from diffassemble.datasets.stream import seeded
from diffassemble.datasets.synthetic import SOLIDS, make_solid
from diffassemble.files.meshes import read_mesh
from diffassemble.puzzle import Mesh

VERSION = 1
"""raise it when solids or breaks come out differently, so that what was kept of them is made anew"""
FORMATS = frozenset({".ply", ".obj", ".stl", ".glb", ".off"})


@dataclass(frozen=True)
class MadeFracture:
    """A solid in a file, or of a class that can be made, broken into so many pieces in the way of its number."""

    source: Path
    number: int
    pieces: int
    z_up: bool = False
    """whether the solid in the file stands along z instead of y"""

    @property
    def fracture(self) -> str:
        return f"made_{VERSION}_{self.number}_{self.pieces}" + "_z" * self.z_up

    @property
    def files(self) -> list[Path]:
        return [] if self.source.name in SOLIDS else [self.source]

    def meshes(self) -> list[Mesh]:
        """The fragments where they belong in the whole."""
        generator = seeded(VERSION, self.number, self.pieces)
        whole = make_solid(self.source.name, generator) if self.source.name in SOLIDS else read_mesh(self.source)
        if self.z_up:
            whole = replace(whole, vertices=whole.vertices[:, [0, 2, 1]] * torch.tensor([1.0, 1.0, -1.0]))
        return fracture(whole, self.pieces, generator, chips=0.2 if self.number % 3 == 0 else 0.0)


def break_files(
    folder: Path,
    breaks: int,
    pieces: tuple[int, int],
    held_out: frozenset[str] = frozenset(),
    z_up: str = "",
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


def break_solids(count: int, breaks: int, pieces: tuple[int, int]) -> list[MadeFracture]:
    """Fractures to make of `count` solids, class after class; each is broken once, for a solid costs little."""
    classes = sorted(SOLIDS)
    return [
        MadeFracture(Path(classes[number % len(classes)]), number, _drawn_pieces(number, pieces))
        for number in range(count * breaks)
    ]


def _drawn_pieces(number: int, pieces: tuple[int, int]) -> int:
    """Few pieces are more common than many."""
    low, high = pieces
    share = float(torch.rand((), generator=seeded(VERSION, number))) ** 1.5
    return low + int(share * (high - low + 1))
