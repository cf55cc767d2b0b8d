"""Uploads become puzzles, answers become downloads; every file goes into the session's own folder first."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import viser
from viser import UploadedFile, _messages

from diffassemble.core import Assembly, Board, InputError, Puzzle
from diffassemble.core.kind import OpenOptions
from diffassemble.files.archives import MOST_FILES, is_zip, pack, unpack
from diffassemble.files.assemblies import assembly_bytes, write_assembly
from diffassemble.files.meshes import MESH_ENDINGS, read_mesh
from diffassemble.files.pictures import read_picture
from diffassemble.files.puzzles import open_input
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import Pictures
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.files import check_pieces
from diffassemble.squares.kind import read_photo

KINDS = ("a picture to cut", "a photo of pieces lying apart", "a shuffled grid in one picture", "pieces or fragments")
PHOTO, SCATTERED, SHUFFLED, PIECES = KINDS
MOST_BYTES = 200_000_000
# Pieces of a picture that is cut here are no larger than this, in pixels.
_LARGEST = 128
ZIP, WHOLE, DOCUMENT, ANIMATION = "assembly.zip", "whole", "assembly.json", "steps.gif"
"""What can be downloaded; the whole is a picture or a model, whichever the pieces make up."""


def read_upload(upload: UploadedFile, kind: str, board: Board | None, seed: int, folder: Path) -> Puzzle | None:
    """The puzzle in an upload, or nothing if it is one of several pieces, which are collected in `folder`.

    A zip file holds pieces, whatever kind is chosen; the grid to cut a picture by is none of theirs.
    """
    check_size(upload.name, len(upload.content))
    if is_zip(upload.name):
        board = board if kind == PIECES else None
        with TemporaryDirectory(dir=folder.parent) as home:
            return open_input(unpack(io.BytesIO(upload.content), upload.name, Path(home)), board, seed=seed)
    if kind == PIECES:
        _collect(upload, folder)
        return None
    with TemporaryDirectory(dir=folder.parent) as home:
        file = Path(home) / _plain_name(upload.name)
        file.write_bytes(upload.content)
        return _read_one(file, kind, board, seed)


def suggested_grid(kind: str) -> str:
    """What the field 'grid' begins with: nothing, if the grid can be found out."""
    return "4x4" if kind in (PHOTO, SHUFFLED) else ""


def check_size(name: str, size: int) -> None:
    """Refuse uploads beyond the limit."""
    if size > MOST_BYTES:
        most = f"{MOST_BYTES // 10**6} MB"
        raise InputError(f"{name}: has {size // 10**6} MB, at most {most} are taken; use `diffassemble solve` instead")


def limit_uploads(client: viser.ClientHandle, tell: Callable[[str], None]) -> None:
    """Drop uploads beyond the limit when they begin, and tell why.

    viser 1 keeps all parts of an upload in memory until the last one is there, and has no option to refuse large ones.
    So this function, and no other, reaches into it: a second handler of the message that begins an upload forgets that
    upload, whose parts viser then drops as they come.
    """

    def begin(_: int, message: _messages.FileTransferStartUpload) -> None:
        try:
            check_size(message.filename, message.size_bytes)
        except InputError as error:
            client.gui._current_file_upload_states.pop(message.transfer_uuid, None)
            tell(str(error))

    client.gui._websock_interface.register_handler(_messages.FileTransferStartUpload, begin)


def _read_one(file: Path, kind: str, board: Board | None, seed: int) -> Puzzle:
    if kind == SCATTERED:
        return read_photo(file, OpenOptions(board, seed=seed))[0]
    if board is None:
        raise InputError(f"{file.name}: write rows x columns into the field 'grid', such as 4x4")
    if kind == SHUFFLED:
        return open_input(file, board)
    picture, generator = read_picture(file), torch.Generator().manual_seed(seed)
    natural = min(picture.shape[-2] // board.rows, picture.shape[-1] // board.cols)
    size = min(natural, _LARGEST) or None
    puzzle = cut_picture(picture, board, generator, size=size)
    check_pieces(puzzle.pictures, puzzle.names, Path(file.name))
    return puzzle


def _collect(upload: UploadedFile, folder: Path) -> None:
    """Keep one of several pieces; what can't be read is refused at once, not when the last one is there."""
    file = folder / _plain_name(upload.name)
    if file.exists():
        raise InputError(f"{file.name}: was sent already; rename it if it is another piece")
    there = [path.stat().st_size for path in folder.iterdir()]
    if len(there) >= MOST_FILES or sum(there) + len(upload.content) > MOST_BYTES:
        most = f"{MOST_FILES} pieces or {MOST_BYTES // 10**6} MB"
        raise InputError(f"{file.name}: no more than {most} are taken; use `diffassemble solve` instead")
    file.write_bytes(upload.content)
    try:
        read_mesh(file) if file.suffix.lower() in MESH_ENDINGS else read_picture(file)
    except InputError:
        file.unlink()
        raise


def _plain_name(name: str) -> str:
    """A name that stays within its folder, whatever the browser calls the file."""
    plain = re.sub(r"[^\w.+ -]", "_", re.split(r"[/\\]", name)[-1]).lstrip(".")[-100:]
    if not plain:
        raise InputError("the file has no name; rename it")
    return plain


def download(assembly: Assembly, wanted: str, folder: Path) -> tuple[str, bytes]:
    """The name and content of one download, rendered only now, as the command line writes it.

    A zip file is made within `folder`, where nothing stays.
    """
    if wanted == ZIP:
        with TemporaryDirectory(dir=folder) as home:
            target = Path(home) / "result"
            write_assembly(assembly, target)
            files = sorted(path for path in target.rglob("*") if path.is_file())
            return ZIP, pack([(path.relative_to(target).as_posix(), path.read_bytes()) for path in files])
    if wanted == DOCUMENT:
        return DOCUMENT, assembly_bytes(assembly)
    if wanted == ANIMATION:
        return ANIMATION, Pictures(assembly).steps
    model = next(kind_of(assembly.puzzle).further_files(assembly), None)
    return model or ("assembled.png", Pictures(assembly).assembled)
