"""`diffassemble evaluate`: solvers on pictures or broken objects, and what is left behind of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from diffassemble.assembly.kind import SolverOptions
from diffassemble.cli.evaluate import SIDE, EvaluateOptions
from diffassemble.cli.progress import show
from diffassemble.core import Board, InputError, Puzzle, Solver, Step
from diffassemble.core.limits import LIMITS
from diffassemble.evaluation import quoted
from diffassemble.evaluation.cluster import on_cluster
from diffassemble.evaluation.figures import table_figure
from diffassemble.evaluation.fragments import Broken, ObjectCell
from diffassemble.evaluation.outline_data import find_recorded
from diffassemble.evaluation.outlines import CutFromPictures, OutlineCell, Recorded
from diffassemble.evaluation.quoted import CHANCE, FACES, PAINTINGS, TABLES, Comparison, PaperTable
from diffassemble.evaluation.report import Album, measurement_page
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, Draws, Journal, Measured, Solved, Sweep, refuse, run_sweep, warm_up
from diffassemble.evaluation.tables import comparison_table, groups_table, is_our_output, results_table, write_rows
from diffassemble.fragments.datasets import HELD_OUT, break_solids, find_fractures, holds_fractures
from diffassemble.io.atomic import check_file, write_file
from diffassemble.io.documents import parse_grid
from diffassemble.kinds import KINDS, make_solver
from diffassemble.kinds.squares import BORDER_SOLVERS, COMPARED_SOLVERS
from diffassemble.network.pretrained import bundled_models
from diffassemble.outlines.cut import USUAL_EROSION
from diffassemble.squares.pictures import held_out_pictures, short_name

# Numbers of pieces that the benchmark of broken objects is about.
PIECES = (2, 20)
# Pieces that pictures are cut into with --shape.
SHAPED_PIECES = 100
# The solver that models without a solver's name are for.
DIFFUSION = "diffusion"
SETTINGS = ("samples", "steps", "budget")
# What the pictures of a table's columns may be called; the two on the right stand for the test pictures of the paper.
PICTURES = {"faces": FACES, "paintings": PAINTINGS, "celeba-hq": FACES, "wikiart": PAINTINGS}
# Pictures that scikit-image brings with it, for times without data; their seconds are averaged for each size.
SAMPLES = ("astronaut.png", "chelsea.png", "coffee.png")
# Tables that are no sweep: memory and time by pieces, and networks trained on sparser graphs.
SCALING_TABLES = ("memory", "pruning")


def evaluate_solvers(options: EvaluateOptions) -> None:
    """Measure, print and write what is asked for."""
    name = options.table
    if name is not None and name not in TABLES:
        raise InputError(f"no table '{name}'; use one of: {', '.join([*TABLES, *SCALING_TABLES])}")
    table = None if name is None else TABLES[name]
    kind = kind_of_data(options.data, options.shape) if table is None else table.kind
    cells, limit = CELLS[kind](options, table), options.limit
    if table is not None and table.figures == "seconds" and limit is None and options.puzzles is None:
        limit = len(SAMPLES)
    elsewhere = options.scores is not None or options.ray is not None
    refuse("--report shows answers of this run and process; leave --scores and --ray out", options.report and elsewhere)
    check_places(options, options.json, options.report)
    json, figure = (options.json, None) if name is None else table_outputs(options, name)
    models = choose_models(options, kind, table)
    solvers = [make_row(kind, name, model, options) for name, model in models.items()]
    asked = {name: getattr(options, name) for name in SETTINGS}
    settings = {name: {"model": model, **asked} for name, model in models.items()}
    journal = None if options.scores is None else Journal(options.scores, settings, cells[0].read_score)
    album = Album()
    with nullcontext() if options.ray is None else on_cluster(options.ray) as scoring:
        draws = [Draws(cell, limit, options.puzzles, options.seed, options.seeds) for cell in cells]
        sweep = Sweep(solvers, draws, scoring, journal)
        if table is not None:
            warm_up(sweep)
        results = measure(sweep, json, album)
    show(results_table(results))
    rows = [result.row for result in results]
    if any(row.groups() for row in rows):
        show(groups_table(rows))
    if table is not None and figure is not None:
        comparisons = compare(table, results, len(cells))
        for comparison in comparisons:
            show(comparison_table(comparison, explained=comparison is comparisons[-1]))
        write_file(figure, table_figure(table, comparisons))
        print(f"drew {figure}")
    if json is not None:
        print(f"wrote {len(rows)} rows to {json}")
    if options.report is not None:
        told = [("models", ", ".join(dict.fromkeys(models.values())))]
        told += [(name, str(getattr(options, name))) for name in (*SETTINGS, "seed", "size", "split")]
        write_file(options.report, measurement_page(results, cells[0].FIGURES, album, told).encode())
        print(f"wrote {options.report}")


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


def _squares(options: EvaluateOptions, table: PaperTable | None) -> list[Cell]:
    """Every combination of what is given, or of the table's columns."""
    alien = (options.pieces, options.anchor, options.noise, options.points, options.points_each, options.wear)
    told = "--pieces, --anchor, --noise, --points, --points-each, --wear and --seeds are for broken objects"
    refuse(f"{told}, but there are none here", *alien, options.seeds is not None)
    boards = [parse_grid(text) for text in options.grid]
    if table is not None:
        told = f"table {options.table} says itself what is missing or eroded; leave --missing and --erode out"
        refuse(told, options.missing, options.erode)
        return table_cells(table, options, boards)
    refuse("there is nothing to evaluate on; pass --data DIR", not options.data)
    collections = [(short_name(name), held_out_pictures(name)) for name in options.data]
    return [
        PictureCell(name, pictures, board, share, pixels, options.size or SIDE)
        for (name, pictures), board, share, pixels in product(
            collections, boards or [Board(6, 6)], options.missing or (0.0,), options.erode or (0,)
        )
    ]


