"""`diffassemble evaluate`: solvers on pictures, flat pieces or broken objects, and what is left behind of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from diffassemble.assembly.kind import SolverOptions
from diffassemble.cli.evaluate import EvaluateOptions
from diffassemble.cli.progress import show
from diffassemble.core import Board, InputError, Puzzle, Solver, Step
from diffassemble.core.limits import LIMITS
from diffassemble.evaluation.cluster import on_cluster
from diffassemble.evaluation.fragments import Broken, ObjectCell
from diffassemble.evaluation.outline_data import find_recorded
from diffassemble.evaluation.outlines import CutFromPictures, OutlineCell, Recorded
from diffassemble.evaluation.report import (
    Album,
    is_our_output,
    measurement_page,
    parts_table,
    results_table,
    write_rows,
)
from diffassemble.evaluation.rows import Row
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, Draws, Journal, Solved, Sweep, refuse, run_sweep, warm_up
from diffassemble.fragments.datasets import HELD_OUT, break_solids, find_fractures, holds_fractures
from diffassemble.io.atomic import check_file, write_file
from diffassemble.io.documents import parse_grid
from diffassemble.kinds import KINDS, make_solver
from diffassemble.outlines.cut import USUAL_EROSION
from diffassemble.squares.pictures import held_out_pictures, short_name

# Pixels of a square piece's side, without --size.
SIDE = 32
# Numbers of pieces that the benchmark of broken objects is about.
PIECES = (2, 20)
# Pieces that pictures are cut into with --shape.
SHAPED_PIECES = 100
# The solver that models without a solver's name are for.
DIFFUSION = "diffusion"
SETTINGS = ("samples", "steps", "budget")


def evaluate_solvers(options: EvaluateOptions) -> None:
    """Measure, print and write what is asked for."""
    kind = kind_of_data(options.data, options.shape)
    refuse("there is nothing to evaluate on; pass --data DIR", not options.data)
    cells = CELLS[kind](options)
    alone = KINDS[kind]().default_solver if kind == "outlines" else DIFFUSION
    names = options.solver or (() if options.rows else (alone,))
    evaluate_cells(options, kind, cells, choose_models(options, kind, names), json=options.json)


def evaluate_cells(
    options: EvaluateOptions,
    kind: str,
    cells: Sequence[Cell],
    models: dict[str, str],
    *,
    json: Path | None,
    limit: int | None = None,
    warm: bool = False,
) -> list[Row]:
    """Measure solvers, given with their models, on cells; print the tables, and write rows and report.

    `limit` is that of items per cell if the options have none; `warm` solvers answer a small case beforehand.
    """
    elsewhere = options.scores is not None or options.ray is not None
    refuse("--report shows answers of this run and process; leave --scores and --ray out", options.report and elsewhere)
    check_places(options, json, options.report)
    solvers = [make_row(kind, name, model, options) for name, model in models.items()]
    asked = {name: getattr(options, name) for name in SETTINGS}
    settings = {name: {"model": model, **asked} for name, model in models.items()}
    journal = None if options.scores is None else Journal(options.scores, settings)
    album = Album()
    with nullcontext() if options.ray is None else on_cluster(options.ray) as scoring:
        draws = [Draws(cell, options.limit or limit, options.puzzles, options.seed, options.seeds) for cell in cells]
        sweep = Sweep(solvers, draws, scoring, journal)
        if warm:
            warm_up(sweep)
        rows = measure(sweep, json, album)
    show(results_table(rows, cells[0].LOOK))
    if any(row.parts for row in rows):
        show(parts_table(rows))
    if json is not None:
        print(f"wrote {len(rows)} rows to {json}")
    if options.report is not None:
        told = [("models", ", ".join(dict.fromkeys(models.values())))]
        told += [(name, str(getattr(options, name))) for name in (*SETTINGS, "seed", "size", "split")]
        write_file(options.report, measurement_page(rows, cells[0].LOOK, album, told).encode())
        print(f"wrote {options.report}")
    return rows


def kind_of_data(data: Sequence[str], shape: str = "squares") -> str:
    """The kind of pieces that lies in the folders, or that their pictures are to be cut into."""
    flat = [bool(find_recorded(Path(name))) for name in data]
    if any(flat) and not all(flat):
        raise InputError(
            f"{data[flat.index(False)]} holds no puzzles of flat pieces, but others do; evaluate one by one"
        )
    if any(flat) or shape != "squares":
        told = "--shape is for pictures that are to be cut; these are pieces already"
        refuse(told, any(flat) and shape != "squares")
        return "outlines"
    broken = [made_solids(name) is not None or holds_fractures(Path(name)) for name in data]
    if any(broken) and not all(broken):
        raise InputError(f"{data[broken.index(False)]} holds no fractures, but others do; evaluate them one by one")
    return "fragments" if any(broken) else "squares"


def alien_options(options: EvaluateOptions) -> None:
    """Refuse options of broken objects where pictures are cut."""
    alien = (options.pieces, options.anchor, options.noise, options.points, options.points_each, options.wear)
    told = "--pieces, --anchor, --noise, --points, --points-each, --wear and --seeds are for broken objects"
    refuse(f"{told}, but there are none here", *alien, options.seeds is not None)


def picture_cells(options: EvaluateOptions) -> list[Cell]:
    """Every combination of what is given."""
    alien_options(options)
    collections = [(short_name(name), held_out_pictures(name)) for name in options.data]
    boards = [parse_grid(text) for text in options.grid] or [Board(6, 6)]
    return [
        PictureCell(name, pictures, board, share, pixels, options.size or SIDE)
        for (name, pictures), board, share, pixels in product(
            collections, boards, options.missing or (0.0,), options.erode or (0,)
        )
    ]


def object_cells(
    options: EvaluateOptions, missing: Sequence[float] = (), pieces: tuple[int, int] = PIECES
) -> list[Cell]:
    """Every combination of what is given; collections are named by folder, subset and split."""
    refuse("--grid and --erode are for pictures; leave them out here", options.grid, options.erode)
    told = f"--pieces takes the least and the most pieces of a broken object, not {len(options.pieces)} numbers"
    refuse(told, len(options.pieces) not in (0, 2))
    pieces = (options.pieces[0], options.pieces[-1]) if options.pieces else pieces
    shares = missing or options.missing or (0.0,)
    anchors, cells = tuple(dict.fromkeys(options.anchor)) or ("none",), list[Cell]()
    for text in options.data:
        count, folder, fractures = made_solids(text), Path(text), list[Broken]()
        if count is not None:
            fractures += break_solids(count, 1, pieces, HELD_OUT)
            name = "solids"
        else:
            fractures += find_fractures(folder, options.split, subset=options.subset, pieces=pieces)
            name = f"{folder.resolve().name}/{options.subset}/{options.split}"
        clouds = [*((points, 0) for points in options.points), *((0, each) for each in options.points_each)]
        damages = product(clouds or [(0, 0)], options.wear or (0.0,), options.noise or (0.0,), shares)
        for (points, each), wear, noise, share in damages:
            cells.append(ObjectCell(name, fractures, share, noise, points, anchors, wear, each))
    return cells


def outline_cells(options: EvaluateOptions) -> list[Cell]:
    """Puzzles as they were recorded, or pictures cut into every number of pieces; every share of them missing."""
    alien = (options.grid, options.anchor, options.noise, options.points, options.points_each, options.wear)
    refuse("--grid is for squares, --anchor, --noise, --points, --points-each and --wear for broken objects", *alien)
    cells = list[Cell]()
    for name, share in product(options.data, options.missing or (0.0,)):
        if options.shape == "squares":
            told = "--pieces, --erode and --size are for pictures that are to be cut; these are pieces already"
            refuse(told, options.pieces, options.erode, options.size)
            recorded = Recorded(tuple(find_recorded(Path(name))))
            cells.append(OutlineCell(short_name(name), recorded, share))
            continue
        pictures = tuple(held_out_pictures(name))
        usual = (USUAL_EROSION.get(options.shape, 0),)
        for pieces, lost in product(options.pieces or (SHAPED_PIECES,), options.erode or usual):
            made = CutFromPictures(pictures, options.shape, pieces, lost, options.size or 0)
            cells.append(OutlineCell(short_name(name), made, share))
    return cells


def made_solids(text: str) -> int | None:
    """How many solids are to be made and broken, if `solids=N` is asked for instead of a folder."""
    word, equals, count = text.partition("=")
    if word != "solids" or not equals:
        return None
    number = int(count) if count.isdecimal() and len(count) <= 18 else 0
    told = f"{text}: '{count}' is no number of solids up to {LIMITS.cases:,}; write solids=40"
    refuse(told, not 0 < number <= LIMITS.cases)
    return number


CELLS: dict[str, Callable[[EvaluateOptions], list[Cell]]] = {
    "squares": picture_cells,
    "fragments": object_cells,
    "outlines": outline_cells,
}


@dataclass(frozen=True)
class NamedSolver:
    """A solver under the name of its row."""

    name: str
    solver: Solver

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """The solver's own steps."""
        return self.solver.steps(puzzle, generator)


