"""`diffassemble solve`: pieces in, assembly out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import tyro


def solve(
    pieces: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR|IMAGE")],
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None,
    grid: Annotated[str | None, tyro.conf.arg(metavar="RxC")] = None,
    solver: str = "hybrid",
    model: str = "jigsaw",
    samples: int = 8,
    steps: int = 20,
    budget: Annotated[float, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = math.inf,
    seed: int = 0,
    overwrite: bool = False,
) -> None:
    """Put the pieces of a picture together; writes assembly.json, assembled.png and steps.gif.

    Args:
        pieces: A puzzle folder, any folder of equal square pictures, or one picture that is a shuffled grid.
        out: The folder to write. Default: the name of the input with "-solved" behind it.
        grid: Rows and columns, such as 6x6. Puzzle folders know theirs; for other folders it is found out.
        solver: The solver.
        model: Its weights: a bundled name, a folder or a hub id.
        samples: Answers to draw, to keep the best of them; their agreement is the confidence.
        steps: Denoising steps.
        budget: Seconds, after which a solver that searches gives its best answer so far. Default: no limit.
        seed: The same seed gives the same answer.
        overwrite: Replace the folder if it holds an assembly already.
    """
    from diffassemble.cli.grid import parse_grid
    from diffassemble.cli.working import assembled, load_puzzle, summary
    from diffassemble.files import check_assembly_folder, write_assembly
    from diffassemble.solvers import check_seed, make_solver

    check_seed(seed)
    source = pieces.resolve()
    folder = out or source.parent / f"{source.stem if source.is_file() else source.name}-solved"
    check_assembly_folder(folder, overwrite)
    board = None if grid is None else parse_grid(grid)
    chosen = make_solver(solver, model=model, samples=samples, steps=steps, budget=budget)
    assembly = assembled(load_puzzle(pieces, board, chosen, seed), chosen, seed)
    write_assembly(assembly, folder, overwrite)
    print(summary(assembly))
    print(f"wrote assembly.json, assembled.png and steps.gif to {folder}")


def run(argv: list[str]) -> None:
    """Parse the arguments and solve."""
    tyro.cli(solve, args=argv, prog="diffassemble solve")