def table_cells(table: PaperTable, options: EvaluateOptions, boards: Sequence[Board]) -> list[Cell]:
    """Pictures for every column of a table, its groups one after the other; without `boards` the grids are its own."""
    boards = boards or [parse_grid(column) for column in table.columns]
    if table.figures == "seconds":
        named = timed_pictures(options.data, str(options.table))
        return [PictureCell(*named, board, size=options.size or SIDE) for board in boards]
    sources: dict[tuple[str, int], str] = {}
    for text in options.data:
        group, least, collection = _source(text, options.table)
        if (group, least) in sources:
            raise InputError(f"two folders of {group} for the same grids; write {group}:8=DIR for larger ones")
        sources[group, least] = collection
    cells: list[Cell] = []
    for group, board in product(map(str, table.quoted), boards):
        fitting = [least for shown, least in sources if shown == group and least**2 <= board.cells]
        if not fitting:
            grid = f"{board.rows}x{board.cols}"
            raise InputError(f"table {options.table} has no pictures for {group} {grid}; pass --data {group}=DIR")
        name = sources[group, max(fitting)]
        cells.append(
            PictureCell(short_name(name), held_out_pictures(name), board, table.missing[0], size=options.size or SIDE)
        )
    return cells


def _source(text: str, table: str | None) -> tuple[str, int, str]:
    """`faces=DIR`, or `faces:8=DIR` for grids of 8x8 and more: what it shows, the least grid, and the collection."""
    column, equals, folder = text.partition("=")
    name, colon, least = column.partition(":")
    if not equals or name not in PICTURES:
        raise InputError(f"{text}: table {table} must know what the pictures are; write faces=DIR or paintings=DIR")
    if colon and not (least.isdecimal() and len(least) < 4 and int(least) > 0):
        raise InputError(f"{text}: '{least}' is not the size of a grid; write {name}:8=DIR for grids of 8x8 and more")
    return PICTURES[name], int(least or 0), folder if name == PICTURES[name] else f"{name}={folder}"


def timed_pictures(data: Sequence[str], table: str) -> tuple[str, Sequence[Path]]:
    """The one folder that is given, or the samples."""
    several = f"table {table} takes one folder, not {len(data)}; pass --data DIR, or nothing for sample pictures"
    refuse(several, len(data) > 1)
    if data:
        return short_name(data[0]), held_out_pictures(data[0])
    return "samples", [Path(str(files("skimage.data") / name)) for name in SAMPLES]


