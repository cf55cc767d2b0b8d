"""`diffassemble cut`: a puzzle folder from a picture, or from a photograph of pieces."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from diffassemble.core import Board, Puzzle


def cut(
    photo: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PHOTO")],
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")],
    grid: Annotated[str | None, tyro.conf.arg(metavar="RxC")] = None,
    size: Annotated[int | None, tyro.conf.arg(metavar="PX")] = None,
    missing: float = 0.0,
    erode: int = 0,
    seed: int = 0,
    rotate: bool = True,
    from_photo: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    overwrite: bool = False,
) -> None:
    """Cut a picture into shuffled, turned square pieces and write them as a puzzle folder.

    Args:
        photo: The picture: PNG, JPEG, WebP or TIFF. Its centre is used, so that pieces are square.
        out: The folder to write.
        grid: Rows and columns, such as 6x6, 4x7, or 6 for 6x6. With --from-photo it is found out if not given.
        size: Side of a piece in pixels; the picture is resized. Default: as large as the picture allows.
        missing: Share of the pieces to take away, such as 0.3.
        erode: Pixels lost at every side of a piece.
        seed: The same seed gives the same puzzle.
        rotate: Turn the pieces by random quarter turns.
        from_photo: The picture shows separate square pieces on a plain background, at any angle: find them,
            straighten them and cut them out. Beside the folder, a picture shows what was found.
        overwrite: Replace the folder if it holds a puzzle already.
    """
    from diffassemble.core import InputError
    from diffassemble.files.documents import parse_grid
    from diffassemble.files.puzzles import write_puzzle
    from diffassemble.squares.cut import cut_image

    board = None if grid is None else parse_grid(grid)
    if from_photo:
        puzzle = _photographed(photo, out, board, size, seed)
    elif board is None:
        raise InputError(f"{photo}: pass --grid, such as --grid 6x6, to say into what the picture is cut")
    else:
        puzzle = cut_image(photo, board.rows, board.cols, seed, size, missing, erode, rotate)
    write_puzzle(puzzle, out, overwrite)
    side, board = puzzle.pictures.size, puzzle.board
    print(f"wrote {len(puzzle)} pieces of {side}x{side} pixels, grid {board.rows}x{board.cols}, to {out}")
    print(f"solve it: diffassemble solve {shlex.quote(str(out))}")


def _photographed(photo: Path, out: Path, board: Board | None, size: int | None, seed: int) -> Puzzle:
    """The pieces that lie in a photograph; shows beside the folder where they were found."""
    from diffassemble.core.kind import OpenOptions
    from diffassemble.files.atomic import write_file
    from diffassemble.files.pictures import png_bytes
    from diffassemble.squares.kind import read_photo

    puzzle, shown = read_photo(photo, OpenOptions(board, seed=seed, say=print), size)
    picture = out.with_name(f"{out.name}-found.png")
    write_file(picture, png_bytes(shown))
    print(f"found {len(puzzle)} pieces; {picture} shows where")
    return puzzle
