"""Pieces of any outline in files: cut-outs, pictures with masks, puzzle folders, and what an assembly tells of them.

A place is told in pixels of assembled.png, whose top left corner is where the whole begins: by a 4×4 matrix that moves
pixel coordinates of the piece's file there, and, for people, by the centre of the piece's area (x, y) and by how many
degrees the piece was turned clockwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64, UInt8
from PIL import Image
from torch import Tensor

from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import Board, InputError, OutlinePieces, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.core.limits import LIMITS
from diffassemble.io.detect import Input
from diffassemble.io.documents import (
    document_bytes,
    field,
    motion_fields,
    piece_names,
    read_document,
    truth_records,
)
from diffassemble.io.pictures import MOST_PIXELS, has_alpha, picture_size, png_bytes, read_cutout

# What documents call this kind.
DOCUMENT = "outlines"
MOST_PIECES = LIMITS.outlines
# Pixels and degrees by which x, y and degrees may differ from the matrix beside them.
_ROUNDED = 0.01


def read(found: Input, options: OpenOptions) -> Puzzle:
    """The puzzle in cut-outs, pictures with masks, or photographs."""
    if found.form == "pictures with masks":
        options.say(f"taken for outlines: {len(found.files)} pictures with masks")
        return read_masked(found.files, found.beside)
    if found.form == "cut-outs":
        options.say(f"taken for outlines: {len(found.files)} cut-outs with alpha")
        return read_cutouts(found.files)
    from diffassemble.io.photo.outlines import read_photos

    photos, colours = found.files, found.beside
    puzzle, shown = read_photos(photos, colours or None, options.sheet, options.say)
    options.show(shown)
    if isinstance(puzzle, InputError):
        raise puzzle
    also = f", coloured by {colours[0].parent}" if colours else "" if puzzle.outlines.coloured else ", silhouettes"
    number = f"{len(photos)} photo" + ("s" if len(photos) > 1 else "")
    options.say(f"taken for outlines: {len(puzzle)} pieces in {number}{also}")
    return puzzle


def read_cutouts(files: Sequence[Path]) -> Puzzle:
    """Pictures that are see-through around a piece each."""
    check_pixels(files)
    for file in files:
        if not has_alpha(file):
            raise InputError(f"{file}: has no alpha, though others have; cut its piece out, or remove it")
    return puzzle_of([read_cutout(file) for file in files], files)


def read_masked(pictures: Sequence[Path], masks: Sequence[Path]) -> Puzzle:
    """Pictures of a piece each, and masks of the same sizes that are white where the piece is."""
    check_pixels(pictures)
    textures = []
    for picture, mask in zip(pictures, masks, strict=True):
        texture, levels = read_cutout(picture), read_cutout(mask)
        if texture.shape != levels.shape:
            sizes = " and ".join(f"{width}x{height}" for _, height, width in (levels.shape, texture.shape))
            raise InputError(f"{mask}: mask and picture have {sizes} pixels; they must be of equal size")
        # A mask tells by its alpha, if it has any, and else by how light it is.
        inside = levels[3] if bool((levels[3] < 255).any()) else levels[:3].float().mean(0).round().to(torch.uint8)
        textures.append(torch.cat([texture[:3], inside[None]]))
    return puzzle_of(textures, pictures)


def puzzle_of(textures: Sequence[UInt8[Tensor, "4 _ _"]], files: Sequence[Path], coloured: bool = True) -> Puzzle:
    """Cut-outs that came from these files as a puzzle."""
    check_piece_count(len(files), files[0].parent)
    return Puzzle(traced(textures, files, coloured), None, tuple(file.name for file in files))


def traced(textures: Sequence[UInt8[Tensor, "4 _ _"]], files: Sequence[Path], coloured: bool) -> OutlinePieces:
    """Cut-outs with their outlines; those without one are refused by name."""
    for file, texture in zip(files, textures, strict=True):
        if not bool((texture[3] > 127).any()):
            raise InputError(f"{file}: is nowhere opaque, so it shows no piece; remove it")
    return outline_pieces(textures, coloured)


def check_pixels(files: Sequence[Path]) -> None:
    """Refuse more pixels than fit into memory, before any is decoded."""
    pixels = sum(math.prod(picture_size(file)) for file in files)
    if pixels > 8 * MOST_PIXELS:
        raise InputError(f"{files[0].parent}: {pixels / 1e6:.0f} megapixels of pieces; make the pictures smaller")


def check_piece_count(count: int, source: Path) -> None:
    """Refuse numbers of pieces that make no puzzle, or one beyond what can be solved."""
    if count < 2:
        raise InputError(f"{source}: has only {count} piece; a puzzle needs at least 2")
    if count > MOST_PIECES:
        raise InputError(f"{source}: has {count} pieces; at most {MOST_PIECES} are put together at once")


def folder_contents(puzzle: Puzzle, folder: Path, ending: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that make a puzzle folder; pieces are PNG with alpha."""
    check_piece_count(len(puzzle), folder)
    pieces = puzzle.outlines
    names = [f"piece_{index:03d}.png" for index in range(len(puzzle))]
    for name, texture in zip(names, pieces.textures, strict=True):
        yield f"pieces/{name}", png_bytes(Image.fromarray(texture.movedim(0, -1).contiguous().numpy()))
    yield "puzzle.json", document_bytes({"coloured": pieces.coloured, "pieces": names}, DOCUMENT)
    if puzzle.truth is not None:
        moves, told = file_matrices(pieces, puzzle.truth).tolist(), places(pieces, puzzle.truth)
        rows = zip(names, moves, told, strict=True)
        records = [{"file": name, "matrix": matrix, **place} for name, matrix, place in rows]
        yield "truth.json", document_bytes({"pieces": records}, DOCUMENT)


