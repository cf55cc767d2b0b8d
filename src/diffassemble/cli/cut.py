"""`diffassemble cut`: a puzzle folder from a picture."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import tyro


def cut(
    photo: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PHOTO")],
    grid: Annotated[str, tyro.conf.arg(metavar="RxC")],
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")],
    size: Annotated[int | None, tyro.conf.arg(metavar="PX")] = None,
    missing: float = 0.0,
    erode: int = 0,
    seed: int = 0,
    rotate: bool = True,
    overwrite: bool = False,
) -> None:
    """Cut a picture into shuffled, turned square pieces and write them as a puzzle folder.

    Args:
        photo: The picture: PNG, JPEG, WebP or TIFF. Its centre is used, so that pieces are square.
        grid: Rows and columns, such as 6x6, 4x7, or 6 for 6x6.
        out: The folder to write.
        size: Side of a piece in pixels; the picture is resized. Default: as large as the picture allows.
        missing: Share of the pieces to take away, such as 0.3.
        erode: Pixels lost at every side of a piece.
        seed: The same seed gives the same puzzle.
        rotate: Turn the pieces by random quarter turns.
        overwrite: Replace the folder if it holds a puzzle already.
    """
    from diffassemble.cli.grid import parse_grid
    from diffassemble.cutting.photo import cut_image
    from diffassemble.files import write_puzzle

    board = parse_grid(grid)
    puzzle = cut_image(photo, board.rows, board.cols, seed, size, missing, erode, rotate)
    write_puzzle(puzzle, out, overwrite)
    side = puzzle.pictures.size
    print(f"wrote {len(puzzle)} pieces of {side}x{side} pixels, grid {board.rows}x{board.cols}, to {out}")
    print(f"solve it: diffassemble solve {shlex.quote(str(out))}")


def run(argv: list[str]) -> None:
    """Parse the arguments and cut."""
    tyro.cli(cut, args=argv, prog="diffassemble cut")
