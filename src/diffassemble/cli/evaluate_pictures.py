"""`diffassemble evaluate` on pictures."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from diffassemble.cli.evaluate_options import EvaluateOptions
from diffassemble.cli.grid import parse_grid
from diffassemble.cli.measuring import check_place, measure, show
from diffassemble.cli.paper_tables import TablePlan, plan_table
from diffassemble.core import Board, InputError
from diffassemble.evaluation.cluster import on_cluster
from diffassemble.evaluation.journal import Journal
from diffassemble.evaluation.report import Album, Remembering, measurement_page
from diffassemble.evaluation.scoring import score_here
from diffassemble.evaluation.sweep import Cell, Measured, Sweep, all_cells, warm_up
from diffassemble.evaluation.tables import comparison_table, results_table
from diffassemble.files.atomic import write_file
from diffassemble.kinds import BORDER_SOLVERS, PICTURE_SOLVERS
from diffassemble.squares.pictures import held_out_pictures, short_name


def evaluate_pictures(options: EvaluateOptions) -> None:
    """Measure, print and write what is asked for."""
    # Looked up here, where a test may put its own.
    from diffassemble.kinds import make_solver

    boards = [parse_grid(text) for text in options.grid]
    table, json, figure, limit = options.table, options.json, options.figure, options.limit
    if table is None:
        plan, cells, names = None, _cells(options, boards), options.solver or ("diffusion",)
    else:
        if options.missing or options.erode:
            raise InputError(f"table {table} says itself what is missing or eroded; leave --missing and --erode out")
        plan = plan_table(table, options.data, boards)
        cells, names = plan.cells, options.solver or PICTURE_SOLVERS
        json, figure = json or Path(f"table-{table}.json"), figure or Path(f"table-{table}.png")
        limit = plan.usual_limit if limit is None and options.puzzles is None else limit
    if options.report is not None and (options.scores is not None or options.ray is not None):
        raise InputError("--report shows answers of this run and process; leave --scores and --ray out")
    for path in (json, figure, options.report, options.scores):
        if path is not None:
            check_place(path)
    model = options.model or "jigsaw"
    solvers = [
        make_solver(name, model=model, samples=options.samples, steps=options.steps, budget=options.budget)
        for name in names
    ]
    album = Album([Remembering(solver) for solver in solvers])
    watched = options.scores is None and options.ray is None
    wanted = ("samples", "steps", "budget")
    asked: dict[str, str | int | float] = {"model": model, **{name: getattr(options, name) for name in wanted}}
    journal = None if options.scores is None else Journal(options.scores, asked)
    wishes = limit, options.puzzles, options.seed, options.size
    with nullcontext(score_here) if options.ray is None else on_cluster(options.ray) as scoring:
        sweep = Sweep(album.solvers if watched else solvers, cells, *wishes, scoring, journal)
        if plan is not None:
            warm_up(sweep)
            album.forget()
        results = measure(sweep, json, album.hear if watched else lambda score: None)
    show(results_table(results))
    if plan is not None and figure is not None:
        _compare(plan, results, figure)
    if json is not None:
        print(f"wrote {len(results)} rows to {json}")
    if options.report is not None:
        settings = [(name, str(getattr(options, name))) for name in ("samples", "steps", "budget", "seed", "size")]
        write_file(options.report, measurement_page(results, album, [("model", model), *settings]).encode())
        print(f"wrote {options.report}")


def _cells(options: EvaluateOptions, boards: list[Board]) -> list[Cell]:
    """Every combination of what is given."""
    if not options.data:
        raise InputError("there is nothing to evaluate on; pass --data DIR")
    collections = [(short_name(name), held_out_pictures(name)) for name in options.data]
    return all_cells(collections, boards or [Board(6, 6)], options.missing or (0.0,), options.erode or (0,))


def _compare(plan: TablePlan, results: list[Measured], figure: Path) -> None:
    """Print our results beside the paper's, and draw them."""
    comparisons = plan.compare(results, BORDER_SOLVERS)
    for comparison in comparisons:
        show(comparison_table(comparison, explained=comparison is comparisons[-1]))
    write_file(figure, plan.draw(comparisons))
    print(f"drew {figure}")
