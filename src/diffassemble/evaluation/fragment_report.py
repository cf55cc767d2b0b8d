"""A page about a measurement on broken objects: its tables, a plot, and the best and worst answers as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from matplotlib.figure import Figure

from diffassemble.core import Assembly
from diffassemble.evaluation.figures import COLOURS, png
from diffassemble.evaluation.fragment_benchmark import FragmentRow, Solved
from diffassemble.evaluation.fragment_tables import describe
from diffassemble.evaluation.report import rows_table
from diffassemble.rendering.drawing import draw_before_after
from diffassemble.rendering.report import page, picture, png_image, section, table, versions

_FIGURES = ("rmse_r", "rmse_t", "part_accuracy", "part_accuracy_rest", "all_right", "chamfer", "geodesic")
_PANELS = {"rmse_r": "RMSE(R), degrees", "rmse_t": "RMSE(T) × 100", "part_accuracy": "part accuracy, %"}
_KINDS = {"by_pieces": "pieces", "by_size": "area", "by_confidence": "confidence"}
_LEGEND = (
    "<p>R: error of Euler angles, geodesic: of the turn itself, both in degrees. T: error of translation × 100. Part "
    "accuracy: percent of pieces at their place; rest: without the largest. Chamfer: distance of the shapes × 1000. "
    "Means over classes of objects.</p>"
)


@dataclass
class FragmentAlbum:
    """The best and the worst answer of every solver, by right pieces, then by the distance of the shapes."""

    best: dict[str, Solved] = field(default_factory=dict)
    worst: dict[str, Solved] = field(default_factory=dict)

    def hear(self, solved: Solved) -> None:
        """An object was solved and scored."""
        name = solved.solver
        if name not in self.best or _rank(solved) > _rank(self.best[name]):
            self.best[name] = solved
        if name not in self.worst or _rank(solved) < _rank(self.worst[name]):
            self.worst[name] = solved


def fragment_page(rows: Sequence[FragmentRow], album: FragmentAlbum, settings: Sequence[tuple[str, str]]) -> str:
    """A self-contained page."""
    parts = [
        section("Results", rows_table([_result(row) for row in rows]) + _LEGEND),
        section("Compared", png_image(_bars(rows), "errors and right pieces")),
        section("By kind of object and piece", rows_table([group for row in rows for group in _groups(row)])),
        *(
            section(f"{word} answer of {name}", _answer(found[name]))
            for name in album.best
            for word, found in (("Best", album.best), ("Worst", album.worst))
        ),
        section("Settings", table([*settings, *versions()])),
    ]
    return page("How well solvers did on broken objects", parts)


def _rank(solved: Solved) -> tuple[float, float]:
    """Higher is better."""
    return float(solved.score.right.double().mean()), -solved.score.shape


def _result(row: FragmentRow) -> dict[str, object]:
    numbers = {name: getattr(row, name) for name in _FIGURES}
    return {"solver": row.solver, "objects": describe(row), **numbers, "seconds": row.seconds_per_object}


def _groups(row: FragmentRow) -> list[dict[str, object]]:
    return [
        {
            "solver": row.solver,
            "objects": describe(row),
            "by": word,
            "group": group.name,
            "part_accuracy": (values := getattr(group, "figures", group)).part_accuracy,
            "rmse_r": values.rmse_r,
            "rmse_t": values.rmse_t,
        }
        for kind, word in _KINDS.items()
        for group in getattr(row, kind)
    ]


def _answer(solved: Solved) -> str:
    score, case = solved.score, solved.case
    words = (
        f"<p>{case.name}: {int(score.right.sum())} of {len(score.right)} pieces right, "
        f"error of turns {float(score.geodesic.mean()):.0f}°, {score.seconds:.1f} s</p>"
    )
    puzzle = replace(case.given, truth=case.puzzle.truth)
    sure = torch.ones(len(puzzle)) if score.confidence is None else score.confidence
    assembly = Assembly(puzzle, solved.poses, sure, (), solved.solver, score.seconds)
    return words + picture(draw_before_after(assembly), "fragments, answer and truth")


def _bars(rows: Sequence[FragmentRow]) -> bytes:
    """A panel for each figure, a bar for each row."""
    figure = Figure(figsize=(11, 1.2 + 0.5 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(_PANELS), sharey=True)
    names = sorted({row.solver for row in rows})
    colours = [COLOURS[names.index(row.solver) % len(COLOURS)] for row in rows]
    for panel, (name, label) in zip(panels, _PANELS.items(), strict=True):
        spread = [0.0 if row.deviation is None else getattr(row.deviation, name) for row in rows]
        panel.barh(range(len(rows)), [getattr(row, name) for row in rows], xerr=spread, color=colours)
        panel.set_xlabel(label)
        panel.set_xlim(left=0)
    panels[0].set_yticks(range(len(rows)), [f"{row.solver}\n{describe(row)}" for row in rows], fontsize=8)
    panels[0].invert_yaxis()
    return png(figure)
