"""Fragments in and out of files, of whatever unit and wherever they lie, and assembled objects as files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, FragmentPieces, InputError, Mesh, Poses, Puzzle
from diffassemble.core.limits import LIMITS
from diffassemble.core.surfaces import is_closed, sample_surface
from diffassemble.fragments.screening import misfit_of
from diffassemble.io.documents import document_bytes, field, motion_fields, piece_names, read_document, truth_records
from diffassemble.io.meshes import (
    MESH_ENDINGS,
    MOST_BYTES,
    check_size,
    mesh_bytes,
    read_precisely,
    scene_bytes,
    textured_files,
)
from diffassemble.rendering.picture import fragment_colours

# What documents call this kind.
DOCUMENT = "fragments"
POINTS = 1000
MOST_FRAGMENTS = LIMITS.fragments
DENSE = 500_000
"""triangles of a mesh from which on fewer would give the same answer sooner"""
SIZE_FROM_SPREAD = 2.53
_FAR = 100
"""lengths of the whole from the origin, within which single precision tells a hundred-thousandth of it"""


def file_matrices(pieces: FragmentPieces, poses: Poses) -> Float64[Tensor, "n 4 4"]:
    """What each file's points must be moved by."""
    rotation, translation = poses.rotation.cpu().double(), poses.translation.cpu().double()
    matrices = torch.eye(4, dtype=torch.double).repeat(len(poses), 1, 1)
    matrices[:, :3, :3] = rotation
    matrices[:, :3, 3] = pieces.unit * translation - _turned(rotation, pieces.origins)
    # Adding zero turns −0 into 0.
    return matrices + 0.0


def read_poses(puzzle: Puzzle, records: list[dict[str, Any]], source: Path) -> Poses:
    """Where the matrices of records, one a fragment in its order, put the fragments."""
    pieces = puzzle.fragments
    moves = motion_fields(records, source)
    rotation = moves[:, :3, :3]
    translation = (moves[:, :3, 3] + _turned(rotation, pieces.origins)) / pieces.unit
    return Poses(rotation.float(), translation.float())


def _turned(rotation: Float64[Tensor, "n 3 3"], vectors: Float[Tensor, "n 3"]) -> Float64[Tensor, "n 3"]:
    return (rotation @ vectors.cpu().double()[..., None])[..., 0]


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
    # Loaded here, since it brings compiled loops with it.
    from diffassemble.fragments.surface import facing_outward

    given = [read_precisely(file) for file in files]
    dense = [file for file, mesh in zip(files, given, strict=True) if len(mesh.faces) > DENSE]
    if dense:
        found = f"{len(dense)} of {len(files)} meshes have over {DENSE:,} triangles (first: {dense[0].name})"
        warnings.warn(f"{folder}: {found}; only points drawn from them are compared", stacklevel=3)
    meshes = [facing_outward(mesh) for mesh in given]
    turned = [file for file, old, new in zip(files, given, meshes, strict=True) if new is not old]
    if turned:
        found = f"{len(turned)} of {len(files)} meshes are inside out (first: {turned[0].name})"
        warnings.warn(f"{folder}: {found}; turned round", stacklevel=3)
    gaping = [file for file, mesh in zip(files, meshes, strict=True) if len(mesh.faces) and not is_closed(mesh.faces)]
    if gaping:
        found = f"{len(gaping)} of {len(files)} meshes are open (first: {gaping[0].name})"
        warnings.warn(f"{folder}: {found}; going on with their surfaces", stacklevel=3)
    pieces = fragment_pieces(meshes, unit)
    if (odd := misfit_of(pieces.points, pieces.meshes)) is not None:
        names = ", ".join(files[piece].name for piece in odd.members)
        warnings.warn(f"{folder}: {names} {'is' if len(odd.members) == 1 else 'are'} {odd.text}", stacklevel=3)
    return pieces


def check_fragment_count(count: int, source: Path) -> None:
    """Refuse numbers of fragments that make no puzzle, or one beyond what can be solved."""
    if count < 2:
        raise InputError(f"{source}: has only {count} fragment; a puzzle needs at least 2")
    if count > MOST_FRAGMENTS:
        raise InputError(f"{source}: has {count} fragments; at most {MOST_FRAGMENTS} are put together at once")


def fragment_pieces(meshes: Sequence[Mesh], unit: float | None = None, points: int = POINTS) -> FragmentPieces:
    """Fragments in frames of their own, out of meshes in the coordinates of files.

    `unit` is the longest side of the whole; if it is not known it is estimated, without fragments that are beyond all
    proportion. Each fragment's points follow from its mesh alone, so neither the other fragments nor their order
    matter.
    """
    chance = torch.Generator()
    drawn = torch.stack(
        [sample_surface(mesh.vertices.double(), mesh.faces, points, chance.manual_seed(0))[0] for mesh in meshes]
    )
    origins = drawn.mean(1)
    centred = drawn - origins[:, None]
    if unit is None:
        odd = misfit_of(centred, meshes)
        beyond = odd.members if odd is not None and odd.unplaced else ()
        unit = estimated_unit(centred[[piece for piece in range(len(meshes)) if piece not in beyond]])
    own = [mesh.placed(((mesh.vertices - origin) / unit).float()) for mesh, origin in zip(meshes, origins, strict=True)]
    return FragmentPieces((centred / unit).float(), tuple(own), origins, unit)


