"""`diffassemble solve`: pieces in, assembly out."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro


def solve(
    pieces: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR|IMAGE")],
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    grid: Annotated[str | None, tyro.conf.arg(metavar="RxC")] = None,
    solver: str | None = None,
    model: str | None = None,
    samples: int = 8,
    steps: int = 20,
    budget: Annotated[float, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = math.inf,
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Put the pieces of a picture or the fragments of an object together.

    Writes assembly.json, assembled.png and steps.gif; for fragments also assembled.glb, posed copies and matrices.txt.

    Args:
        pieces: A puzzle folder, a folder of equal square pictures or of meshes, or one picture that is a shuffled grid.
        out: The folder to write. Default: the name of the input with "-solved" behind it.
        grid: Rows and columns, such as 6x6. Puzzle folders know theirs; for other folders it is found out.
        solver: The solver. Default: hybrid for pictures, diffusion for fragments.
        model: Its weights: a bundled name, a folder or a hub id. Default: jigsaw or fragments.
        samples: Answers to draw, to keep the best of them; their agreement is the confidence.
        steps: Denoising steps.
        budget: Seconds, after which a solver that searches gives its best answer so far. Default: no limit.
        seed: The same seed gives the same answer.
        overwrite: Replace the folder if it holds an assembly already.
    """
    from diffassemble.cli.grid import parse_grid
    from diffassemble.cli.working import assembled, load_puzzle, summary
    from diffassemble.files import check_assembly_folder, write_assembly
    from diffassemble.files.assemblies import ASSEMBLY_FILES
    from diffassemble.solvers import check_seed, solver_for

    check_seed(seed)
    source = pieces.resolve()
    folder = out or source.parent / f"{source.stem if source.is_file() else source.name}-solved"
    check_assembly_folder(folder, overwrite)
    board = None if grid is None else parse_grid(grid)
    make = partial(solver_for, name=solver, model=model, samples=samples, steps=steps, budget=budget)
    puzzle, chosen = load_puzzle(pieces, board, make, seed)
    assembly = assembled(puzzle, chosen, seed)
    write_assembly(assembly, folder, overwrite)
    print(summary(assembly))
    *others, last = [name for name in ASSEMBLY_FILES if (folder / name).exists()]
    print(f"wrote {', '.join(others)} and {last} to {folder}")


def run(argv: list[str]) -> None:
    """Parse the arguments and solve."""
    tyro.cli(solve, args=argv, prog="diffassemble solve")
