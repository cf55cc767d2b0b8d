"""Scores of answers, and rows: what a solver achieves on the puzzles of a cell, the same for all kinds of pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, stdev
from typing import Any

import numpy as np

from diffassemble.evaluation.metrics import bootstrap_intervals, class_means, wilson_interval

Interval = tuple[float, float]


@dataclass(frozen=True)
class Score:
    """One answer to one puzzle.

    `figures` describe the puzzle, `columns` have one number per piece. `sure`, `sure_right` and `false_joins` are those
    of `metrics.Confirmed`. `category` is the class of an object, `whole` its pieces before some were taken away.
    """

    pieces: int
    figures: Mapping[str, float]
    seconds: float = 0.0
    sure: int = 0
    sure_right: int = 0
    false_joins: int = 0
    category: str = ""
    whole: int = 0
    columns: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.figures[name]


Scores = Mapping[str, Score]
"""one answer by view: anchors of broken objects, else the one view "" """


def read_scores(entry: dict[str, Any]) -> Scores:
    """Scores that were written as JSON; a TypeError, KeyError or AttributeError if it is none."""
    found = {}
    for view, values in entry.items():
        columns = {name: tuple(map(float, column)) for name, column in values.pop("columns").items()}
        found[view] = Score(**values, columns=columns)
    return found


@dataclass(frozen=True)
class Part:
    """Means over some of the puzzles, or some of the pieces, of a row."""

    by: str
    name: str
    count: int
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Row:
    """What a solver achieves on a cell.

    `figures` are means over classes of the means over their puzzles (plain means where there are no classes), with 95 %
    bootstrap intervals over puzzles; `plain` are plain means and, where a cell has MEDIANS, medians. `deviation` is the
    standard deviation of the figures over seeds, if there are several. `setting` and `words` say what the cell is.
    """

    solver: str
    data: str
    setting: Mapping[str, str | int | float]
    words: tuple[str, ...]
    puzzles: int
    items: int
    pieces: float
    seed: int
    seeds: int
    figures: Mapping[str, float]
    intervals: Mapping[str, Interval]
    plain: Mapping[str, float]
    deviation: Mapping[str, float] | None
    sure: int
    sure_right: int
    false_joins: int
    seconds_per_puzzle: float
    peak_mb: float
    parts: tuple[Part, ...] = ()

    def __getitem__(self, name: str) -> float:
        return self.figures[name]

    @property
    def precision(self) -> float | None:
        """Percent of the pieces at confidence ≥ 0.9 that are right; none where there are no such pieces."""
        return 100 * self.sure_right / self.sure if self.sure else None

    @property
    def precision_interval(self) -> Interval | None:
        """The 95 % Wilson interval of the precision."""
        return wilson_interval(self.sure_right, self.sure) if self.sure else None

    def reach(self, name: str) -> Interval:
        """How far below and above a figure may be: to the ends of its interval."""
        value, (low, high) = self.figures[name], self.intervals[name]
        return max(0.0, value - low), max(0.0, high - value)

    def describe(self) -> str:
        """What the row was measured on."""
        return f"{self.data}\n{', '.join(self.words)}"

    def fields(self) -> dict[str, Any]:
        """All names of `evaluate --json`: setting and figures beside the rest."""
        values = asdict(self)
        setting, figures = values.pop("setting"), values.pop("figures")
        values.pop("words")
        derived = {"precision": self.precision, "precision_interval": self.precision_interval}
        return {"solver": values.pop("solver"), "data": values.pop("data"), **setting, **figures, **values, **derived}


def summarise(
    scores: Sequence[Score], medians: Sequence[str] = ()
) -> tuple[dict[str, float], dict[str, Interval], dict[str, float]]:
    """Means over classes of class means, their intervals, and plain means with medians of some figures."""
    names, classes = list(scores[0].figures), [score.category for score in scores]
    values = np.array([[score.figures[name] for name in names] for score in scores])
    means, (low, high) = class_means(values, classes), bootstrap_intervals(values, classes)
    plain = dict(zip(names, values.mean(0).tolist(), strict=True))
    plain |= {f"{name}_median": median(score.figures[name] for score in scores) for name in medians}
    intervals = {name: (float(low[i]), float(high[i])) for i, name in enumerate(names)}
    return dict(zip(names, means.tolist(), strict=True)), intervals, plain


def deviations(draws: Sequence[Sequence[Score]]) -> dict[str, float] | None:
    """Standard deviation of the figures over draws of the same size, if there are several."""
    # A last draw of fewer objects would deviate for that alone.
    whole = [summarise(draw)[0] for draw in draws if len(draw) == len(draws[0])]
    return {name: stdev(one[name] for one in whole) for name in whole[0]} if len(whole) > 1 else None
