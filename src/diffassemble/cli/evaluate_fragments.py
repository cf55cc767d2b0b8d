"""`diffassemble evaluate` on broken objects."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from diffassemble.cli.evaluate_options import EvaluateOptions
from diffassemble.cli.fragment_rows import DIFFUSION, choose_rows, make_row, parse_rows
from diffassemble.cli.measuring import check_place, measure_fragments, show
from diffassemble.core import InputError, Solver
from diffassemble.evaluation.fragment_benchmark import FragmentRow, FragmentSweep, warm_up_fragments
from diffassemble.evaluation.fragment_comparison import compare_fragments
from diffassemble.evaluation.fragment_figures import fragment_figure
from diffassemble.evaluation.fragment_puzzles import Broken, Damage
from diffassemble.evaluation.fragment_quoted import FRAGMENT_TABLES, FragmentTable
from diffassemble.evaluation.fragment_report import FragmentAlbum, fragment_page
from diffassemble.evaluation.fragment_tables import (
    fragment_comparison_table,
    fragment_groups_table,
    fragment_results_table,
)
from diffassemble.files.atomic import write_file
from diffassemble.fragments.datasets import find_fractures, holds_fractures

# Numbers of pieces that the benchmark is about.
PIECES = (2, 20)


def about_fragments(table: str | None, data: Sequence[str]) -> bool:
    """Whether broken objects are meant rather than pictures: by the table, or by what lies in the folders."""
    if table is not None:
        return table in FRAGMENT_TABLES
    broken = [holds_fractures(Path(name)) for name in data]
    if any(broken) and not all(broken):
        raise InputError(f"{data[broken.index(False)]} holds no fractures, but others do; evaluate them one by one")
    return any(broken)


def evaluate_fragments(options: EvaluateOptions) -> None:
    """Measure, print and write what is asked for."""
    plan, json, figure = _plan(options), options.json, options.figure
    if plan is not None:
        if options.missing or options.noise or options.points:
            raise InputError(
                f"table {options.table} says itself what is missing; leave --missing, --noise and --points out"
            )
        json, figure = json or Path(f"table-{options.table}.json"), figure or Path(f"table-{options.table}.png")
    for path in (json, figure, options.report):
        if path is not None:
            check_place(path)
    sweep = FragmentSweep(
        collections=_collections(options, plan),
        solvers=_solvers(options, plan),
        damages=_damages(options, plan),
        anchors=tuple(dict.fromkeys(options.anchor)) or ("none",),
        limit=options.limit,
        seed=options.seed,
        seeds=options.seeds,
    )
    if plan is not None:
        warm_up_fragments(sweep)
    album = FragmentAlbum()
    rows = measure_fragments(sweep, json, album.hear)
    show(fragment_results_table(rows))
    show(fragment_groups_table(rows))
    if plan is not None and figure is not None:
        _compare(plan, rows, figure)
    if json is not None:
        print(f"wrote {len(rows)} rows to {json}")
    if options.report is not None:
        settings = [(name, str(getattr(options, name))) for name in ("samples", "steps", "budget", "seed", "split")]
        write_file(options.report, fragment_page(rows, album, settings).encode())
        print(f"wrote {options.report}")


def _plan(options: EvaluateOptions) -> FragmentTable | None:
    return None if options.table is None else FRAGMENT_TABLES[options.table]


def _solvers(options: EvaluateOptions, plan: FragmentTable | None) -> list[Solver]:
    """The rows that have their weights; tells which have not."""
    given = parse_rows(options.rows)
    usual = () if plan is not None or given else (DIFFUSION,)
    methods = () if plan is None else plan.methods
    chosen, left_out = choose_rows(methods, options.solver or usual, given, options.model)
    for name in left_out:
        print(f"{name} is left out, for want of weights; pass --rows {name}=FOLDER")
    return [
        make_row(wish, given, samples=options.samples, steps=options.steps, budget=options.budget) for wish in chosen
    ]


def _damages(options: EvaluateOptions, plan: FragmentTable | None) -> list[Damage]:
    """Every combination of what is given."""
    missing = plan.missing if plan is not None else options.missing or (0.0,)
    return [
        Damage(share, noise, points)
        for points, noise, share in product(options.points or (0,), options.noise or (0.0,), missing)
    ]


def _collections(options: EvaluateOptions, plan: FragmentTable | None) -> list[tuple[str, Sequence[Broken]]]:
    """The fractures of each folder, named by folder, subset and split."""
    if not options.data:
        raise InputError(f"there are no broken objects for table {options.table}; pass --data DIR")
    pieces = options.pieces or (PIECES if plan is None else plan.pieces)
    return [
        (
            f"{Path(name).resolve().name}/{options.subset}/{options.split}",
            find_fractures(Path(name), options.split, subset=options.subset, pieces=pieces),
        )
        for name in options.data
    ]


def _compare(plan: FragmentTable, rows: Sequence[FragmentRow], figure: Path) -> None:
    """Print our results beside the quoted ones, and draw them."""
    comparisons = compare_fragments(plan, rows)
    for comparison in comparisons:
        show(fragment_comparison_table(comparison, explained=comparison is comparisons[-1]))
    write_file(figure, fragment_figure(plan.title, comparisons))
    print(f"drew {figure}")
