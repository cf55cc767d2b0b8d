"""Tables, rows as JSON, and a page with a plot and the best and worst answers."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from diffassemble.core import InputError
from diffassemble.evaluation.rows import Interval, Row
from diffassemble.evaluation.sweep import Layout, Solved
from diffassemble.io.atomic import write_file
from diffassemble.io.pictures import MADE_BY, is_our_picture, png_bytes
from diffassemble.io.reading import parse_json
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import embedded, page, section, table, versions

# Distinguishable by most colour-blind eyes (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
# Columns that only our tables have.
_ROW_NAMES = {"peak_mb", "solving_peak_mb", "sure_right"}
_COMMON = (
    ("precis.\n≥ 0.9", "{precision_text}\n{sure_right}/{sure}\n{false_joins} false"),
    ("cost", "{seconds_per_puzzle:.2f} s\n{peak_mb:.0f} MB"),
)
_CAPTION = (
    "Precision: percent of pieces at confidence ≥ 0.9 that are right; false joins: pairs of these in one object whose "
    "relative pose is wrong. Cost: seconds a puzzle; most memory of the process so far."
)
_PARTS = (
    "Percent of pieces at their place, RMSE of Euler angles in degrees below: by pieces that the object broke into, "
    "by the piece's share of the object's area, and by the confidence in it."
)


def make_table(
    headings: Sequence[str], lines: Sequence[Sequence[str]], *, caption: str = "", words: int = 2, title: str = ""
) -> Table:
    """A table that fits narrow terminals; the first `words` columns are text, the others numbers."""
    style: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 0, 0, 1), "pad_edge": False, "show_edge": not title}
    table = Table(title=title or None, title_justify="left", caption=caption, caption_justify="left", **style)
    for number, heading in enumerate(headings):
        # What was measured may take several lines, numbers and names may not.
        folds = heading in ("puzzles", "objects")
        justify, overflow = ("left" if number < words else "right"), ("fold" if folds else "ellipsis")
        table.add_column(heading, justify=justify, no_wrap=not folds, overflow=overflow)  # type: ignore[arg-type]
    for line in lines:
        table.add_row(*line)
    return table


def results_table(rows: Sequence[Row], layout: Layout) -> Table:
    """Three lines per row; fits 80 columns."""
    columns = (*layout.columns, *_COMMON)
    counts = (f"{row.items}\n×{row.seeds}" if row.seeds > 1 else str(row.items) for row in rows)
    lines = [
        [row.solver, row.describe(), count, *(template.format_map(_values(row)) for _, template in columns)]
        for row, count in zip(rows, counts, strict=True)
    ]
    headings = ("solver", layout.things, "count", *(heading for heading, _ in columns))
    return make_table(headings, lines, caption=f"{layout.caption} {_CAPTION}")


def _values(row: Row) -> dict[str, Any]:
    """The fields of a row, with NAME_low, NAME_high and plain_NAME."""
    ends = {f"{name}_{end}": pair[i] for name, pair in row.intervals.items() for i, end in enumerate(("low", "high"))}
    plain = {f"plain_{name}": value for name, value in row.plain.items()}
    precision = "–" if row.precision is None else f"{row.precision:.1f}"
    return {**row.fields(), **ends, **plain, "precision_text": precision}


def parts_table(rows: Sequence[Row]) -> Table:
    """Where solvers are good and where not: by pieces, area and confidence."""
    found = [{(part.by, part.name): part.figures for part in row.parts} for row in rows]
    order = ("pieces", "area", "confidence")
    columns = list(dict.fromkeys(key for by in order for one in found for key in one if key[0] == by))
    lines = []
    for row, parts in zip(rows, found, strict=True):
        means = (parts.get(column) for column in columns)
        texts = ("" if one is None else f"{one['part_accuracy']:.1f}\n{one['rmse_r']:.1f}°" for one in means)
        lines.append([row.solver, row.describe(), *texts])
    return make_table(["solver", "objects", *map("\n".join, columns)], lines, caption=_PARTS)


def is_our_output(content: bytes) -> bool:
    """Whether a file holds what `evaluate` writes: a figure, a page, or the rows of a table."""
    if is_our_picture(content):
        return True
    if content[:9].lower() == b"<!doctype":
        return b'<meta name="generator" content="diffassemble">' in content[:2000]
    try:
        rows = parse_json(content, "", "")
    except InputError:
        return False
    listed = isinstance(rows, list) and bool(rows)
    return listed and all(isinstance(row, dict) and row.keys() & _ROW_NAMES for row in rows)


def write_rows(rows: Sequence[Any], path: Path) -> None:
    """Write rows, of a sweep or other dataclasses, as a JSON list, one row a line, whole or not at all."""
    values = [asdict(row) if not isinstance(row, Row) else row.fields() for row in rows]
    lines = ",\n".join(f"  {json.dumps(value, allow_nan=False)}" for value in values)
    write_file(path, f"[\n{lines}\n]\n".encode())


@dataclass
class Album:
    """The best and the worst answer of every solver, by the rank of its kind."""

    best: dict[str, Solved] = field(default_factory=dict)
    worst: dict[str, Solved] = field(default_factory=dict)

    def add(self, solved: Solved) -> None:
        """Compare a solved case with those seen so far."""
        name = solved.solver
        if name not in self.best or rank(solved) > rank(self.best[name]):
            self.best[name] = solved
        if name not in self.worst or rank(solved) < rank(self.worst[name]):
            self.worst[name] = solved


def rank(solved: Solved) -> tuple[float, ...]:
    """Larger for better answers."""
    names = solved.cell.LAYOUT.rank
    return tuple(-solved.score.figures[one[1:]] if one[0] == "-" else solved.score.figures[one] for one in names)


def measurement_page(rows: Sequence[Row], layout: Layout, album: Album, settings: Sequence[tuple[str, str]]) -> str:
    """A self-contained page with the rows, a plot of the figures that are drawn, and the best and worst answers."""
    plain = [{name: one for name, one in row.fields().items() if isinstance(one, str | int | float)} for row in rows]
    shown = ("part_accuracy", "rmse_r", "rmse_t")
    parts = [
        {"solver": row.solver, "measured on": row.describe(), "by": part.by, "part": part.name}
        | {name: part.figures[name] for name in shown}
        for row in rows
        for part in row.parts
        if part.by != "class"
    ]
    sections = [
        section("Results", rows_table(plain) + f"<p>{escape(f'{layout.caption} {_CAPTION}')}</p>"),
        section("Compared", embedded(_bars(rows, layout.drawn), ", ".join(layout.drawn.values()))),
        *([section("By kind of object and piece", rows_table(parts))] if parts else []),
        *(
            section(f"{word} answer of {name}", _answer(found[name]))
            for name in album.best
            for word, found in (("Best", album.best), ("Worst", album.worst))
        ),
        section("Settings", table([*settings, *versions()])),
    ]
    return page("How well solvers did", sections)


def rows_table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of equal fields as a table."""
    head = "".join(f"<th>{escape(key.replace('_', ' '))}</th>" for key in rows[0])
    texts = [[f"{one:.1f}" if isinstance(one, float) else escape(str(one)) for one in row.values()] for row in rows]
    body = ["<tr>" + "".join(f"<td>{text}</td>" for text in line) + "</tr>" for line in texts]
    return f"<table><tr>{head}</tr>" + "\n".join(body) + "</table>"