def estimated_unit(centred: Float[Tensor, "n p 3"]) -> float:
    """A guess at the whole's longest side, from points of the fragments around their means.

    Breaking changes the sum of the fragments' mean squared distances from their means but little, since it goes with
    area. The factor is fitted on the 216 shared fractures of Breaking Bad (2 to 8 pieces) whose objects are not held
    out; the typical (root mean square) error is a factor of 1.34 on these and on the 80 everyday ones held out, half
    of which are met to 20 %.
    """
    return SIZE_FROM_SPREAD * float(centred.double().square().sum(-1).mean(1).sum().sqrt())


def folder_contents(puzzle: Puzzle, folder: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that make a puzzle folder; the order of the files is that of the pieces."""
    check_fragment_count(len(puzzle), folder)
    pieces = puzzle.fragments
    width = max(2, len(str(len(puzzle) - 1)))
    # Only GLB has pictures in the same file.
    endings = [ending if mesh.texture is None else ".glb" for mesh in pieces.meshes]
    names = [f"fragment_{index:0{width}d}{own}" for index, own in enumerate(endings)]
    for index, name in enumerate(names):
        yield f"pieces/{name}", mesh_bytes(in_file_coordinates(pieces, index), endings[index])
    yield "puzzle.json", document_bytes({"unit": pieces.unit, "pieces": names}, DOCUMENT)
    if puzzle.truth is not None:
        matrices = file_matrices(pieces, puzzle.truth).tolist()
        records = [{"file": name, "matrix": matrix} for name, matrix in zip(names, matrices, strict=True)]
        yield "truth.json", document_bytes({"pieces": records}, DOCUMENT)


def in_file_coordinates(pieces: FragmentPieces, index: int) -> Mesh:
    """A fragment as its file has it."""
    mesh = pieces.meshes[index]
    return mesh.placed((pieces.origins[index].double() + pieces.unit * mesh.vertices.double()).float())


def read_folder(folder: Path, document: dict[str, Any], board: Board | None) -> Puzzle:
    """The puzzle of a puzzle folder, which has no use for a board; without a 'unit' it is estimated."""
    source = folder / "puzzle.json"
    names = piece_names(document, source)
    unit = field(document, "unit", float, source) if "unit" in document else None
    if unit is not None and not 0 < unit <= LIMITS.document_number:
        raise InputError(f"{source}: 'unit' must be a length above 0 and up to {LIMITS.document_number:.0e}")
    puzzle = Puzzle(load_fragments([folder / "pieces" / name for name in names], unit), None, names)
    truth = folder / "truth.json"
    if not truth.exists():
        return puzzle
    records = truth_records(read_document(truth, (DOCUMENT,)), names, truth)
    return replace(puzzle, truth=read_poses(puzzle, records, truth))


def object_contents(assembly: Answer) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that only objects have, all in the unit of the fragments' files."""
    pieces, names = assembly.puzzle.fragments, plain_names(assembly.puzzle.names)
    levels = (fragment_colours(len(names)) * 255).round().astype(int).tolist()
    colours = [(red, green, blue) for red, green, blue in levels]
    yield "assembled.glb", scene_bytes(*_as_given(pieces, assembly.poses, names, colours))
    yield "matrices.txt", matrix_text(assembly).encode()
    for number, (mesh, name, colour) in enumerate(zip(posed_meshes(assembly), names, colours, strict=True)):
        if mesh.texture is None:
            yield f"posed/{name}.ply", mesh_bytes(mesh, ".ply", colour)
            continue
        for file, content in textured_files(mesh, mesh.texture, name, f"texture_{number:03d}"):
            yield f"posed/{file}", content


def _as_given(
    pieces: FragmentPieces, poses: Poses, names: list[str], colours: list[tuple[int, int, int]]
) -> tuple[list[Mesh], list[str], list[tuple[int, int, int]], np.ndarray]:
    """What a scene shows: meshes as their files have them, and the matrices that put them together.

    Those that lie farther off than single precision can tell well are brought to the origin, and so are their matrices.
    """
    matrices, meshes = file_matrices(pieces, poses), []
    for index, origin in enumerate(pieces.origins.double()):
        mesh, far = in_file_coordinates(pieces, index), float(origin.norm()) > _FAR * pieces.unit
        if far:
            mesh = mesh.placed((pieces.unit * pieces.meshes[index].vertices.double()).float())
            matrices[index, :3, 3] += matrices[index, :3, :3] @ origin
        meshes.append(mesh)
    return meshes, names, colours, matrices.numpy()


def posed_meshes(assembly: Answer) -> list[Mesh]:
    """The fragments where they stand in the whole, whose middle is the origin."""
    pieces, poses = assembly.puzzle.fragments, assembly.poses
    turns, shifts = poses.rotation.cpu(), poses.translation.cpu()
    return [
        mesh.placed(pieces.unit * (mesh.vertices @ turn.T + shift), turn)
        for mesh, turn, shift in zip(pieces.meshes, turns, shifts, strict=True)
    ]


def matrix_text(assembly: Answer) -> str:
    """For every fragment a line with its file's name and a matrix as CloudCompare reads it: 4 rows of 4 numbers."""
    lines = []
    matrices = file_matrices(assembly.puzzle.fragments, assembly.poses).tolist()
    for name, matrix in zip(assembly.puzzle.names, matrices, strict=True):
        lines += [name, *(" ".join(f"{value:.12g}" for value in row) for row in matrix)]
    return "\n".join(lines) + "\n"


def plain_names(names: tuple[str, ...]) -> list[str]:
    """File names without the endings of meshes, unless they are then no longer told apart."""
    files = [Path(name) for name in names]
    stems = [file.stem if file.suffix.lower() in MESH_ENDINGS else file.name for file in files]
    return stems if len(set(stems)) == len(stems) else [file.name for file in files]
