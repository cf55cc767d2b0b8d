"""`diffassemble cut`: a puzzle folder from a picture, or from a photograph of pieces."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from diffassemble.cli.arguments import Colours, Flag, Folder, Grid, Missing, Overwrite, Seed, Sheet


def cut(
    photos: Annotated[Positional[tuple[Path, ...]], arg(metavar="PHOTO...")],
    out: Folder,
    grid: Grid = None,
    shape: Literal["squares", "tabs", "torn", "shards", "strips"] = "squares",
    pieces: Annotated[int | None, arg(metavar="N")] = None,
    size: Annotated[int | None, arg(metavar="PX")] = None,
    missing: Missing = 0.0,
    erode: Annotated[int | None, arg(metavar="PX")] = None,
    seed: Seed = 0,
    rotate: bool = True,
    fit: Annotated[Flag, arg(aliases=["--whole"])] = False,
    from_photo: Flag = False,
    kind: Literal["squares", "outlines"] | None = None,
    colours: Colours = None,
    sheet: Sheet = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Cut a picture into shuffled, turned pieces and write them as a puzzle folder.

    Args:
        photos: The picture: PNG, JPEG, WebP or TIFF. For squares its centre is used, so that pieces are square. With
            --from-photo several photos, or a folder of them.
        shape: What the pieces are: squares on a grid; or, turned by any angle, jigsaw pieces with tabs, torn paper
            whose white core shows, shards with rough edges, or the strips of a shredder. Those need --pieces.
        pieces: How many pieces of another shape than squares; tabs form a lattice, which may have a few more or less.
        size: Side of a piece in pixels, or the width of a strip; the picture is resized. Default: as large as the
            picture allows, but at least 80 for other shapes than squares, 24 for strips.
        erode: Pixels lost at every side of a piece. Default: 0, for shards 2.
        rotate: Turn the pieces: squares by random quarter turns, oblong ones by half turns, others by any angle.
        fit: Keep all of the picture: on a grid of another shape than its own, pieces are oblong and not square.
        from_photo: The picture shows separate pieces on a plain background, at any angle: find them and cut them out,
            square ones straightened, others along their outlines. Beside the folder, a picture shows what was found.
        kind: With --from-photo: what the pieces are. Default: squares if most are square, else outlines.
    """
    from diffassemble.cli.progress import show_found
    from diffassemble.core import InputError
    from diffassemble.io.atomic import check_free
    from diffassemble.io.documents import parse_grid
    from diffassemble.io.puzzles import PUZZLE_FILES, open_input, write_puzzle
    from diffassemble.outlines.cut import cut_shape
    from diffassemble.squares.cut import cut_image

    board = None if grid is None else parse_grid(grid)
    notes: list[str] = []
    check_free(out, PUZZLE_FILES, overwrite)
    if not photos:
        raise InputError("no picture given; pass one, or photos of pieces with --from-photo")
    photo = photos[0]
    if not from_photo and (photos[1:] or kind or colours):
        raise InputError(f"{photo}: several photos, --kind and --colours are for --from-photo; one picture is cut")
    if shape != "squares":
        if pieces is None or board is not None or from_photo or fit:
            raise InputError(f"{photo}: --shape {shape} takes --pieces N, and neither --grid, --fit nor --from-photo")
        puzzle = cut_shape(photo, shape, pieces, seed, size, missing, erode, rotate)
    elif pieces is not None:
        raise InputError(f"{photo}: --pieces is for other shapes than squares; pass --grid, or --shape tabs")
    elif from_photo:
        show = partial(show_found, out, overwrite, print)
        asked = {"kind": kind, "more": photos[1:], "colours": colours, "sheet": sheet, "seed": seed, "size": size}
        puzzle = open_input(photo, board, photographed=True, show=show, say=print, **asked)
    elif board is None:
        raise InputError(f"{photo}: pass --grid, such as --grid 6x6: into how many rows and columns to cut")
    else:
        puzzle = cut_image(photo, board.rows, board.cols, seed, size, missing, erode or 0, rotate, fit, notes.append)
    write_puzzle(puzzle, out, overwrite)
    if puzzle.lattice is None:
        described = f"of about {float(puzzle.outlines.areas.sqrt().mean()):.0f} pixels across"
    else:
        given, board = puzzle.pictures, puzzle.lattice
        described = f"of {given.width}x{given.height} pixels, grid {board.rows}x{board.cols}"
    print(*notes, f"wrote {len(puzzle)} pieces {described}, to {out}", sep="\n")
    print(f"solve it: diffassemble solve {shlex.quote(str(out))}")
