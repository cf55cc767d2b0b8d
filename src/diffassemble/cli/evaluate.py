"""`diffassemble evaluate`: tables of results.

Everything heavy is imported once the arguments are understood, so that help comes at once.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from diffassemble.cli.paper_tables import TablePlan
    from diffassemble.evaluation import Cell, Measured
    from diffassemble.puzzle import Board


def evaluate(
    data: Annotated[tuple[str, ...], tyro.conf.arg(metavar="DIR …", help_behavior_hint="")] = (),
    table: Annotated[str | None, tyro.conf.arg(metavar="3|4|time", help_behavior_hint="")] = None,
    grid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="N|RxC …", help_behavior_hint="")] = (),
    solver: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME …", help_behavior_hint="")] = (),
    model: Annotated[str, tyro.conf.arg(metavar="NAME")] = "jigsaw",
    missing: Annotated[tuple[float, ...], tyro.conf.arg(metavar="SHARE …", help_behavior_hint="")] = (),
    erode: Annotated[tuple[int, ...], tyro.conf.arg(metavar="PX …", help_behavior_hint="")] = (),
    size: Annotated[int, tyro.conf.arg(metavar="PX")] = 32,
    limit: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    puzzles: Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")] = None,
    seed: int = 0,
    samples: int = 8,
    steps: int = 20,
    budget: Annotated[float, tyro.conf.arg(metavar="SECONDS", help_behavior_hint="")] = math.inf,
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None,
    figure: Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")] = None,
) -> None:
    """Cut the same puzzles for every solver, solve them, and print how many pieces came out right.

    Args:
        data: Folders of pictures; celeba-hq=DIR and wikiart=DIR stand for the test pictures of the paper. For tables 3
            and 4 say what they show: faces=DIR paintings=DIR, and for grids of 8x8 and more faces:8=DIR if need be.
        table: A table of the paper, ours beside the quoted figures: 3 (whole puzzles), 4 (30 % of the pieces missing)
            or time (seconds by pieces; on sample pictures if there is no --data).
        grid: Grids, such as 6 for 6x6, or 4x7. Default: 6, or those of the table.
        solver: Solvers to compare. Default: diffusion, or all for a table.
        model: The model of learned solvers: a bundled name, a folder or a hub id.
        missing: Shares of the pieces to take away, such as 0 0.3. Default: 0, or that of the table.
        erode: Pixels lost at every side of a piece, such as 0 2. Default: 0.
        size: Pixels of a piece's side, before erosion.
        limit: Pictures per folder, evenly spread over it. Default: all, or 3 for the table of times.
        puzzles: At least so many puzzles a row: fewer pictures are cut again with the next seeds.
        seed: The same seed gives the same puzzles.
        samples: Answers that a diffusion solver draws, to keep the best of them.
        steps: Denoising steps of a diffusion solver.
        budget: Seconds a puzzle, after which solvers that search give their best answer so far. Default: no limit.
        json: Also write the rows to this file. Default for a table: table-NAME.json.
        figure: Where to draw a table, as PNG. Default: table-NAME.png.
    """
    from diffassemble.cli.grid import parse_grid
    from diffassemble.cli.measuring import check_place, measure, show
    from diffassemble.cli.paper_tables import plan_table
    from diffassemble.evaluation import Sweep, results_table, warm_up
    from diffassemble.solvers import SOLVERS, make_solver

    boards = [parse_grid(text) for text in grid]
    if table is None:
        _refuse("--figure draws a table of the paper; pass --table too", figure)
        plan, cells, names = None, _cells(data, boards, missing, erode), solver or ("diffusion",)
    else:
        _refuse(f"table {table} says itself what is missing or eroded; leave --missing and --erode out", missing, erode)
        plan = plan_table(table, data, boards)
        cells, names = plan.cells, solver or tuple(SOLVERS)
        json, figure = json or Path(f"table-{table}.json"), figure or Path(f"table-{table}.png")
        _refuse(
            f"{figure}: figures are PNG pictures; give it a name that ends in .png", figure.suffix.lower() != ".png"
        )
        limit = plan.usual_limit if limit is None and puzzles is None else limit
    for path in (json, figure):
        if path is not None:
            check_place(path)
    solvers = [make_solver(name, model=model, samples=samples, steps=steps, budget=budget) for name in names]
    sweep = Sweep(solvers, cells, limit, puzzles, seed, size)
    if plan is not None:
        warm_up(sweep)
    results = measure(sweep, json)
    show(results_table(results))
    if plan is not None and figure is not None:
        _compare(plan, results, figure)
    if json is not None:
        print(f"wrote {len(results)} rows to {json}")


def _cells(
    data: tuple[str, ...], boards: list[Board], missing: tuple[float, ...], erode: tuple[int, ...]
) -> list[Cell]:
    """Every combination of what is given."""
    from diffassemble.datasets import held_out_pictures, short_name
    from diffassemble.evaluation import all_cells
    from diffassemble.puzzle import Board, InputError

    if not data:
        raise InputError("there are no pictures to evaluate on; pass --data DIR")
    collections = [(short_name(name), held_out_pictures(name)) for name in data]
    return all_cells(collections, boards or [Board(6, 6)], missing or (0.0,), erode or (0,))


def _compare(plan: TablePlan, results: list[Measured], figure: Path) -> None:
    """Print our results beside the paper's, and draw them."""
    from diffassemble.cli.measuring import show
    from diffassemble.evaluation import comparison_table
    from diffassemble.files.atomic import write_file
    from diffassemble.solvers.catalogue import BORDER_SOLVERS

    comparisons = plan.compare(results, BORDER_SOLVERS)
    for comparison in comparisons:
        show(comparison_table(comparison, explained=comparison is comparisons[-1]))
    write_file(figure, plan.draw(comparisons))
    print(f"drew {figure}")


def _refuse(message: str, *wishes: object) -> None:
    """Tell a wish that can't be granted, if there is one."""
    from diffassemble.puzzle import InputError

    if any(wishes):
        raise InputError(message)


def run(argv: list[str]) -> None:
    """Parse the arguments and measure."""
    tyro.cli(evaluate, args=argv, prog="diffassemble evaluate")
