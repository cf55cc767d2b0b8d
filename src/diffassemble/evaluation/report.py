"""A page about a measurement: its table, a plot, and the best and worst answers as pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import torch
from matplotlib.figure import Figure

from diffassemble.core import Assembly, Poses, Puzzle, Solver, Step
from diffassemble.evaluation.figures import COLOURS, png
from diffassemble.evaluation.scoring import Score
from diffassemble.evaluation.sweep import Measured
from diffassemble.rendering.drawing import draw_before_after
from diffassemble.rendering.report import page, picture, png_image, section, table, versions


@dataclass
class Remembering:
    """A solver that keeps its last answer, so that somebody may look at it."""

    solver: Solver
    last: tuple[Puzzle, Poses] | None = None

    @property
    def name(self) -> str:
        return self.solver.name

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        for step in self.solver.steps(puzzle, generator):
            self.last = puzzle, step.poses
            yield step


@dataclass
class Album:
    """The best and the worst answer of every solver, by the score at the best turn of the whole."""

    solvers: Sequence[Remembering]
    best: dict[str, tuple[Score, Assembly]] = field(default_factory=dict)
    worst: dict[str, tuple[Score, Assembly]] = field(default_factory=dict)

    def forget(self) -> None:
        """What was answered so far does not count."""
        for solver in self.solvers:
            solver.last = None

    def hear(self, score: Score) -> None:
        """A puzzle was scored; whoever has just answered gave it."""
        for solver in self.solvers:
            if solver.last is None:
                continue
            (puzzle, poses), solver.last = solver.last, None
            answer = score, Assembly(puzzle, poses, torch.ones(len(puzzle)), (), solver.name, score.seconds)
            if solver.name not in self.best or score.accuracy_free > self.best[solver.name][0].accuracy_free:
                self.best[solver.name] = answer
            if solver.name not in self.worst or score.accuracy_free < self.worst[solver.name][0].accuracy_free:
                self.worst[solver.name] = answer


def measurement_page(results: Sequence[Measured], album: Album, settings: Sequence[tuple[str, str]]) -> str:
    """A self-contained page."""
    rows = [asdict(measured.row) for measured in results]
    parts = [
        section("Results", rows_table(rows)),
        section("Right pieces", png_image(_bars(results), "right pieces in percent")),
        *(
            section(f"{word} answer of {name}", _answer(*found[name]))
            for name in album.best
            for word, found in (("Best", album.best), ("Worst", album.worst))
        ),
        section("Settings", table([*settings, *versions()])),
    ]
    return page("How well solvers did", parts)


def rows_table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows of equal fields as a table."""
    head = "".join(f"<th>{escape(key.replace('_', ' '))}</th>" for key in rows[0])
    body = ["<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>" for row in rows]
    return f"<table><tr>{head}</tr>" + "\n".join(body) + "</table>"


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else escape(str(value))


def _answer(score: Score, assembly: Assembly) -> str:
    words = f"<p>{score.accuracy:.1f} % right, {score.accuracy_free:.1f} % orientation free, {score.seconds:.1f} s</p>"
    return words + picture(draw_before_after(assembly), "pieces and answer")


def _bars(results: Sequence[Measured]) -> bytes:
    """Orientation-free accuracy of every row with its interval."""
    figure = Figure(figsize=(8, 1 + 0.4 * len(results)), layout="constrained")
    panel = figure.subplots()
    names = sorted({measured.row.solver for measured in results})
    for place, measured in enumerate(results):
        row, (low, high) = measured.row, measured.accuracy_free
        reach = [[max(0.0, row.accuracy_free - low)], [max(0.0, high - row.accuracy_free)]]
        colour = COLOURS[names.index(row.solver) % len(COLOURS)]
        panel.barh(place, row.accuracy_free, xerr=reach, color=colour)
    rows = [measured.row for measured in results]
    panel.set_yticks(
        range(len(rows)), [f"{row.solver}, {row.data} {row.grid}, {row.missing:.0%} missing" for row in rows]
    )
    panel.invert_yaxis()
    panel.set_xlim(0, 100)
    panel.set_xlabel("pieces right at the best turn of the whole (%), with 95 % interval")
    return png(figure)
