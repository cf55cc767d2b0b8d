"""Solvers on broken objects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from statistics import fmean, stdev

import torch

from diffassemble.core import InputError, Poses, Solver, Step
from diffassemble.evaluation.fragment_puzzles import Broken, Case, Damage, benchmark_cases, check_fracture_wishes
from diffassemble.evaluation.fragment_scores import (
    Anchor,
    Calibration,
    Figures,
    Group,
    ObjectScore,
    PieceGroup,
    by_class,
    by_confidence,
    by_pieces,
    by_size,
    calibration,
    class_figures,
    plain_figures,
    score_object,
)
from diffassemble.evaluation.memory import peak_megabytes

# Where pieces are missing, it matters which: the mean over so many draws is told.
MISSING_SEEDS = 5


@dataclass(frozen=True)
class FragmentRow:
    """One line of a results table, on `objects` fractures, each drawn with `seeds` seeds from `seed` on.

    The figures (see `Figures`) are means over classes of class means; `plain` are the same with every object alike;
    `deviation` is their standard deviation over the seeds, if there are several. `missing`, `noise` and `points` are
    those of `Damage`. `seconds_per_object` and `peak_mb` as in two dimensions.
    """

    solver: str
    data: str
    objects: int
    missing: float
    noise: float
    points: int
    anchor: Anchor
    rmse_r: float
    rmse_t: float
    part_accuracy: float
    part_accuracy_rest: float
    all_right: float
    chamfer: float
    geodesic: float
    geodesic_median: float
    seconds_per_object: float
    peak_mb: float
    seed: int
    seeds: int
    plain: Figures
    deviation: Figures | None
    classes: tuple[Group, ...]
    by_pieces: tuple[Group, ...]
    by_size: tuple[PieceGroup, ...]
    by_confidence: tuple[PieceGroup, ...]
    calibration: tuple[Calibration, ...]

    @property
    def figures(self) -> Figures:
        """The means over classes, together."""
        return Figures(**{field.name: getattr(self, field.name) for field in fields(Figures)})


@dataclass(frozen=True)
class FragmentSweep:
    """Every solver on every collection of fractures, a name with its fractures, under every damage.

    Without `seeds`, there are five draws of objects with missing pieces and one of others.
    """

    solvers: Sequence[Solver]
    collections: Sequence[tuple[str, Sequence[Broken]]]
    damages: Sequence[Damage] = (Damage(),)
    anchors: Sequence[Anchor] = ("none",)
    limit: int | None = None
    seed: int = 0
    seeds: int | None = None

    @property
    def total(self) -> int:
        """How many objects will be solved in all."""
        draws = sum(self.draws(damage) for damage in self.damages)
        objects = sum(min(self.limit or len(fractures), len(fractures)) for _, fractures in self.collections)
        return draws * objects * len(self.solvers)

    def draws(self, damage: Damage) -> int:
        """With how many seeds objects are drawn."""
        return self.seeds or (MISSING_SEEDS if damage.missing else 1)


@dataclass(frozen=True)
class Solved:
    """One object with a solver's answer; the score is that under the anchor `largest`, if it is asked for."""

    solver: str
    case: Case
    poses: Poses
    score: ObjectScore


def run_fragment_sweep(
    sweep: FragmentSweep, report: Callable[[Solved], None] = lambda solved: None
) -> Iterator[tuple[FragmentRow, ...]]:
    """Yield the rows of one solver under one damage, anchor by anchor; `report` hears of every object that is solved.

    An answer is scored under all anchors: they tell how it is looked at, not what the solver knows. All wishes are
    checked before the first object is solved.
    """
    if sweep.seeds is not None and sweep.seeds < 1:
        raise InputError(f"seeds {sweep.seeds} is below 1; pass how often the objects are drawn, such as 5")
    for (_, fractures), damage in product(sweep.collections, sweep.damages):
        check_fracture_wishes(fractures, damage, sweep.limit, sweep.seed)
    for (data, fractures), damage, solver in product(sweep.collections, sweep.damages, sweep.solvers):
        yield _measure(sweep, solver, data, fractures, damage, report)


def warm_up_fragments(sweep: FragmentSweep) -> None:
    """Let every solver answer one object, so that what it compiles or loads at first is not measured."""
    _, fractures = sweep.collections[0]
    for solver in sweep.solvers:
        for case, generator in benchmark_cases(fractures, Damage(), limit=1):
            answer(solver, case, generator)


def answer(solver: Solver, case: Case, generator: torch.Generator) -> tuple[Step, float]:
    """A solver's last step, and how many seconds it took."""
    start, last = time.perf_counter(), None
    for step in solver.steps(case.given, generator):
        last = step
    if last is None:
        raise RuntimeError(f"solver {solver.name} gave no answer")
    return last, time.perf_counter() - start


def _measure(
    sweep: FragmentSweep,
    solver: Solver,
    data: str,
    fractures: Sequence[Broken],
    damage: Damage,
    report: Callable[[Solved], None],
) -> tuple[FragmentRow, ...]:
    # For each anchor the scores of every draw.
    scores: dict[Anchor, list[list[ObjectScore]]] = {anchor: [] for anchor in sweep.anchors}
    for seed in range(sweep.seed, sweep.seed + sweep.draws(damage)):
        for draws in scores.values():
            draws.append([])
        for case, generator in benchmark_cases(fractures, damage, limit=sweep.limit, seed=seed):
            step, seconds = answer(solver, case, generator)
            for anchor, draws in scores.items():
                draws[-1].append(score_object(case, step.poses, anchor, step.confidence, seconds))
            told: Anchor = "largest" if "largest" in scores else sweep.anchors[0]
            report(Solved(solver.name, case, step.poses, scores[told][-1][-1]))
    return tuple(_row(solver.name, data, damage, anchor, sweep.seed, draws) for anchor, draws in scores.items())


def _row(
    solver: str, data: str, damage: Damage, anchor: Anchor, seed: int, draws: Sequence[Sequence[ObjectScore]]
) -> FragmentRow:
    scores = [score for draw in draws for score in draw]
    return FragmentRow(
        solver=solver,
        data=data,
        objects=len(draws[0]),
        missing=damage.missing,
        noise=damage.noise,
        points=damage.points,
        anchor=anchor,
        **vars(class_figures(scores)),
        seconds_per_object=fmean(score.seconds for score in scores),
        peak_mb=round(peak_megabytes(), 1),
        seed=seed,
        seeds=len(draws),
        plain=plain_figures(scores),
        deviation=_deviation([class_figures(draw) for draw in draws]),
        classes=by_class(scores),
        by_pieces=by_pieces(scores),
        by_size=by_size(scores),
        by_confidence=by_confidence(scores),
        calibration=calibration(scores),
    )


def _deviation(several: Sequence[Figures]) -> Figures | None:
    if len(several) < 2:
        return None
    return Figures(**{field.name: stdev(getattr(one, field.name) for one in several) for field in fields(Figures)})
