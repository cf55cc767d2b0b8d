"""Pieces of any outline in files: cut-outs, pictures with masks, puzzle folders, and records of assemblies.

A place in pixels of assembled.png is a matrix, and the centre of the piece's area and its clockwise turn in degrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64, UInt8
from PIL import Image
from torch import Tensor

from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import Board, InputError, OutlinePieces, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.core.limits import LIMITS, check_count
from diffassemble.io import documents
from diffassemble.io.detect import Input
from diffassemble.io.documents import Records
from diffassemble.io.pictures import MOST_PIXELS, has_alpha, picture_size, png_bytes, read_cutout


def read(found: Input, options: OpenOptions) -> Puzzle:
    """The puzzle in cut-outs, pictures with masks, or photographs."""
    files, beside = found.files, found.beside
    if found.form == "photographs":
        from diffassemble.io.photo.outlines import read_photos

        puzzle, shown = read_photos(files, beside or None, options.sheet, options.say)
        options.show(shown)
        if isinstance(puzzle, InputError):
            raise puzzle
        also = f", coloured by {beside[0].parent}" if beside else "" if puzzle.outlines.coloured else ", silhouettes"
        number = f"{len(files)} photo" + ("s" if len(files) > 1 else "")
        options.say(f"taken for outlines: {len(puzzle)} pieces in {number}{also}")
        return puzzle
    masked = found.form == "pictures with masks"
    options.say(f"taken for outlines: {len(files)} {'pictures with masks' if masked else 'cut-outs with alpha'}")
    _check_pixels(files)
    textures = list(map(_masked, files, beside)) if masked else list(map(_cut_out, files))
    check_count(len(files), LIMITS.outlines, "piece", files[0].parent)
    return Puzzle(_traced(textures, files, True), None, tuple(file.name for file in files))


def _cut_out(file: Path) -> UInt8[Tensor, "4 _ _"]:
    """A picture that is see-through around a piece."""
    if not has_alpha(file):
        raise InputError(f"{file}: has no alpha, though others have; cut its piece out, or remove it")
    return read_cutout(file)


def _masked(picture: Path, mask: Path) -> UInt8[Tensor, "4 _ _"]:
    """A picture of a piece under a mask of the same size, which is opaque, or else light, where the piece is."""
    texture, levels = read_cutout(picture), read_cutout(mask)
    if texture.shape != levels.shape:
        sizes = " and ".join(f"{width}x{height}" for _, height, width in (levels.shape, texture.shape))
        raise InputError(f"{mask}: mask and picture have {sizes} pixels; they must be of equal size")
    inside = levels[3] if bool((levels[3] < 255).any()) else levels[:3].float().mean(0).round().to(torch.uint8)
    return torch.cat([texture[:3], inside[None]])


def _traced(textures: Sequence[UInt8[Tensor, "4 _ _"]], files: Sequence[Path], coloured: bool) -> OutlinePieces:
    """Cut-outs with their outlines; those without one are refused by name."""
    for file, texture in zip(files, textures, strict=True):
        if not bool((texture[3] > 127).any()):
            raise InputError(f"{file}: is nowhere opaque, so it shows no piece; remove it")
    return outline_pieces(textures, coloured)


def _check_pixels(files: Sequence[Path]) -> None:
    """Refuse more pixels than fit into memory, before any is decoded."""
    pixels = sum(math.prod(picture_size(file)) for file in files)
    if pixels > 8 * MOST_PIXELS:
        raise InputError(f"{files[0].parent}: {pixels / 1e6:.0f} megapixels of pieces; make the pictures smaller")


def folder_contents(puzzle: Puzzle, folder: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files of a puzzle folder; pieces are PNG with alpha."""
    check_count(len(puzzle), LIMITS.outlines, "piece", folder)
    pieces, truth = puzzle.outlines, puzzle.truth
    names = [f"piece_{index:03d}.png" for index in range(len(puzzle))]
    for name, texture in zip(names, pieces.textures, strict=True):
        yield f"pieces/{name}", png_bytes(Image.fromarray(texture.movedim(0, -1).contiguous().numpy()))
    known = None
    if truth is not None:
        rows = zip(file_matrices(pieces, truth).tolist(), places(pieces, truth), strict=True)
        known = [{"matrix": matrix, **place} for matrix, place in rows]
    yield from documents.puzzle_documents(puzzle.kind, names, {"coloured": pieces.coloured}, known)


