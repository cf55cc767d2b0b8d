"""`diffassemble fracture`: a puzzle folder of fragments from a solid."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from diffassemble.cli.arguments import Folder, Missing, Overwrite, Seed


def fracture(
    mesh: Annotated[Positional[Path], arg(metavar="MESH")],
    out: Folder,
    pieces: int = 8,
    missing: Missing = 0.0,
    chips: float = 0.0,
    seed: Seed = 0,
    format: Literal["ply", "obj", "stl", "glb"] = "ply",
    overwrite: Overwrite = False,
) -> None:
    """Break a solid into fragments, centred and turned at random, and write them as a puzzle folder.

    Args:
        mesh: A closed mesh: PLY, OBJ, STL, GLB or OFF. Or the name of a solid to make up: bowl, mug, wine-glass, …
        pieces: How many fragments, 2 to 200.
        chips: Share of the fragments that are small chips, such as 0.3.
        format: The format of the fragments' files.
    """
    from diffassemble.fragments.shapes import fracture_file
    from diffassemble.io.puzzles import write_puzzle

    puzzle = fracture_file(mesh, pieces, seed, missing, chips)
    write_puzzle(puzzle, out, overwrite, f".{format}")
    lost = f" ({pieces - len(puzzle)} of {pieces} missing)" if len(puzzle) < pieces else ""
    print(f"wrote {len(puzzle)} fragments{lost} to {out}")
    print(f"solve it: diffassemble solve {shlex.quote(str(out))}")
