"""Fragments in and out of files, of whatever unit and wherever they are, and assembled objects as files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, FragmentPieces, InputError, Mesh, Poses, Puzzle
from diffassemble.core.limits import LIMITS, check_count
from diffassemble.core.surfaces import is_closed, sample_surface
from diffassemble.fragments.screening import misfit_of
from diffassemble.io import documents
from diffassemble.io.documents import Records
from diffassemble.io.meshes import MESH_ENDINGS, check_size, mesh_bytes, read_precisely, scene_bytes, textured_files
from diffassemble.io.reading import files_in
from diffassemble.rendering.picture import fragment_colours

POINTS = 1000
"""points drawn from the surface of each fragment"""


def file_matrices(pieces: FragmentPieces, poses: Poses) -> Float64[Tensor, "n 4 4"]:
    """The matrices from the coordinates of the fragments' files to those of the whole."""
    return documents.matrices_of(poses, pieces.origins, pieces.unit)


def read_poses(puzzle: Puzzle, records: Records, source: Path) -> Poses:
    """The poses in the matrices of records, one a fragment in its order."""
    return documents.poses_of(documents.motion_fields(records, source), puzzle.fragments.origins, puzzle.fragments.unit)


def read_fragments(folder: Path | str) -> Puzzle:
    """All meshes and clouds of a folder, in the order of their names, as a puzzle of estimated size."""
    folder = Path(folder)
    files = files_in(folder, MESH_ENDINGS)
    if not files:
        raise InputError(f"{folder}: has no meshes; give a folder of files ending in {' '.join(sorted(MESH_ENDINGS))}")
    for file, other in zip(files[1:], files, strict=False):
        if file.stem == other.stem:
            raise InputError(f"{folder}: {other.name} and {file.name} look like one fragment in two forms; remove one")
    return Puzzle(load_fragments(files), None, tuple(file.name for file in files))


def load_fragments(files: Sequence[Path], unit: float | None = None, dense: int = 500_000) -> FragmentPieces:
    """Mesh files as fragments of one object, with a warning of those with over `dense` triangles."""
    # Loaded here, since it brings compiled loops with it.
    from diffassemble.fragments.surface import facing_outward

    folder = files[0].parent
    check_count(len(files), LIMITS.fragments, "fragment", folder)
    if sum(check_size(file) for file in files) >= LIMITS.mesh_bytes:
        most = f"{LIMITS.mesh_bytes / 1e9:.0f} GB"
        raise InputError(f"{folder}: the files have over {most} together; simplify the meshes first")
    given = [read_precisely(file) for file in files]
    meshes = [facing_outward(mesh) for mesh in given]
    many = [len(mesh.faces) > dense for mesh in given]
    turned = [new is not old for old, new in zip(given, meshes, strict=True)]
    gaping = [len(mesh.faces) > 0 and not is_closed(mesh.faces) for mesh in meshes]
    for chosen, what, consequence in (
        (many, f"have over {dense:,} triangles", "only points drawn from them are compared"),
        (turned, "are inside out", "turned round"),
        (gaping, "are open", "going on with their surfaces"),
    ):
        if any(chosen):
            found = f"{sum(chosen)} of {len(files)} meshes {what} (first: {files[chosen.index(True)].name})"
            warnings.warn(f"{folder}: {found}; {consequence}", stacklevel=3)
    pieces = fragment_pieces(meshes, unit)
    if (odd := misfit_of(pieces.points, pieces.meshes)) is not None:
        names = ", ".join(files[piece].name for piece in odd.members)
        warnings.warn(f"{folder}: {names} {'is' if len(odd.members) == 1 else 'are'} {odd.text}", stacklevel=3)
    return pieces