def read_folder(folder: Path, document: dict[str, Any], board: Board | None) -> Puzzle:
    """The puzzle of a puzzle folder, which has no use for a board."""
    source = folder / "puzzle.json"
    names = documents.piece_names(document, source)
    check_count(len(names), LIMITS.outlines, "piece", source)
    files = [folder / "pieces" / name for name in names]
    _check_pixels(files)
    coloured = documents.field(document, "coloured", bool, source) if "coloured" in document else True
    puzzle = Puzzle(_traced([read_cutout(file) for file in files], files, coloured), None, names)
    return documents.with_truth(puzzle, folder, document, read_poses)


def file_matrices(pieces: OutlinePieces, poses: Poses) -> Float64[Tensor, "n 4 4"]:
    """The matrices from pixel coordinates of the pieces' files to those of assembled.png; z stays."""
    return documents.matrices_of(poses, pieces.origins, corner=pieces.corner(poses))


def places(pieces: OutlinePieces, poses: Poses) -> list[dict[str, Any]]:
    """The centre of each piece's area in assembled.png and the degrees of its turn, for a document."""
    rotation = poses.rotation.cpu().double()
    degrees = torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0]).rad2deg().tolist()
    centres = poses.translation.cpu().double() - torch.tensor(pieces.corner(poses), dtype=torch.double)
    return [
        {"x": round(x, 3), "y": round(y, 3), "degrees": round(angle, 3) + 0.0}
        for (x, y), angle in zip(centres.tolist(), degrees, strict=True)
    ]


def read_poses(puzzle: Puzzle, records: Records, source: Path, rounding: float = 0.01) -> Poses:
    """The poses in records by 'matrix' or by x, y and degrees, which may differ by `rounding` in pixels and degrees."""
    origins = puzzle.outlines.origins
    rows = zip(records, origins.tolist(), strict=True)
    moves = documents.motion_fields([_with_matrix(record, origin, source) for record, origin in rows], source)
    if (moves[:, 2] != torch.tensor([0, 0, 1.0, 0])).any():
        raise InputError(f"{source}: a 'matrix' moves its piece out of the plane")
    for record, move, (across, down) in zip(records, moves.tolist(), origins.tolist(), strict=True):
        # x, y and degrees must agree with the matrix beside them.
        x, y = (row[3] + row[0] * across + row[1] * down for row in move[:2])
        degrees = math.degrees(math.atan2(move[1][0], move[0][0]))
        for key, value in (("x", x), ("y", y), ("degrees", degrees)):
            stated = documents.field(record, key, float, source) if key in record else value
            apart = abs(stated - value) if key != "degrees" else abs((stated - value + 180) % 360 - 180)
            if not apart <= rounding:
                raise InputError(
                    f"{source}: {key} of {record.get('file', 'a piece')} does not agree with its matrix; "
                    "change both, or remove the matrix"
                )
    return documents.poses_of(moves, origins)


def _with_matrix(record: dict[str, Any], origin: Sequence[float], source: Path) -> dict[str, Any]:
    """A record with its matrix; of one that people wrote, that of its x, y and degrees."""
    if "matrix" in record:
        return record
    x, y, degrees = (documents.field(record, key, float, source) for key in ("x", "y", "degrees"))
    if not all(map(math.isfinite, (x, y, degrees))):
        raise InputError(f"{source}: x, y and degrees must be finite numbers")
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    across, down = origin
    shift = x - cosine * across + sine * down, y - sine * across - cosine * down
    plane = [[cosine, -sine, 0.0, shift[0]], [sine, cosine, 0.0, shift[1]]]
    return {**record, "matrix": [*plane, [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]}
