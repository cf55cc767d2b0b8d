"""`diffassemble evaluate`: solvers on pictures, flat pieces or broken objects, and the files that remain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from math import inf
from pathlib import Path

import torch

from diffassemble.assembly.kind import SolverOptions
from diffassemble.cli.evaluate import EvaluateOptions
from diffassemble.cli.progress import show
from diffassemble.core import Board, InputError, Puzzle, Solver, Step
from diffassemble.core.limits import LIMITS
from diffassemble.evaluation import report
from diffassemble.evaluation.cluster import on_cluster
from diffassemble.evaluation.fragments import Broken, ObjectCell
from diffassemble.evaluation.outlines import CutFromPictures, OutlineCell, Recorded, find_recorded
from diffassemble.evaluation.rows import Row
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, Draws, Journal, Solved, Sweep, refuse, run_sweep, warm_up
from diffassemble.fragments.datasets import HELD_OUT, break_solids, find_fractures, holds_fractures
from diffassemble.io.atomic import check_file, write_file
from diffassemble.io.documents import parse_grid
from diffassemble.kinds import KINDS, make_solver, progress_bar
from diffassemble.outlines.cut import USUAL_EROSION
from diffassemble.squares.pictures import held_out_pictures, short_name

# Pixels of a square piece's side, without --size.
SIDE = 32
# Numbers of pieces that the benchmark of broken objects is about, and of those that pictures are cut into by --shape.
PIECES, SHAPED_PIECES = (2, 20), 100
# The solver of rows that have a model and no solver's name.
DIFFUSION = "diffusion"
SETTINGS = ("samples", "steps", "budget")


def evaluate_solvers(options: EvaluateOptions) -> None:
    """Measure, print and write what is asked for."""
    kind = kind_of_data(options.data, options.shape)
    refuse("there is nothing to evaluate on; pass --data DIR", not options.data)
    cells = {"squares": picture_cells, "fragments": object_cells, "outlines": outline_cells}[kind](options)
    usual = KINDS[kind]().default_solver if kind == "outlines" else DIFFUSION
    names = options.solver or (() if options.rows else (usual,))
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
    """Measure solvers, given with their models, on cells; print the tables, and write report and, row by row, `json`.

    `limit` is that of items per cell if the options have none; `warm` solvers answer a small case beforehand.
    """
    elsewhere = options.scores is not None or options.ray is not None
    refuse("--report shows answers of this run and process; leave --scores and --ray out", options.report and elsewhere)
    check_places(options, json, options.report)
    solvers = [make_row(kind, name, model, options) for name, model in models.items()]
    asked = {name: getattr(options, name) for name in SETTINGS}
    journal = None
    if options.scores is not None:
        journal = Journal(options.scores, {name: {"model": model, **asked} for name, model in models.items()})
    draws = [Draws(cell, options.limit or limit, options.puzzles, options.seed, options.seeds) for cell in cells]
    album, rows, look = report.Album(), list[Row](), cells[0].LAYOUT
    with nullcontext() if options.ray is None else on_cluster(options.ray) as scoring:
        sweep = Sweep(solvers, draws, scoring, journal)
        if warm:
            warm_up(sweep)
        with progress_bar(f"{sweep.total} {look.things}") as progress:
            done = iter(range(1, sweep.total + 1))

            def on_solved(solved: Solved) -> None:
                progress(next(done) / sweep.total)
                album.add(solved)

            for row in run_sweep(sweep, on_solved):
                rows.append(row)
                if json is not None:
                    report.write_rows(rows, json)
    show(report.results_table(rows, look))
    if any(row.parts for row in rows):
        show(report.parts_table(rows))
    if json is not None:
        print(f"wrote {len(rows)} rows to {json}")
    if options.report is not None:
        settings = [("models", ", ".join(dict.fromkeys(models.values())))]
        asked |= {name: getattr(options, name) for name in ("seed", "size", "split")}
        settings += [(name, "default" if value in (None, inf) else str(value)) for name, value in asked.items()]
        write_file(options.report, report.measurement_page(rows, look, album, settings).encode())
        print(f"wrote {options.report}")
    return rows


def kind_of_data(data: Sequence[str], shape: str = "squares") -> str:
    """The kind of pieces in the folders, or that their pictures are to be cut into; all folders have one kind."""
    flat = [bool(find_recorded(Path(name))) for name in data]
    cut = shape != "squares"
    refuse("--shape is for pictures that are to be cut; these are pieces already", any(flat) and all(flat) and cut)
    broken = [not (cut or any(flat)) and (made_solids(name) or holds_fractures(Path(name))) for name in data]
    for found, things in ((flat, "puzzles of flat pieces"), (broken, "fractures")):
        if any(found) and not all(found):
            raise InputError(f"{data[found.index(False)]} holds no {things}, but others do; evaluate one by one")
    return "outlines" if any(flat) or cut else "fragments" if any(broken) else "squares"


def alien_options(options: EvaluateOptions) -> None:
    """Refuse options of broken objects where pictures are cut."""
    alien = (options.pieces, options.anchor, options.noise, options.points, options.points_each, options.wear)
    names = "--pieces, --anchor, --noise, --points, --points-each, --wear and --seeds are for broken objects"
    refuse(f"{names}, but there are none here", *alien, options.seeds is not None)


def picture_cells(options: EvaluateOptions) -> list[Cell]:
    """Every combination of collections, grids, missing shares and erosions."""
    alien_options(options)
    collections = [(short_name(name), held_out_pictures(name)) for name in options.data]
    boards = [parse_grid(text) for text in options.grid] or [Board(6, 6)]
    combined = product(collections, boards, options.missing or (0.0,), options.erode or (0,))
    return [PictureCell(*named, board, share, lost, options.size or SIDE) for named, board, share, lost in combined]


def object_cells(
    options: EvaluateOptions, missing: Sequence[float] = (), pieces: tuple[int, int] = PIECES
) -> list[Cell]:
    """Every combination of objects and damages; collections are named by folder, subset and split."""
    refuse("--grid and --erode are for pictures; leave them out here", options.grid, options.erode)
    wrong = f"--pieces takes the least and the most pieces of a broken object, not {len(options.pieces)} numbers"
    refuse(wrong, len(options.pieces) not in (0, 2))
    pieces = (options.pieces[0], options.pieces[-1]) if options.pieces else pieces
    shares = missing or options.missing or (0.0,)
    anchors, cells = tuple(dict.fromkeys(options.anchor)) or ("none",), list[Cell]()
    fractures: Sequence[Broken]
    clouds = [*((points, 0) for points in options.points), *((0, each) for each in options.points_each)]
    for text in options.data:
        if count := made_solids(text):
            name, fractures = "solids", break_solids(count, 1, pieces, HELD_OUT)
        else:
            name = f"{Path(text).resolve().name}/{options.subset}/{options.split}"
            fractures = find_fractures(Path(text), options.split, subset=options.subset, pieces=pieces)
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
            cut = "--pieces, --erode and --size are for pictures that are to be cut; these are pieces already"
            refuse(cut, options.pieces, options.erode, options.size)
            cells.append(OutlineCell(short_name(name), Recorded(tuple(find_recorded(Path(name)))), share))
            continue
        pictures = tuple(held_out_pictures(name))
        erosions = options.erode or (USUAL_EROSION.get(options.shape, 0),)
        for pieces, lost in product(options.pieces or (SHAPED_PIECES,), erosions):
            made = CutFromPictures(pictures, options.shape, pieces, lost, options.size or 0)
            cells.append(OutlineCell(short_name(name), made, share))
    return cells


def made_solids(text: str) -> int:
    """How many solids are to be made and broken, if `solids=N` is asked for; 0 for a folder."""
    word, equals, count = text.partition("=")
    if word != "solids" or not equals:
        return 0
    number = int(count) if count.isdecimal() and len(count) <= 18 else 0
    wrong = f"{text}: '{count}' is no number of solids up to {LIMITS.cases:,}; write solids=40"
    refuse(wrong, not 0 < number <= LIMITS.cases)
    return number


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
    """The models of rows given as NAME=MODEL."""
    models: dict[str, str] = {}
    for text in texts:
        name, equals, model = text.partition("=")
        if not (name and equals and model):
            raise InputError(f"{text}: a row is written as NAME=FOLDER, such as dgl=runs/dgl")
        if name in models:
            raise InputError(f"{text}: there are two rows '{name}'; give each a name of its own")
        models[name] = model
    return models


def make_row(kind: str, name: str, model: str, options: EvaluateOptions) -> Solver:
    """The solver of a row; a row with a model of its own and no solver's name is solved by diffusion."""
    own = name in parse_rows(options.rows) and name not in KINDS[kind]().solvers
    asked = SolverOptions(model, options.samples, options.steps, options.budget)
    return NamedSolver(name, make_solver(kind, DIFFUSION if own else name, asked))


def check_places(options: EvaluateOptions, *paths: Path | None) -> None:
    """Refuse files that cannot or must not be written, before hours are spent on their content."""
    for path in filter(None, paths):
        check_file(path, report.is_our_output, options.overwrite)
