"""Results drawn as PNG: bars for scores, curves for growth; ours are filled, quoted figures are hollow or dashed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from diffassemble.evaluation.quoted import ABSOLUTE, FREE, NOT_OURS, Comparison, Line, PaperTable, Values

# Told apart by most colour-blind eyes (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
# Smaller puzzles tell little about growth: there, what is the same for all of them outweighs the rest.
FITTED_FROM = 400
_PALE = 0.4
_GROUP = 0.84
_DIAMOND: dict[str, Any] = {"marker": "D", "color": "white", "markeredgecolor": "black", "linestyle": "none"}


def table_figure(table: PaperTable, comparisons: Sequence[Comparison], labels: Sequence[str] = ()) -> bytes:
    """The figure of a table of the paper; `labels` tell the errors of objects and their units."""
    if table.figures == "seconds":
        return time_figure(table.title, comparisons[0])
    if table.figures == "accuracy":
        return accuracy_figure(table.title, comparisons)
    return errors_figure(table.title, comparisons, labels)


def accuracy_figure(title: str, comparisons: Sequence[Comparison]) -> bytes:
    """One panel for each kind of pictures and one group of bars for each grid."""
    figure = Figure(figsize=(1.5 + 4.5 * len(comparisons), 4.6), layout="constrained")
    panels = figure.subplots(1, len(comparisons), sharey=True, squeeze=False)[0]
    lines = [line for comparison in comparisons for line in comparison.lines]
    colours = _colours([line.method for line in lines if line.score != NOT_OURS])
    for panel, comparison in zip(panels, comparisons, strict=True):
        _draw_groups(panel, comparison, colours)
    panels[0].set_ylabel("pieces at the right place and turn (%)")
    signs = {
        **{method: Patch(color=colour) for method, colour in colours.items()},
        "ours, absolute": Patch(color="#444444"),
        "ours, orientation free (95 % interval)": Patch(color="#444444", alpha=_PALE),
        "paper, same method (quoted)": Line2D([], [], markersize=4, **_DIAMOND),
        "paper, best method (quoted)": Line2D([], [], color="black", linestyle="--", linewidth=1),
    }
    figure.suptitle(title)
    figure.legend(list(signs.values()), list(signs), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return png(figure)


def _draw_groups(panel: Axes, comparison: Comparison, colours: dict[str, str]) -> None:
    """Pale bars for the best turn of the whole, dark ones within them for the answer as it stands."""
    width, places = _GROUP / max(1, len(colours)), range(len(comparison.columns))
    for number, (method, colour) in enumerate(colours.items()):
        middles = [place + (number + 0.5) * width - _GROUP / 2 for place in places]
        for line in comparison.lines:
            if line.method != method or line.score not in (ABSOLUTE, FREE):
                continue
            free = line.score == FREE
            panel.bar(middles, _numbers(line.ours), 0.9 * width, color=colour, alpha=_PALE if free else 1.0)
            if free:
                panel.vlines(middles, *zip(*line.intervals, strict=True), color="black", linewidth=0.8)
            panel.plot(middles, _numbers(line.quoted), markersize=4, **_DIAMOND)
    for place in places:
        quoted = [figure for line in comparison.lines if (figure := line.quoted[place]) is not None]
        if quoted:
            panel.hlines(max(quoted), place - _GROUP / 2, place + _GROUP / 2, "black", "--", linewidth=1)
    panel.set_xticks(places, comparison.columns)
    panel.set(title=comparison.title, ylim=(0, 102))
    lined(panel, "y")


@dataclass(frozen=True)
class Curve:
    """One line of a figure, with its deviation if it is known; quoted ones are hollow."""

    label: str
    x: Sequence[float] | Sequence[int]
    y: Sequence[float]
    colour: str
    style: str = "o-"
    deviation: Sequence[float] | None = None

    def draw(self, panel: Axes) -> None:
        """Add it to a panel."""
        inside = self.colour if self.style.endswith(("o-", "^-")) else "white"
        look: dict[str, Any] = {"color": self.colour, "label": self.label, "markerfacecolor": inside}
        if self.deviation is None:
            panel.plot(self.x, self.y, self.style, **look)
        else:
            panel.errorbar(self.x, self.y, yerr=self.deviation, fmt=self.style, capsize=3, **look)


def time_figure(title: str, comparison: Comparison) -> bytes:
    """Seconds against pieces, both axes logarithmic."""
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    panel, pieces = figure.subplots(), [int(column) for column in comparison.columns]
    colours = _colours([line.method for line in comparison.lines])
    for line in comparison.lines:
        colour = colours[line.method]
        if line.score != NOT_OURS:
            label = f"{line.method}, ours{_power(pieces, line.ours)}"
            Curve(label, pieces, _numbers(line.ours), colour).draw(panel)
        if any(value is not None for value in line.quoted):
            Curve(f"{line.method}, quoted", pieces, _numbers(line.quoted), colour, "s--").draw(panel)
    logarithmic(panel, pieces)
    panel.set(xlabel="pieces", ylabel="seconds a puzzle")
    panel.yaxis.set_major_formatter("{x:g}")
    figure.suptitle(title)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return png(figure)


def _power(pieces: Sequence[int], seconds: Values) -> str:
    """How ours grows with the pieces, if there are large puzzles enough to tell."""
    known = [(size, cost) for size, cost in zip(pieces, seconds, strict=True) if cost is not None]
    power = exponent(*zip(*known, strict=True)) if known else None
    return "" if power is None else f" (n^{power:.1f})"


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float | None:
    """The power of the size that costs grow with, from FITTED_FROM on; none if there are not two sizes."""
    kept = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if size >= FITTED_FROM and cost > 0]
    if len({size for size, _ in kept}) < 2:
        return None
    x, y = np.log(np.array(kept)).T
    return float(np.polyfit(x, y, 1)[0])


def errors_figure(title: str, comparisons: Sequence[Comparison], labels: Sequence[str]) -> bytes:
    """Bars of all methods, or their course over the shares of missing pieces, if there are several."""
    if len({comparison.group for comparison in comparisons}) > 1:
        return _courses(title, comparisons, labels)
    most = max(len(comparison.lines) for comparison in comparisons)
    figure = Figure(figsize=(11, (1.2 + 0.3 * most) * len(comparisons) + 0.8), layout="constrained")
    panels = figure.subplots(len(comparisons), len(labels), sharey="row", squeeze=False)
    for row, comparison in zip(panels, comparisons, strict=True):
        lines, methods = comparison.lines, [line.method for line in comparison.lines]
        for number, (panel, label) in enumerate(zip(row, labels, strict=True)):
            ours, quoted = (_numbers([values[number] for values in column]) for column in _columns(lines))
            spread = [[_deviation(line, number) for line in lines]] * 2
            panel.plot(quoted, range(len(lines)), markersize=5, **_DIAMOND)
            draw_bars(panel, methods, ours, label, [COLOURS[0]] * len(lines), spread)
        row[0].set_title(comparison.view, loc="left", fontsize=9)
    signs = {
        "ours (deviation over seeds)": Patch(color=COLOURS[0]),
        "quoted, other objects": Line2D([], [], markersize=5, **_DIAMOND),
    }
    figure.suptitle(title)
    figure.legend(list(signs.values()), list(signs), loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return png(figure)


def _courses(title: str, comparisons: Sequence[Comparison], labels: Sequence[str]) -> bytes:
    """A row of panels for each collection and anchor, a curve for each method."""
    views = list(dict.fromkeys(comparison.view for comparison in comparisons))
    figure = Figure(figsize=(12.5, 4.2 * len(views) + 0.4), layout="constrained")
    panels = figure.subplots(len(views), len(labels), squeeze=False)
    colours = _colours([line.method for comparison in comparisons for line in comparison.lines])
    for row, view in zip(panels, views, strict=True):
        for number, (panel, label) in enumerate(zip(row, labels, strict=True)):
            for method, colour in colours.items():
                own = [(one, line) for one in comparisons if one.view == view for line in one.lines]
                found = [(100 * float(one.group), line) for one, line in own if line.method == method]
                shares, lines = [share for share, _ in found], [line for _, line in found]
                ours, quoted = (_numbers([values[number] for values in column]) for column in _columns(lines))
                if np.isfinite(ours).any():
                    spread = [_deviation(line, number) for line in lines]
                    Curve(f"{method}, ours", shares, ours, colour, deviation=spread).draw(panel)
                if np.isfinite(quoted).any():
                    Curve(f"{method}, quoted", shares, quoted, colour, "s--").draw(panel)
            panel.set(xlabel="pieces missing, %", ylabel=label)
            lined(panel)
        row[0].set_title(view, loc="left", fontsize=9)
    figure.suptitle(title)
    signs = dict(zip(*reversed(panels[0][0].get_legend_handles_labels()), strict=True))
    figure.legend(list(signs.values()), list(signs), loc="outside right center", frameon=False, fontsize=8)
    return png(figure)


def draw_bars(
    panel: Axes,
    names: Sequence[str],
    values: Sequence[float],
    label: str,
    colours: Sequence[str],
    spread: Sequence[Sequence[float]],
) -> None:
    """A bar to the right for each name, the first at the top; `spread` is how far below and above it may be."""
    panel.barh(range(len(names)), values, xerr=spread, color=colours)
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xlim(left=0)
    panel.set_xlabel(label)
    lined(panel, "x")


def logarithmic(panel: Axes, sizes: Sequence[int]) -> None:
    """Both axes, with a mark for each number of pieces."""
    panel.set(xscale="log", yscale="log")
    panel.set_xticks(sizes, [str(size) for size in sizes])
    panel.minorticks_off()
    lined(panel)


def lined(panel: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Pale lines behind what is drawn."""
    panel.grid(axis=axis, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def png(figure: Figure) -> bytes:
    """The figure as a PNG file's content."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def _colours(methods: Sequence[str]) -> dict[str, str]:
    return {method: COLOURS[number % len(COLOURS)] for number, method in enumerate(dict.fromkeys(methods))}


def _columns(lines: Sequence[Line]) -> tuple[list[Values], list[Values]]:
    return [line.ours for line in lines], [line.quoted for line in lines]


def _deviation(line: Line, number: int) -> float:
    return line.deviation[number] if line.deviation else 0.0


def _numbers(values: Sequence[float | None]) -> list[float]:
    """What can be drawn: a gap where there is nothing."""
    return [float("nan") if value is None else value for value in values]
