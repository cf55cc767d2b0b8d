"""Uploads, limited by the bytes that arrive, become puzzles; answers become files when these are asked for."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, InputError, Puzzle
from diffassemble.core.limits import LIMITS
from diffassemble.fragments.shapes import fracture_file
from diffassemble.io.archives import is_zip, pack
from diffassemble.io.assemblies import assembly_bytes, write_assembly
from diffassemble.io.meshes import MESH_ENDINGS
from diffassemble.io.pictures import png_bytes, read_picture
from diffassemble.io.puzzles import open_input
from diffassemble.io.reading import reason
from diffassemble.kinds import kind_of
from diffassemble.outlines.cut import cut_shape
from diffassemble.rendering.report import Pictures, report_html
from diffassemble.squares.cut import check_pieces, cut_image, cut_picture
from diffassemble.web import CONFIG
from diffassemble.web.jobs import Send

CUT = "a picture to cut into squares"
JIGSAW = "a picture to cut into a jigsaw"
PHOTOS = "photos of loose pieces: jigsaw, torn, any outline"
SQUARES = "a photo of loose square pieces"
SHUFFLED = "a shuffled grid in one picture"
PIECES = "pieces or fragments, one file each, or zipped"
READ_AS: dict[str, dict[str, Any]] = {
    PHOTOS: {"kind": "outlines"},
    SQUARES: {"kind": "squares", "photographed": True},
    SHUFFLED: {"kind": "squares"},
}
"""options of `open_input` by what was chosen on the page"""
WHAT = (CUT, JIGSAW, PHOTOS, SQUARES, SHUFFLED, PIECES)
# Those that ask for rows and columns, and those for which they may be left empty.
WITH_GRID, GRID_FOUND = (CUT, SHUFFLED, SQUARES, PIECES), (SQUARES, PIECES)
MOST_BYTES, MOST_FILES = LIMITS.upload_bytes, LIMITS.archive_entries


class Sample(NamedTuple):
    """Something to try: what it is called, what it shows, and what makes it."""

    title: str
    words: str
    make: Callable[[], Puzzle]


def _picture(name: str) -> str:
    return str(files("skimage.data") / name)


SAMPLES = {
    "photo": Sample(
        "Photo in squares",
        "36 squares of a photo, shuffled and turned",
        lambda: cut_image(_picture("astronaut.png"), 6, 6, 0, size=80),
    ),
    "jigsaw": Sample(
        "Jigsaw with tabs",
        "30 pieces of a photo, turned by any angle",
        lambda: cut_shape(_picture("coffee.png"), "tabs", 30, 0),
    ),
    "bowl": Sample("Broken bowl", "6 fragments of a bowl", lambda: fracture_file("bowl", 6, 0)),
}


class Order(NamedTuple):
    """A person's choice: what the files are, rows and columns if given, number of pieces to cut, and seed."""

    what: str
    board: Board | None = None
    pieces: int = 30
    seed: int = 0


def usual(names: list[str]) -> str:
    """What files most likely are, by their names."""
    meshes = any(Path(name).suffix.lower() in MESH_ENDINGS for name in names)
    return CUT if len(names) == 1 and not meshes and not is_zip(names[0]) else PIECES


def plain_name(name: str) -> str:
    """A name that stays within its folder, whatever the browser calls the file."""
    plain = re.sub(r"[^\w.+ -]", "_", re.split(r"[/\\]", name)[-1]).lstrip(".")[-100:]
    if not plain:
        raise InputError("the file has no name; rename it")
    return plain


def listed(folder: Path) -> list[Path]:
    """The files that arrived, in the order of their names; those on the way are not among them."""
    return sorted(path for path in folder.iterdir() if path.suffix != ".part") if folder.is_dir() else []


