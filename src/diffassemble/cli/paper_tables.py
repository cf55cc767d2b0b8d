"""The tables of the paper as commands: which pictures stand in which column, and what is shown at the end."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from diffassemble.core import Board, InputError
from diffassemble.evaluation.comparison import Comparison, compare_accuracy, compare_seconds
from diffassemble.evaluation.figures import accuracy_figure, time_figure
from diffassemble.evaluation.fragment_quoted import FRAGMENT_TABLES
from diffassemble.evaluation.quoted import FACES, PAINTINGS, TABLES, PaperTable
from diffassemble.evaluation.sweep import Cell, Measured
from diffassemble.squares.pictures import held_out_pictures, short_name

# What the pictures of a column may be called; the two on the right stand for the test pictures of the paper.
KINDS = {"faces": FACES, "paintings": PAINTINGS, "celeba-hq": FACES, "wikiart": PAINTINGS}
# Pictures that scikit-image brings with it, for times without data.
SAMPLES = ("astronaut.png", "chelsea.png", "coffee.png")
# Tables with a way of their own: memory and time by pieces, and networks taught on sparser graphs.
SCALING_TABLES = ("memory", "pruning")
# Pictures for each size whose seconds are averaged.
TIMED_PICTURES = 3


@dataclass(frozen=True)
class Source:
    """Pictures for one kind's grids with `least` × `least` cells or more."""

    kind: str
    least: int
    name: str
    pictures: Sequence[Path]


@dataclass(frozen=True)
class TablePlan:
    """What is to be measured for a table: `cells` hold the boards of the first kind of pictures, then the next."""

    table: PaperTable
    boards: Sequence[Board]
    cells: list[Cell]

    @property
    def usual_limit(self) -> int | None:
        """Pictures per folder, if no number is asked for."""
        return TIMED_PICTURES if self.table.timed else None

    def compare(self, results: Sequence[Measured], borders_only: Collection[str]) -> list[Comparison]:
        """The results of all cells, the solvers side by side on each, beside the paper's figures."""
        solvers = len(results) // len(self.cells)
        by_solver = [results[number::solvers] for number in range(solvers)]
        if self.table.timed:
            return [compare_seconds(self.table, self.table.title, self.boards, by_solver)]
        wide = len(self.boards)
        return [
            compare_accuracy(
                self.table,
                kind,
                self.boards,
                [column[number * wide : (number + 1) * wide] for column in by_solver],
                borders_only,
            )
            for number, kind in enumerate(self.table.pictures)
        ]

    def draw(self, comparisons: Sequence[Comparison]) -> bytes:
        """The figure, as PNG."""
        if self.table.timed:
            return time_figure(self.table.title, comparisons[0])
        return accuracy_figure(self.table.title, comparisons)


def plan_table(name: str, data: Sequence[str], boards: Sequence[Board]) -> TablePlan:
    """Pictures for every cell of a table; without `boards` the grids are the paper's."""
    if name not in TABLES:
        raise InputError(f"no table '{name}'; use one of: {', '.join([*TABLES, *SCALING_TABLES, *FRAGMENT_TABLES])}")
    table = TABLES[name]
    boards = boards or [Board(grid, grid) for grid in table.grids]
    if table.timed:
        named = timed_pictures(data, name)
        return TablePlan(table, boards, [Cell(*named, board) for board in boards])
    sources = [_source(text, name) for text in data]
    _check_once(sources)
    cells = [_cell(kind, board, sources, name) for kind in table.pictures for board in boards]
    return TablePlan(table, boards, cells)


def _source(text: str, table: str) -> Source:
    """`faces=DIR`, or `faces:8=DIR` for grids of 8x8 and more."""
    column, equals, folder = text.partition("=")
    kind, colon, least = column.partition(":")
    if not equals or kind not in KINDS:
        raise InputError(f"{text}: table {table} must know what the pictures are; write faces=DIR or paintings=DIR")
    if colon and not (least.isdecimal() and int(least) > 0):
        raise InputError(f"{text}: '{least}' is not the size of a grid; write {kind}:8=DIR for grids of 8x8 and more")
    collection = folder if kind in (FACES, PAINTINGS) else f"{kind}={folder}"
    return Source(KINDS[kind], int(least or 0), short_name(collection), held_out_pictures(collection))


def _check_once(sources: Sequence[Source]) -> None:
    seen = set()
    for source in sources:
        if (source.kind, source.least) in seen:
            raise InputError(
                f"two folders of {source.kind} for the same grids; write {source.kind}:8=DIR for larger ones"
            )
        seen.add((source.kind, source.least))


def _cell(kind: str, board: Board, sources: Sequence[Source], table: str) -> Cell:
    """The cell on the pictures that are meant for the largest grids among those that the board reaches."""
    fitting = [source for source in sources if source.kind == kind and source.least**2 <= board.cells]
    if not fitting:
        raise InputError(f"table {table} has no pictures for {kind} {board.rows}x{board.cols}; pass --data {kind}=DIR")
    source = max(fitting, key=lambda source: source.least)
    return Cell(source.name, source.pictures, board, TABLES[table].missing)


def timed_pictures(data: Sequence[str], table: str) -> tuple[str, Sequence[Path]]:
    """The one folder that is given, or the samples."""
    if len(data) > 1:
        raise InputError(
            f"table {table} takes one folder, not {len(data)}; pass --data DIR, or nothing for sample pictures"
        )
    if data:
        return short_name(data[0]), held_out_pictures(data[0])
    return "samples", [Path(str(files("skimage.data") / name)) for name in SAMPLES]