def read_folder(folder: Path, document: dict[str, Any], board: Board | None) -> Puzzle:
    """The puzzle of a puzzle folder, which has no use for a board."""
    source = folder / "puzzle.json"
    names = piece_names(document, source)
    check_piece_count(len(names), source)
    files = [folder / "pieces" / name for name in names]
    check_pixels(files)
    coloured = field(document, "coloured", bool, source) if "coloured" in document else True
    puzzle = Puzzle(traced([read_cutout(file) for file in files], files, coloured), None, names)
    truth = folder / "truth.json"
    if not truth.exists():
        return puzzle
    records = truth_records(read_document(truth, (DOCUMENT,)), names, truth)
    return replace(puzzle, truth=read_poses(puzzle, records, truth))


def file_matrices(pieces: OutlinePieces, poses: Poses) -> Float64[Tensor, "n 4 4"]:
    """What pixel coordinates of each piece's file must be moved by to become those of assembled.png; z stays."""
    rotation = poses.rotation.cpu().double()
    moves = torch.eye(4, dtype=torch.double).repeat(len(poses), 1, 1)
    moves[:, :2, :2] = rotation
    moves[:, :2, 3] = _centres(pieces, poses) - _turned(rotation, pieces.origins)
    # Adding zero turns −0 into 0.
    return moves + 0.0


def places(pieces: OutlinePieces, poses: Poses) -> list[dict[str, Any]]:
    """Where the centre of each piece's area lies in assembled.png, and how far the piece is turned, for a document."""
    rotation = poses.rotation.cpu().double()
    degrees = torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0]).rad2deg().tolist()
    centres = _centres(pieces, poses).tolist()
    return [
        {"x": round(x, 3), "y": round(y, 3), "degrees": round(angle, 3) + 0.0}
        for (x, y), angle in zip(centres, degrees, strict=True)
    ]


def read_poses(puzzle: Puzzle, records: list[dict[str, Any]], source: Path) -> Poses:
    """Where records, one a piece in its order, put the pieces: by 'matrix', or without it by x, y and degrees."""
    moves = motion_fields(
        [
            record if "matrix" in record else _with_matrix(puzzle.outlines, index, record, source)
            for index, record in enumerate(records)
        ],
        source,
    )
    if (moves[:, 2] != torch.tensor([0, 0, 1.0, 0])).any():
        raise InputError(f"{source}: a 'matrix' moves its piece out of the plane")
    rotation = moves[:, :2, :2]
    centres = moves[:, :2, 3] + _turned(rotation, puzzle.outlines.origins)
    for record, move, centre in zip(records, rotation.tolist(), centres.tolist(), strict=True):
        _check_agreement(record, math.degrees(math.atan2(move[1][0], move[0][0])), centre, source)
    return Poses(rotation.float(), centres.float())


def _with_matrix(pieces: OutlinePieces, index: int, record: dict[str, Any], source: Path) -> dict[str, Any]:
    """A record that people wrote, with the matrix that it stands for."""
    x, y, degrees = (field(record, key, float, source) for key in ("x", "y", "degrees"))
    if not all(map(math.isfinite, (x, y, degrees))):
        raise InputError(f"{source}: x, y and degrees must be finite numbers")
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    across, down = pieces.origins[index].tolist()
    shift = x - cosine * across + sine * down, y - sine * across - cosine * down
    plane = [[cosine, -sine, 0.0, shift[0]], [sine, cosine, 0.0, shift[1]]]
    return {**record, "matrix": [*plane, [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]}


def _check_agreement(record: dict[str, Any], degrees: float, centre: Sequence[float], source: Path) -> None:
    """Refuse a record whose x, y and degrees say something else than its matrix."""
    for key, value in zip(("x", "y", "degrees"), (*centre, degrees), strict=True):
        told = field(record, key, float, source) if key in record else value
        apart = abs(told - value) if key != "degrees" else abs((told - value + 180) % 360 - 180)
        if not apart <= _ROUNDED:
            raise InputError(
                f"{source}: {key} of {record.get('file', 'a piece')} does not agree with its matrix; "
                "change both, or remove the matrix"
            )


def _centres(pieces: OutlinePieces, poses: Poses) -> Float64[Tensor, "n 2"]:
    return poses.translation.cpu().double() - torch.tensor(pieces.corner(poses), dtype=torch.double)


def _turned(rotation: Float64[Tensor, "n 2 2"], vectors: Tensor) -> Float64[Tensor, "n 2"]:
    return (rotation @ vectors.cpu().double()[..., None])[..., 0]