def choose_models(options: EvaluateOptions, kind: str, names: Sequence[str]) -> dict[str, str]:
    """The solvers with these names and the rows with models of their own, each with its model."""
    usual, given = options.model or KINDS[kind]().default_model, parse_rows(options.rows)
    return {name: given.get(name, usual) for name in dict.fromkeys([*names, *given])}


def parse_rows(texts: Sequence[str]) -> dict[str, str]:
    """The models of rows told as NAME=MODEL."""
    models: dict[str, str] = {}
    for text in texts:
        name, equals, model = text.partition("=")
        if not (name and equals and model):
            raise InputError(f"{text}: a row is told as NAME=FOLDER, such as dgl=runs/dgl")
        if name in models:
            raise InputError(f"{text}: there are two rows '{name}'; give each a name of its own")
        models[name] = model
    return models


def make_row(kind: str, name: str, model: str, options: EvaluateOptions) -> Solver:
    """The solver of a row; a row with a model of its own and no solver of that name is solved by diffusion."""
    own = name in parse_rows(options.rows) and name not in KINDS[kind]().solvers
    asked = SolverOptions(model, options.samples, options.steps, options.budget)
    return NamedSolver(name, make_solver(kind, DIFFUSION if own else name, asked))


def measure(sweep: Sweep, rows: Path | None, album: Album) -> list[Row]:
    """Run a sweep; the bar is on the error stream, if that is a terminal. The album gets every case.

    The file `rows` is written anew with each row, so that a run which is broken off keeps what it has measured.
    """
    results: list[Row] = []
    columns = TextColumn(sweep.draws[0].cell.LOOK.things), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sweep.total)

        def on_solved(solved: Solved) -> None:
            progress.advance(task)
            album.add(solved)

        for result in run_sweep(sweep, on_solved):
            results.append(result)
            if rows is not None:
                write_rows(results, rows)
    return results


def check_places(options: EvaluateOptions, *paths: Path | None) -> None:
    """Refuse files that can't or must not be written, before hours are spent on what they are to hold."""
    for path in filter(None, paths):
        check_file(path, is_our_output, options.overwrite)
