"""Comparisons on broken objects drawn: ours are filled, the quoted figures are hollow or dashed."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from diffassemble.evaluation.figures import COLOURS, png
from diffassemble.evaluation.fragment_comparison import FragmentComparison, FragmentLine

_PANELS = {"rmse_r": "RMSE(R), degrees", "rmse_t": "RMSE(T) × 100", "part_accuracy": "part accuracy, %"}


def fragment_figure(title: str, comparisons: Sequence[FragmentComparison]) -> bytes:
    """A PNG: bars of all methods, or their course over the shares of missing pieces, if there are several."""
    shares = {comparison.missing for comparison in comparisons}
    return _courses(title, comparisons) if len(shares) > 1 else _bars(title, comparisons)


def _bars(title: str, comparisons: Sequence[FragmentComparison]) -> bytes:
    """A row of panels for each comparison, a bar for each method."""
    most = max(len(comparison.lines) for comparison in comparisons)
    figure = Figure(figsize=(11, (1.2 + 0.3 * most) * len(comparisons) + 0.8), layout="constrained")
    panels = figure.subplots(len(comparisons), len(_PANELS), sharey="row", squeeze=False)
    for row, comparison in zip(panels, comparisons, strict=True):
        for panel, (name, label) in zip(row, _PANELS.items(), strict=True):
            _draw_bars(panel, comparison.lines, name)
            panel.set_xlabel(label)
        row[0].set_title(f"{comparison.data}, anchor {comparison.anchor}", loc="left", fontsize=9)
    diamond = Line2D([], [], marker="D", markersize=5, color="white", markeredgecolor="black", linestyle="none")
    figure.suptitle(title)
    figure.legend(
        [Patch(color=COLOURS[0]), diamond],
        ["ours (deviation over seeds)", "quoted, other objects"],
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=8,
    )
    return png(figure)


def _draw_bars(panel: Axes, lines: Sequence[FragmentLine], name: str) -> None:
    places = range(len(lines))
    panel.barh(
        places, [_ours(line, name) for line in lines], xerr=[_spread(line, name) for line in lines], color=COLOURS[0]
    )
    panel.plot(
        [_quoted(line, name) for line in lines], places, "D", markersize=5, color="white", markeredgecolor="black"
    )
    panel.set_yticks(places, [line.method for line in lines])
    panel.set_ylim(len(lines) - 0.5, -0.5)
    panel.set_xlim(left=0)
    panel.grid(axis="x", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def _courses(title: str, comparisons: Sequence[FragmentComparison]) -> bytes:
    """A row of panels for each collection and anchor, a line for each method."""
    kinds = list(dict.fromkeys((comparison.data, comparison.anchor) for comparison in comparisons))
    figure = Figure(figsize=(12.5, 4.2 * len(kinds) + 0.4), layout="constrained")
    panels = figure.subplots(len(kinds), len(_PANELS), squeeze=False)
    methods = dict.fromkeys(line.method for comparison in comparisons for line in comparison.lines)
    for row, kind in zip(panels, kinds, strict=True):
        own = [comparison for comparison in comparisons if (comparison.data, comparison.anchor) == kind]
        for panel, (name, label) in zip(row, _PANELS.items(), strict=True):
            for number, method in enumerate(methods):
                _draw_course(panel, own, method, name, COLOURS[number % len(COLOURS)])
            panel.set(xlabel="pieces missing, %", ylabel=label)
            panel.grid(color="#dddddd", linewidth=0.6)
        row[0].set_title(f"{kind[0]}, anchor {kind[1]}", loc="left", fontsize=9)
    figure.suptitle(title)
    signs = dict(zip(*reversed(panels[0][0].get_legend_handles_labels()), strict=True))
    figure.legend(list(signs.values()), list(signs), loc="outside right center", frameon=False, fontsize=8)
    return png(figure)


def _draw_course(panel: Axes, comparisons: Sequence[FragmentComparison], method: str, name: str, colour: str) -> None:
    """Ours with their deviation, the quoted figures dashed."""
    found = [(one.missing, line) for one in comparisons for line in one.lines if line.method == method]
    shares = [100 * missing for missing, _ in found]
    if any(line.ours is not None for _, line in found):
        ours = [_ours(line, name) for _, line in found]
        spread = [_spread(line, name) for _, line in found]
        panel.errorbar(shares, ours, yerr=spread, fmt="o-", color=colour, capsize=3, label=f"{method}, ours")
    if any(line.quoted is not None for _, line in found):
        quoted = [_quoted(line, name) for _, line in found]
        panel.plot(shares, quoted, "s--", color=colour, markerfacecolor="white", label=f"{method}, quoted")


def _ours(line: FragmentLine, name: str) -> float:
    return float("nan") if line.ours is None else getattr(line.ours, name)


def _quoted(line: FragmentLine, name: str) -> float:
    return float("nan") if line.quoted is None else getattr(line.quoted, name)


def _spread(line: FragmentLine, name: str) -> float:
    return 0.0 if line.ours is None or line.ours.deviation is None else getattr(line.ours.deviation, name)
