"""Fragments of an object: read from any folder of meshes or clouds, of whatever unit and wherever they lie."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.files.meshes import MESH_ENDINGS, MOST_BYTES, check_size, read_precisely
from diffassemble.geometry.cleaning import is_closed
from diffassemble.geometry.surfaces import sample_surface
from diffassemble.puzzle import FragmentPieces, InputError, Mesh, Puzzle

POINTS = 1000
MOST_FRAGMENTS = 500
SIZE_FROM_SPREAD = 2.53


def read_fragments(folder: Path | str) -> Puzzle:
    """All meshes and clouds of a folder, in the order of their names, as a puzzle; other files are passed over.

    How large the whole is, nobody has told: see `estimated_unit`.
    """
    folder = Path(folder)
    files = fragment_files(folder)
    if not files:
        raise InputError(f"{folder}: has no meshes; give a folder of files ending in {' '.join(sorted(MESH_ENDINGS))}")
    for file, other in zip(files[1:], files, strict=False):
        if file.stem == other.stem:
            raise InputError(f"{folder}: {other.name} and {file.name} look like one fragment in two forms; remove one")
    return Puzzle(load_fragments(files), None, tuple(file.name for file in files))


def fragment_files(folder: Path) -> list[Path]:
    """The files of a folder that are meshes or clouds by their names; hidden ones are passed over."""
    try:
        return sorted(
            file
            for file in folder.iterdir()
            if file.suffix.lower() in MESH_ENDINGS and not file.name.startswith(".") and file.is_file()
        )
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error


def load_fragments(files: Sequence[Path], unit: float | None = None) -> FragmentPieces:
    """Mesh files as fragments of one object; their number and sizes are checked before any is read."""
    folder = files[0].parent
    check_fragment_count(len(files), folder)
    if sum(check_size(file) for file in files) >= MOST_BYTES:
        raise InputError(f"{folder}: the files have over {MOST_BYTES / 1e9:.0f} GB together; simplify the meshes first")
    meshes = [read_precisely(file) for file in files]
    gaping = [file for file, mesh in zip(files, meshes, strict=True) if len(mesh.faces) and not is_closed(mesh.faces)]
    if gaping:
        found = f"{len(gaping)} of {len(files)} meshes are open (first: {gaping[0].name})"
        warnings.warn(f"{folder}: {found}; going on with their surfaces", stacklevel=3)
    return fragment_pieces(meshes, unit)


def check_fragment_count(count: int, source: Path) -> None:
    """Refuse numbers of fragments that make no puzzle, or one beyond what can be solved."""
    if count < 2:
        raise InputError(f"{source}: has only {count} fragment; a puzzle needs at least 2")
    if count > MOST_FRAGMENTS:
        raise InputError(f"{source}: has {count} fragments; at most {MOST_FRAGMENTS} are put together at once")


def fragment_pieces(meshes: Sequence[Mesh], unit: float | None = None, points: int = POINTS) -> FragmentPieces:
    """Fragments in frames of their own, out of meshes in the coordinates of files.

    `unit` is the longest side of the whole; if it is not known it is estimated. Each fragment's points follow from its
    mesh alone, so neither the other fragments nor their order matter.
    """
    drawn = torch.stack([_points(mesh, points) for mesh in meshes])
    origins = drawn.mean(1)
    centred = drawn - origins[:, None]
    unit = estimated_unit(centred) if unit is None else unit
    own = [
        Mesh(((mesh.vertices - origin) / unit).float(), mesh.faces)
        for mesh, origin in zip(meshes, origins, strict=True)
    ]
    return FragmentPieces((centred / unit).float(), tuple(own), origins, unit)


def estimated_unit(centred: Float[Tensor, "n p 3"]) -> float:
    """A guess at the whole's longest side, from points of the fragments around their means.

    Breaking changes the sum of the fragments' mean squared distances from their means but little, since it goes with
    area. The factor is fitted on the 216 shared fractures of Breaking Bad (2 to 8 pieces) whose objects are not held
    out; the typical (root mean square) error is a factor of 1.34 on these and on the 80 everyday ones held out, half
    of which are met to 20 %.
    """
    return SIZE_FROM_SPREAD * float(centred.double().square().sum(-1).mean(1).sum().sqrt())


def _points(mesh: Mesh, count: int) -> Float[Tensor, "p 3"]:
    return sample_surface(mesh.vertices.double(), mesh.faces, count, torch.Generator().manual_seed(0))[0]