def _answer(solved: Solved) -> str:
    assert solved.assembly is not None
    drawing = kind_of(solved.assembly.puzzle).drawing()
    shown = drawing.before_after(drawing.standing(solved.assembly))
    words = [f"{name.replace('_', ' ')} {value:.1f}" for name, value in solved.score.figures.items()]
    words.append(f"{solved.score.seconds:.1f} s")
    return f"<p>{escape(', '.join(words))}</p>" + embedded(png_bytes(shown), "pieces and answer")


def _bars(rows: Sequence[Row], figures: Mapping[str, str]) -> bytes:
    """A panel for each figure, a bar for each row with its interval."""
    figure = Figure(figsize=(5 + 2 * len(figures), 1.2 + 0.5 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(figures), sharey=True, squeeze=False)[0]
    solvers = sorted({row.solver for row in rows})
    colours = [COLOURS[solvers.index(row.solver) % len(COLOURS)] for row in rows]
    for panel, (name, label) in zip(panels, figures.items(), strict=True):
        names = [f"{row.solver}\n{row.describe()}" for row in rows]
        draw_bars(panel, names, [row[name] for row in rows], label, colours, [row.reach(name) for row in rows])
        panel.tick_params(axis="y", labelsize=8)
    return png(figure)


def draw_bars(
    panel: Axes,
    names: Sequence[str],
    values: Sequence[float] | np.ndarray,
    label: str,
    colours: Sequence[str],
    reach: Sequence[Interval],
) -> None:
    """A bar to the right for each name, the first at the top; `reach` is how far below and above it may be."""
    panel.barh(range(len(names)), values, xerr=list(zip(*reach, strict=True)), color=colours)
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xlim(left=0)
    panel.set_xlabel(label)
    lined(panel, "x")


def lined(panel: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Pale lines behind what is drawn."""
    panel.grid(axis=axis, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's content."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, metadata={"Software": MADE_BY})
    return content.getvalue()
