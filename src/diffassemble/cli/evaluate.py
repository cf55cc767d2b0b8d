"""`diffassemble evaluate`: tables of results.

Everything heavy is imported once the arguments are understood, so that help comes at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from diffassemble.evaluation import Measured, Sweep


def evaluate(
    data: Annotated[tuple[str, ...], tyro.conf.arg(metavar="DIR …")],
    grid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="N|RxC …")] = ("6",),
    solver: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME …")] = ("diffusion",),
    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "jigsaw",
    missing: Annotated[tuple[float, ...], tyro.conf.arg(metavar="SHARE …")] = (0.0,),
    erode: Annotated[tuple[int, ...], tyro.conf.arg(metavar="PX …")] = (0,),
    limit: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    seed: int = 0,
    samples: int = 8,
    steps: int = 20,
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
) -> None:
    """Cut the same puzzles for every solver, solve them, and print how many pieces came out right.

    Args:
        data: Folders of pictures; celeba-hq=DIR and wikiart=DIR stand for the test pictures of the paper.
        grid: Grids, such as 6 for 6x6, or 4x7.
        solver: Solvers to compare.
        model: The model of learned solvers: a bundled name, a folder or a hub id.
        missing: Shares of the pieces to take away, such as 0 0.3.
        erode: Pixels lost at every side of a piece, such as 0 2.
        limit: Pictures per folder, evenly spread over it. Default: all.
        seed: The same seed gives the same puzzles.
        samples: Answers that a diffusion solver draws, to keep the best of them.
        steps: Denoising steps of a diffusion solver.
        json: Also write the rows to this file.
    """
    from rich.console import Console

    from diffassemble.cli.grid import parse_grid
    from diffassemble.datasets import held_out_pictures, short_name
    from diffassemble.evaluation import Sweep, results_table, write_rows
    from diffassemble.solvers import make_solver

    boards = [parse_grid(text) for text in grid]
    collections = [(short_name(name), held_out_pictures(name)) for name in data]
    solvers = [make_solver(name, model=model, samples=samples, steps=steps) for name in solver]
    results = _measure(Sweep(solvers, collections, boards, missing, erode, limit, seed))
    # Output that goes into a file or a pipe has no width of its own.
    screen = Console()
    (screen if screen.is_terminal else Console(width=150)).print(results_table(results))
    if json is not None:
        write_rows([result.row for result in results], json)
        print(f"wrote {len(results)} rows to {json}")


def _measure(sweep: Sweep) -> list[Measured]:
    """Run the sweep under a progress bar on the error stream, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from diffassemble.evaluation import run_sweep

    columns = (TextColumn("puzzles"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("puzzles", total=sweep.puzzles)
        return list(run_sweep(sweep, lambda score: progress.advance(task)))


def run(argv: list[str]) -> None:
    """Parse the arguments and measure."""
    tyro.cli(evaluate, args=argv, prog="diffassemble evaluate")