def fragment_pieces(meshes: Sequence[Mesh], unit: float | None = None, points: int = POINTS) -> FragmentPieces:
    """Fragments in frames of their own, out of meshes in the coordinates of files; points depend on the mesh alone.

    `unit` is the longest side of the whole; if it is not known it is estimated, without fragments out of proportion.
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


def estimated_unit(centred: Float[Tensor, "n p 3"], factor: float = 2.53) -> float:
    """An estimate of the whole's longest side, from points of the fragments around their means.

    Breaking hardly changes the sum of the fragments' mean squared distances from their means, since it goes with area.
    The factor is fitted on the 216 shared fractures of Breaking Bad (2 to 8 pieces) whose objects are not held out;
    the root mean square error is a factor of 1.34 on these and on the 80 everyday ones held out.
    """
    return factor * float(centred.double().square().sum(-1).mean(1).sum().sqrt())


def folder_contents(puzzle: Puzzle, folder: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files of a puzzle folder; the order of the files is that of the pieces."""
    check_count(len(puzzle), LIMITS.fragments, "fragment", folder)
    pieces, truth = puzzle.fragments, puzzle.truth
    width = max(2, len(str(len(puzzle) - 1)))
    # Only GLB has pictures in the same file.
    endings = [ending if mesh.texture is None else ".glb" for mesh in pieces.meshes]
    names = [f"fragment_{index:0{width}d}{own}" for index, own in enumerate(endings)]
    for index, name in enumerate(names):
        yield f"pieces/{name}", mesh_bytes(in_file_coordinates(pieces, index), endings[index])
    known = None if truth is None else [{"matrix": matrix} for matrix in file_matrices(pieces, truth).tolist()]
    yield from documents.puzzle_documents(puzzle.kind, names, {"unit": pieces.unit}, known)


def in_file_coordinates(pieces: FragmentPieces, index: int) -> Mesh:
    """A fragment as its file has it."""
    mesh = pieces.meshes[index]
    return mesh.placed((pieces.origins[index].double() + pieces.unit * mesh.vertices.double()).float())


def read_folder(folder: Path, document: dict[str, Any], board: Board | None) -> Puzzle:
    """The puzzle of a puzzle folder, which has no use for a board; without a 'unit' it is estimated."""
    source = folder / "puzzle.json"
    names = documents.piece_names(document, source)
    unit = documents.field(document, "unit", float, source) if "unit" in document else None
    if unit is not None and not 0 < unit <= LIMITS.document_number:
        raise InputError(f"{source}: 'unit' must be a length above 0 and up to {LIMITS.document_number:.0e}")
    puzzle = Puzzle(load_fragments([folder / "pieces" / name for name in names], unit), None, names)
    return documents.with_truth(puzzle, folder, document, read_poses)


def object_contents(assembly: Answer, far: float = 100.0) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files that only objects have, in the unit of the fragments' files.

    Meshes farther than `far` lengths of the whole from the origin are brought there, with their matrices in the scene.
    """
    pieces, names = assembly.puzzle.fragments, plain_names(assembly.puzzle.names)
    levels = (fragment_colours(len(names)) * 255).round().astype(int).tolist()
    colours = [(red, green, blue) for red, green, blue in levels]
    matrices, meshes = file_matrices(pieces, assembly.poses), []
    for index, origin in enumerate(pieces.origins.double()):
        mesh = in_file_coordinates(pieces, index)
        if float(origin.norm()) > far * pieces.unit:
            mesh = mesh.placed((pieces.unit * pieces.meshes[index].vertices.double()).float())
            matrices[index, :3, 3] += matrices[index, :3, :3] @ origin
        meshes.append(mesh)
    yield "assembled.glb", scene_bytes(meshes, names, colours, matrices.numpy())
    yield "matrices.txt", matrix_text(assembly).encode()
    for number, (mesh, name, colour) in enumerate(zip(posed_meshes(assembly), names, colours, strict=True)):
        if mesh.texture is None:
            yield f"posed/{name}.ply", mesh_bytes(mesh, ".ply", colour)
            continue
        for file, content in textured_files(mesh, mesh.texture, name, f"texture_{number:03d}"):
            yield f"posed/{file}", content


def posed_meshes(assembly: Answer) -> list[Mesh]:
    """The fragments at their places in the whole, whose middle is the origin."""
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
    """File names without the endings of meshes, unless some are then equal."""
    files = [Path(name) for name in names]
    stems = [file.stem if file.suffix.lower() in MESH_ENDINGS else file.name for file in files]
    return stems if len(set(stems)) == len(stems) else [file.name for file in files]