async def receive(name: str, chunks: AsyncIterator[bytes], folder: Path) -> Path:
    """Write a file that arrives into a folder, or refuse it as soon as it is too much."""
    file = folder / plain_name(name)
    if file.exists():
        raise InputError(f"{file.name}: was sent already; rename it if it is another one")
    # Files of a session arrive one after another, so a part that is there was left by a server that was killed.
    for left in folder.glob("*.part"):
        left.unlink()
    there = [path.stat().st_size for path in folder.iterdir()]
    room = MOST_BYTES - sum(there)
    part = file.with_name(f"{file.name}.part")
    try:
        if len(there) >= MOST_FILES:
            raise InputError(f"{file.name}: no more than {MOST_FILES} files are taken; use `diffassemble solve`")
        with part.open("wb") as target:
            async for chunk in chunks:
                room -= len(chunk)
                if room < 0:
                    most = f"{MOST_BYTES // 10**6} MB"
                    raise InputError(f"{file.name}: no more than {most} are taken; use `diffassemble solve`")
                target.write(chunk)
        return part.rename(file)
    except OSError as error:
        raise InputError(f"{file.name}: cannot be kept ({reason(error)})") from error
    finally:
        part.unlink(missing_ok=True)


def read(send: Send, folder: Path, order: Order) -> None:
    """Read the files of a folder and send the puzzle; what photographs show is sent before (PNG)."""
    found = listed(folder)
    if not found:
        raise InputError("nothing was uploaded yet; drop a file first")
    first, *rest = found
    zipped = not rest and is_zip(first)
    options: dict[str, Any] = {
        **({} if zipped else READ_AS.get(order.what, {})),
        "seed": order.seed,
        "say": lambda text: send("say", text),
        "show": lambda picture: send("found", png_bytes(picture)),
    }
    if order.what == PIECES or zipped:
        board = order.board if order.what == PIECES else None
        puzzle = open_input(first if zipped else folder, board, **options)
    elif order.what == PHOTOS:
        puzzle = open_input(first, more=tuple(rest), **options)
    elif rest:
        raise InputError(f"{len(found)} files are there, but this is one; remove the others, or choose what they are")
    elif order.what == JIGSAW:
        puzzle = cut_shape(str(first), "tabs", order.pieces, order.seed)
    elif order.board is None and order.what != SQUARES:
        raise InputError("write rows and columns, such as 4x4")
    elif order.board is None or order.what in READ_AS:
        puzzle = open_input(first, order.board, **options)
    else:
        picture, generator = read_picture(first), torch.Generator().manual_seed(order.seed)
        natural = min(picture.shape[-2] // order.board.rows, picture.shape[-1] // order.board.cols)
        puzzle = cut_picture(picture, order.board, generator, size=min(natural, CONFIG.cut) or None)
        check_pieces(puzzle.pictures, puzzle.names, Path(first.name))
    send("puzzle", puzzle)


def make_sample(send: Send, name: str) -> None:
    """Make a sample and send its puzzle."""
    send("puzzle", SAMPLES[name].make())


# Downloads.

ZIP, WHOLE, MODEL, DOCUMENT = "assembly.zip", "assembled.png", "assembled.glb", "assembly.json"
ANIMATION, REPORT, PLAN = "steps.gif", "report.html", "plan.png"
FILES = {
    ZIP: "Everything (zip)",
    WHOLE: "Picture (PNG)",
    MODEL: "Model (GLB)",
    DOCUMENT: "Places (JSON)",
    ANIMATION: "Animation (GIF)",
    REPORT: "Report (HTML)",
    PLAN: "Plan (PNG)",
}


def offered(kind: str) -> list[str]:
    """The files that there are of a kind of pieces."""
    absent = {"squares": {MODEL, PLAN}, "outlines": {MODEL}, "fragments": {PLAN}}[kind]
    return [name for name in FILES if name not in absent]


def content(assembly: Answer, wanted: str, folder: Path) -> bytes:
    """The content of one file; a zip file is made within `folder`, where nothing stays."""
    if wanted == ZIP:
        with TemporaryDirectory(dir=folder) as home:
            target = Path(home) / "result"
            write_assembly(assembly, target)
            files = sorted(path for path in target.rglob("*") if path.is_file())
            return pack([(path.relative_to(target).as_posix(), path.read_bytes()) for path in files])
    if wanted == DOCUMENT:
        return assembly_bytes(assembly)
    if wanted == MODEL:
        return next(made for name, made in kind_of(assembly.puzzle).files.further(assembly) if name == MODEL)
    pictures = Pictures(assembly)
    if wanted == REPORT:
        return report_html(pictures).encode()
    found = {WHOLE: lambda: pictures.assembled, ANIMATION: lambda: pictures.steps, PLAN: lambda: pictures.plan}
    if wanted not in found or (drawn := found[wanted]()) is None:
        raise InputError(f"there is no {wanted} of these pieces")
    return drawn