def object_cells(options: EvaluateOptions, table: PaperTable | None = None) -> list[ObjectCell]:
    """Every combination of what is given; collections are named by folder, subset and split."""
    refuse("--grid and --erode are for pictures; leave them out here", options.grid, options.erode)
    if table is not None:
        told = f"table {options.table} says itself what is missing; leave --missing, --noise, --wear and --points out"
        refuse(told, options.missing, options.noise, options.wear, options.points, options.points_each)
        refuse(f"there are no broken objects for table {options.table}; pass --data DIR", not options.data)
    missing, pieces = (options.missing or (0.0,), PIECES) if table is None else (table.missing, table.pieces)
    told = f"--pieces takes the least and the most pieces of a broken object, not {len(options.pieces)} numbers"
    refuse(told, len(options.pieces) not in (0, 2))
    pieces = (options.pieces[0], options.pieces[-1]) if options.pieces else pieces
    anchors, cells = tuple(dict.fromkeys(options.anchor)) or ("none",), list[ObjectCell]()
    for text in options.data:
        count, folder, fractures = made_solids(text), Path(text), list[Broken]()
        if count is not None:
            fractures += break_solids(count, 1, pieces, HELD_OUT)
            name = "solids"
        else:
            fractures += find_fractures(folder, options.split, subset=options.subset, pieces=pieces)
            name = f"{folder.resolve().name}/{options.subset}/{options.split}"
        clouds = [*((points, 0) for points in options.points), *((0, each) for each in options.points_each)]
        damages = product(clouds or [(0, 0)], options.wear or (0.0,), options.noise or (0.0,), missing)
        for (points, each), wear, noise, share in damages:
            cells.append(ObjectCell(name, fractures, share, noise, points, anchors, wear, each))
    return cells


def outline_cells(options: EvaluateOptions, table: PaperTable | None = None) -> list[OutlineCell]:
    """Puzzles as they were recorded, or pictures cut into every number of pieces; every share of them missing."""
    alien = (options.grid, options.anchor, options.noise, options.points, options.points_each, options.wear)
    refuse("--grid is for squares, --anchor, --noise, --points, --points-each and --wear for broken objects", *alien)
    refuse("there is nothing to evaluate on; pass --data DIR", not options.data)
    cells = list[OutlineCell]()
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


CELLS: dict[str, Callable[[EvaluateOptions, PaperTable | None], Sequence[Cell]]] = {
    "squares": _squares,
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


def choose_models(options: EvaluateOptions, kind: str, table: PaperTable | None) -> dict[str, str]:
    """The rows that can be measured, with their models; tells which can't, since nobody told their weights.

    Solvers that are asked for take the place of the table's own rows and are never left out. Rows with models of their
    own are added. All others share a model, which without a wish is the bundled one.
    """
    given = parse_rows(options.rows)
    alone = KINDS[kind]().default_solver if kind == "outlines" else DIFFUSION
    methods = ((alone,) if not given else ()) if table is None else table.methods or COMPARED_SOLVERS
    usual = KINDS[kind]().default_model
    shared = options.model or (usual if usual in bundled_models() else None)
    models: dict[str, str] = {}
    for name in dict.fromkeys([*(options.solver or methods), *given]):
        if name in given:
            models[name] = given[name]
        elif table is None or name in options.solver or name in (*CHANCE, *BORDER_SOLVERS):
            models[name] = options.model or usual
        elif name in KINDS[kind]().solvers and shared is not None:
            models[name] = shared
        else:
            print(f"{name} is left out, for want of weights; pass --rows {name}=FOLDER")
    return models


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


def compare(table: PaperTable, results: Sequence[Measured], cells: int) -> list[Comparison]:
    """The results of all cells, the solvers side by side on each, beside the quoted ones."""
    if table.figures == "errors":
        return quoted.compare_errors(table, results)
    solvers, wide = len(results) // cells, cells // len(table.quoted)
    by_solver = [results[number::solvers] for number in range(solvers)]
    return [
        quoted.compare_grids(
            table, str(group), [column[number * wide : (number + 1) * wide] for column in by_solver], BORDER_SOLVERS
        )
        for number, group in enumerate(table.quoted)
    ]


def measure(sweep: Sweep, rows: Path | None, album: Album) -> list[Measured]:
    """Run a sweep; the bar is on the error stream, if that is a terminal. The album gets every case.

    The file `rows` is written anew with each row, so that a run which is broken off keeps what it has measured.
    """
    results: list[Measured] = []
    columns = TextColumn(sweep.draws[0].cell.THINGS), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=sweep.total)

        def on_solved(solved: Solved) -> None:
            progress.advance(task)
            album.add(solved)

        for result in run_sweep(sweep, on_solved):
            results.append(result)
            if rows is not None:
                write_rows([measured.row for measured in results], rows)
    return results


def table_outputs(options: EvaluateOptions, table: str) -> tuple[Path, Path]:
    """Where a table's rows and its figure go: to files of its name, if no others are asked for."""
    rows, figure = options.json or Path(f"table-{table}.json"), options.figure or Path(f"table-{table}.png")
    check_places(options, rows, figure)
    return rows, figure


def check_places(options: EvaluateOptions, *paths: Path | None) -> None:
    """Refuse files that can't or must not be written, before hours are spent on what they are to hold."""
    for path in filter(None, paths):
        check_file(path, is_our_output, options.overwrite)
