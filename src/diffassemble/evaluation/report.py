"""A page about a measurement: its tables, a plot, and the best and worst answers as pictures."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diffassemble.evaluation.sweep import Interval, Measured, Solved
from diffassemble.io.pictures import MADE_BY, png_bytes
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import embedded, page, section, table, versions

# Told apart by most colour-blind eyes (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")


@dataclass
class Album:
    """The best and the worst answer of every solver, by the rank that its cell gives it."""

    best: dict[str, Solved] = field(default_factory=dict)
    worst: dict[str, Solved] = field(default_factory=dict)

    def add(self, solved: Solved) -> None:
        """A case was solved and scored."""
        name, rank = solved.solver, solved.cell.rank
        if name not in self.best or rank(solved.score) > rank(self.best[name].score):
            self.best[name] = solved
        if name not in self.worst or rank(solved.score) < rank(self.worst[name].score):
            self.worst[name] = solved


def measurement_page(
    results: Sequence[Measured], figures: Mapping[str, str], album: Album, settings: Sequence[tuple[str, str]]
) -> str:
    """A self-contained page; `figures` are the fields of rows that the plot shows, and their labels."""
    rows = [result.row for result in results]
    # The fields that are words or numbers.
    plain = [{name: told for name, told in asdict(row).items() if isinstance(told, str | int | float)} for row in rows]
    groups = [
        {"solver": row.solver, "measured on": row.describe(), "by": kind, "group": name, **means}
        for row in rows
        for (kind, name), means in row.groups().items()
    ]
    parts = [
        section("Results", rows_table(plain) + f"<p>{escape(rows[0].CAPTION)}</p>"),
        section("Compared", embedded(_bars(results, figures), ", ".join(figures.values()))),
        *([section("By kind of object and piece", rows_table(groups))] if groups else []),
        *(
            section(f"{word} answer of {name}", _answer(found[name]))
            for name in album.best
            for word, found in (("Best", album.best), ("Worst", album.worst))
        ),
        section("Settings", table([*settings, *versions()])),
    ]
    return page("How well solvers did", parts)


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
    return f"<p>{escape(solved.cell.words(solved.score))}</p>" + embedded(png_bytes(shown), "pieces and answer")


def _bars(results: Sequence[Measured], figures: Mapping[str, str]) -> bytes:
    """A panel for each figure, a bar for each row with its interval or deviation."""
    figure = Figure(figsize=(5 + 2 * len(figures), 1.2 + 0.5 * len(results)), layout="constrained")
    panels = figure.subplots(1, len(figures), sharey=True, squeeze=False)[0]
    rows = [result.row for result in results]
    solvers = sorted({row.solver for row in rows})
    colours = [COLOURS[solvers.index(row.solver) % len(COLOURS)] for row in rows]
    for panel, (name, label) in zip(panels, figures.items(), strict=True):
        values, reach = [getattr(row, name) for row in rows], [result.reach(name) for result in results]
        names = [f"{row.solver}\n{row.describe()}" for row in rows]
        draw_bars(panel, names, values, label, colours, reach)
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
