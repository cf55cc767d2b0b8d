"""`diffassemble evaluate --table NAME`: what a table is measured on, its rows, and ours beside the quoted figures."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.resources import files
from itertools import product
from pathlib import Path

from rich.table import Table

from diffassemble.cli.progress import show
from diffassemble.cli.sweep import (
    SIDE,
    alien_options,
    check_places,
    choose_models,
    evaluate_cells,
    object_cells,
    parse_rows,
)
from diffassemble.core import Board, InputError
from diffassemble.evaluation.report import make_table
from diffassemble.evaluation.rows import Row
from diffassemble.evaluation.squares import PictureCell
from diffassemble.evaluation.sweep import Cell, refuse
from diffassemble.io.atomic import write_file
from diffassemble.io.documents import parse_grid
from diffassemble.kinds import KINDS
from diffassemble.kinds.squares import BORDER_SOLVERS, COMPARED_SOLVERS
from diffassemble.network.pretrained import bundled_models
from diffassemble.squares.pictures import held_out_pictures, short_name
from diffassemble_research import quoted
from diffassemble_research.evaluate import PaperOptions
from diffassemble_research.figures import table_figure
from diffassemble_research.quoted import ABSOLUTE, CHANCE, FACES, FREE, PAINTINGS, Comparison, Line, PaperTable

# What the pictures of a table's columns may be called; the two on the right stand for the test pictures of the paper.
PICTURES = {"faces": FACES, "paintings": PAINTINGS, "celeba-hq": FACES, "wikiart": PAINTINGS}
# Pictures that scikit-image brings with it, for times without data; their seconds are averaged for each size.
SAMPLES = ("astronaut.png", "chelsea.png", "coffee.png")
# Tables that are no sweep, with the functions that measure them.
_OTHERS = {"pairs": "pairs", "memory": "footprints", "pruning": "pruning"}
TABLES = (*quoted.TABLES, *_OTHERS)


def evaluate_table(options: PaperOptions) -> None:
    """Measure, print, write and draw a table."""
    name = str(options.table)
    if name in _OTHERS:
        none = f"--report shows answers of solvers, of which table {name} has none; leave it out"
        refuse(none, options.report is not None)
        getattr(import_module(f"diffassemble_research.{_OTHERS[name]}"), f"evaluate_{name}")(options)
        return
    table = quoted.TABLES[name]
    cells = picture_cells(options, table) if table.kind == "squares" else fracture_cells(options, table)
    limit = len(SAMPLES) if table.figures == "seconds" and options.puzzles is None else None
    rows, figure = table_outputs(options, name)
    models = table_models(options, table)
    results = evaluate_cells(options, table.kind, cells, models, json=rows, limit=limit, warm=True)
    comparisons = compare(table, results, len(cells))
    for comparison in comparisons:
        show(comparison_table(comparison, explained=comparison is comparisons[-1]))
    write_file(figure, table_figure(table, comparisons))
    print(f"drew {figure}")


def picture_cells(options: PaperOptions, table: PaperTable) -> Sequence[Cell]:
    """Pictures cut for the columns of a table, which fixes what is missing."""
    fixed = f"table {options.table} determines what is missing or eroded; leave --missing and --erode out"
    refuse(fixed, options.missing, options.erode)
    alien_options(options)
    return table_cells(table, options, [parse_grid(text) for text in options.grid])


def fracture_cells(options: PaperOptions, table: PaperTable) -> Sequence[Cell]:
    """Broken objects with the shares of missing pieces of a table."""
    fixed = f"table {options.table} determines what is missing; leave --missing, --noise, --wear and --points out"
    refuse(fixed, options.missing, options.noise, options.wear, options.points, options.points_each)
    refuse(f"there are no broken objects for table {options.table}; pass --data DIR", not options.data)
    return object_cells(options, table.missing, table.pieces)


def table_models(options: PaperOptions, table: PaperTable) -> dict[str, str]:
    """The rows that can be measured, with their models; prints which can't for want of weights.

    Solvers that are asked for take the place of the table's own rows and are never left out. Rows with models of their
    own are added. All others share a model, by default the bundled one.
    """
    given, usual = parse_rows(options.rows), KINDS[table.kind]().default_model
    shared = options.model or (usual if usual in bundled_models() else None)
    named = dict.fromkeys([*(options.solver or table.methods or COMPARED_SOLVERS), *given])
    free = {*options.solver, *given, *CHANCE, *BORDER_SOLVERS, *(KINDS[table.kind]().solvers if shared else ())}
    for name in (name for name in named if name not in free):
        print(f"{name} is left out, for want of weights; pass --rows {name}=FOLDER")
    return choose_models(options, table.kind, [name for name in named if name in free])


def table_cells(table: PaperTable, options: PaperOptions, boards: Sequence[Board]) -> list[Cell]:
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


def compare(table: PaperTable, results: Sequence[Row], cells: int) -> list[Comparison]:
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


def table_outputs(options: PaperOptions, table: str) -> tuple[Path, Path]:
    """Where a table's rows and its figure go: to files of its name, if no others are asked for."""
    rows, figure = options.json or Path(f"table-{table}.json"), options.figure or Path(f"table-{table}.png")
    check_places(options, rows, figure)
    return rows, figure


def comparison_table(comparison: Comparison, *, explained: bool = True) -> Table:
    """Methods down; columns across, ours and the quoted figures side by side; the best of each column is bold.

    Fits 80 columns with four grids. `explained`: the caption describes the figures.
    """
    scored = any(line.score in (ABSOLUTE, FREE) for line in comparison.lines)
    headings = ["method", *(["score"] if scored else [])]
    for number, column in enumerate(comparison.columns):
        shown = number < len(comparison.columns) - comparison.unquoted
        headings += [f"{column}\n{source}" for source in ("ours", comparison.source)[: 1 + shown]]
    lines = [[line.method, *([line.score] if scored else []), *_beside(line, comparison)] for line in comparison.lines]
    caption = comparison.note if explained else ""
    return make_table(headings, lines, caption=caption, words=1 + scored, title=comparison.title)


def _beside(line: Line, comparison: Comparison) -> list[str]:
    """Ours and the quoted figure for every column; ours rival each other under the same score."""
    cells = []
    for column, (ours, theirs) in enumerate(zip(line.ours, line.quoted, strict=True)):
        rivals = [other.ours[column] for other in comparison.lines if other.score == line.score]
        others = [other.quoted[column] for other in comparison.lines]
        spread = f" ±{high:.1f}" if comparison.best is None and line.reach and (high := line.reach[column][1]) else ""
        cells.append(_figure(ours, rivals, comparison, 0) + spread)
        if column < len(comparison.columns) - comparison.unquoted:
            cells.append(_figure(theirs, others, comparison, 1))
    return cells


def _figure(value: float | None, rivals: Sequence[float | None], comparison: Comparison, source: int) -> str:
    if value is None:
        return ""
    text = f"{value:{comparison.formats[source]}}"
    known = [rival for rival in rivals if rival is not None]
    return f"[bold]{text}[/bold]" if comparison.best is not None and value == comparison.best(known) else text
