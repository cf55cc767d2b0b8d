"""Broken objects as a benchmark, by the protocol of Breaking Bad: scattered, damaged, and scored piece by piece.

Lengths are shares of the whole object's longest side, angles are degrees. An answer is scored as it stands (anchor
`none`), and moved as a whole such that its largest piece stands at its true pose (`largest`): anchors tell how an
answer is looked at, not what the solver knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import fmean, median, stdev
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.assembly import scoring
from diffassemble.core import Mesh, Poses, Puzzle, Step
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import random_stream
from diffassemble.evaluation import metrics
from diffassemble.evaluation.sweep import CUTTING, LOSING, Case, Interval, Measured, peak_megabytes, refuse
from diffassemble.fragments.breaking import scatter
from diffassemble.fragments.damage import Damage

# However few points a whole object has, a piece of it has this many.
LEAST_POINTS = 20
# Where pieces are missing, it matters which: the mean over so many draws is told.
MISSING_SEEDS = 5
Anchor = Literal["none", "largest"]
ERROR_LABELS = {"rmse_r": "RMSE(R), degrees", "rmse_t": "RMSE(T) × 100", "part_accuracy": "part accuracy, %"}


@runtime_checkable
class Broken(Protocol):
    """An object broken once: its class, what it is called, and its fragments where they belong."""

    @property
    def category(self) -> str: ...
    @property
    def name(self) -> str: ...
    def meshes(self) -> Sequence[Mesh]: ...


@dataclass(frozen=True)
class ObjectScore:
    """One object, seen with one anchor: errors of its pieces, of its shape, and what it took."""

    category: str
    whole: int
    share: tuple[float, ...]
    euler: tuple[float, ...]
    geodesic: tuple[float, ...]
    translation: tuple[float, ...]
    chamfer: tuple[float, ...]
    shape: float
    confidence: tuple[float, ...] | None
    seconds: float

    def values(self, name: str) -> Float[Tensor, "n"]:
        """What a field says of every piece; `right` is 1 where it stands where it belongs."""
        if name == "right":
            return scoring.right_pieces(self.values("chamfer")).double()
        return torch.tensor(getattr(self, name), dtype=torch.double)

    def mean(self, name: str) -> float:
        """The mean over the pieces."""
        return float(self.values(name).mean())

    @property
    def rest(self) -> Bool[Tensor, "n"]:
        """All pieces but the largest, whose place an anchor gives."""
        return torch.arange(len(self.share)) != self.values("share").argmax()

    @property
    def right_rest(self) -> float:
        """The share of the right ones among these; an object of one piece has nothing to be wrong."""
        return float(self.values("right")[self.rest].mean()) if self.rest.any() else 1.0


@dataclass(frozen=True)
class AnchoredScores:
    """One answer, seen with either anchor."""

    none: ObjectScore
    largest: ObjectScore


def score_object(
    case: Case, answer: Poses, anchor: Anchor, confidence: Float[Tensor, "n"] | None = None, seconds: float = 0.0
) -> ObjectScore:
    """How far an answer is from the truth."""
    puzzle, truth = case.puzzle, case.puzzle.truth
    assert truth is not None
    points = puzzle.fragments.points
    answer = Poses(answer.rotation.to(points), answer.translation.to(points))
    if anchor == "largest":
        answer = scoring.anchored(answer, truth, int(case.share.argmax()))
    return ObjectScore(
        category=case.category,
        whole=case.whole,
        share=tuple(case.share.tolist()),
        euler=tuple(metrics.euler_error(answer, truth).tolist()),
        geodesic=tuple(metrics.geodesic_error(answer, truth).tolist()),
        translation=tuple(metrics.translation_error(answer, truth).tolist()),
        chamfer=tuple(scoring.piece_chamfer(points, answer, truth).tolist()),
        shape=metrics.shape_chamfer(points, answer, truth),
        confidence=None if confidence is None else tuple(confidence.tolist()),
        seconds=seconds,
    )


@dataclass(frozen=True)
class Figures:
    """Means over objects of means over their pieces: degrees, translation × 100, percent, Chamfer distance × 1000.

    `part_accuracy_rest` leaves the largest piece of each object out; `all_right` is the percentage of objects without a
    wrong piece; `geodesic_median` is the median over objects of their mean error.
    """

    rmse_r: float
    rmse_t: float
    part_accuracy: float
    part_accuracy_rest: float
    all_right: float
    chamfer: float
    geodesic: float
    geodesic_median: float


@dataclass(frozen=True)
class Group:
    """Figures of some of the objects; one that is drawn several times counts as often."""

    name: str
    objects: int
    figures: Figures


@dataclass(frozen=True)
class PieceGroup:
    """Figures of some of the pieces, whichever object they belong to."""

    name: str
    pieces: int
    part_accuracy: float
    rmse_r: float
    rmse_t: float
    geodesic: float


@dataclass(frozen=True)
class Calibration:
    """Pieces of about the same confidence: how many, its mean, and how many percent of them are right."""

    pieces: int
    confidence: float
    right: float


def plain_figures(scores: Sequence[ObjectScore]) -> Figures:
    """Every object counts alike."""
    return Figures(
        rmse_r=fmean(score.mean("euler") for score in scores),
        rmse_t=100 * fmean(score.mean("translation") for score in scores),
        part_accuracy=100 * fmean(score.mean("right") for score in scores),
        part_accuracy_rest=100 * fmean(score.right_rest for score in scores),
        all_right=100 * fmean(bool(score.values("right").all()) for score in scores),
        chamfer=1000 * fmean(score.shape for score in scores),
        geodesic=fmean(score.mean("geodesic") for score in scores),
        geodesic_median=median(score.mean("geodesic") for score in scores),
    )


def class_figures(scores: Sequence[ObjectScore]) -> Figures:
    """Every class counts alike, as in the benchmark: the mean over classes of the means over their objects.

    Only the median is that of all objects.
    """
    means = _over([group.figures for group in by_class(scores)], fmean)
    return replace(means, geodesic_median=plain_figures(scores).geodesic_median)


def _over(several: Sequence[Figures], statistic: Any) -> Figures:
    return Figures(**{field.name: statistic(getattr(one, field.name) for one in several) for field in fields(Figures)})


def by_class(scores: Sequence[ObjectScore]) -> tuple[Group, ...]:
    """One group for each class of objects, by name."""
    return _groups((score.category, score) for score in sorted(scores, key=lambda score: score.category))


def by_pieces(scores: Sequence[ObjectScore]) -> tuple[Group, ...]:
    """Groups by how many pieces the object broke into."""
    kinds = (("2", 2, 2), ("3–4", 3, 4), ("5–8", 5, 8), ("9–20", 9, 20), ("over 20", 21, 10**9))
    return _groups((name, one) for name, least, most in kinds for one in scores if least <= one.whole <= most)


def _groups(named: Iterable[tuple[str, ObjectScore]]) -> tuple[Group, ...]:
    members: dict[str, list[ObjectScore]] = {}
    for name, score in named:
        members.setdefault(name, []).append(score)
    return tuple(Group(name, len(scores), plain_figures(scores)) for name, scores in members.items())


_PIECE_GROUPS = {
    "share": (("< 1 %", 0.0, 0.01), ("1–4 %", 0.01, 0.04), ("> 4 %", 0.04, 2.0)),
    "confidence": (("< 0.5", 0.0, 0.5), ("0.5–0.9", 0.5, 0.9), ("> 0.9", 0.9, 2.0)),
}
"""of pieces whose value is at least the lower bound and below the upper"""


def piece_groups(name: Literal["share", "confidence"], scores: Sequence[ObjectScore]) -> tuple[PieceGroup, ...]:
    """Groups of pieces by their share of the object's area, or by how sure the solver was of them, if it said so.

    Groups without pieces are left out.
    """
    told = [score for score in scores if getattr(score, name) is not None]
    if not told:
        return ()
    value, right, euler, moved, turned = (
        torch.cat([score.values(field) for score in told])
        for field in (name, "right", "euler", "translation", "geodesic")
    )
    groups = []
    for group, low, high in _PIECE_GROUPS[name]:
        chosen = (value >= low) & (value < high)
        if chosen.any():
            means = [float(column[chosen].mean()) for column in (right, euler, moved, turned)]
            groups.append(PieceGroup(group, int(chosen.sum()), 100 * means[0], means[1], 100 * means[2], means[3]))
    return tuple(groups)


def calibration(scores: Sequence[ObjectScore], bins: int = 10) -> tuple[Calibration, ...]:
    """Confidences in equal steps, beside how often they were right; the largest piece of each object is left out."""
    told = [score for score in scores if score.confidence is not None]
    if not told:
        return ()
    value, truth = (torch.cat([one.values(name)[one.rest] for one in told]) for name in ("confidence", "right"))
    which = (value * bins).long().clamp(max=bins - 1)
    return tuple(
        Calibration(int((which == i).sum()), float(value[which == i].mean()), 100 * float(truth[which == i].mean()))
        for i in range(bins)
        if (which == i).any()
    )


@dataclass(frozen=True)
class ObjectRow:
    """Figures on `objects` fractures, each drawn with `seeds` seeds from `seed` on, seen with one anchor.

    They (see `Figures`) are means over classes of class means; `plain` are the same with every object alike;
    `deviation` is their standard deviation over the seeds, if there are several. `missing`, `noise`, `points`,
    `wear` and `points_each` are those of `ObjectCell`, `seconds_per_object` and `peak_mb` as for pictures.
    """

    HEADINGS: ClassVar[tuple[str, ...]] = (
        *("solver", "objects", "count", "R", "geod.", "T", "PA", "PA\nrest", "all\nright", "CD", "cost"),
    )
    CAPTION: ClassVar[str] = (
        "Mean over classes of class means, and below the plain mean over objects. R: RMSE of Euler angles, geod.: "
        "geodesic error (its median over objects below), both in degrees (chance: R 86, geod. 126). T: RMSE of "
        "translation × 100. PA: percent of pieces at their place (Chamfer distance < 0.01), rest: without the largest "
        "piece. All right: percent of objects. CD: Chamfer distance of the shape × 1000. Anchor largest: the whole is "
        "moved such that its largest piece stands at its true pose; none: poses as answered."
    )

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
    wear: float = 0.0
    points_each: int = 0

    def describe(self) -> str:
        """What the row was measured on."""
        words = [f"anchor {self.anchor}"]
        words += [f"{self.missing:.0%} missing"] if self.missing else []
        words += [f"{self.noise:.1%} noise"] if self.noise else []
        words += [f"{self.wear:.1%} worn"] if self.wear else []
        words += [f"{self.points} points"] if self.points else []
        words += [f"{self.points_each} points each"] if self.points_each else []
        return f"{self.data}\n{', '.join(words)}"

    def cells(self, intervals: Mapping[str, Interval]) -> list[str]:
        """Two lines: class means over plain means."""
        names = ("rmse_r", "geodesic", "rmse_t", "part_accuracy", "part_accuracy_rest", "all_right", "chamfer")
        below = {name: "geodesic_median" if name == "geodesic" else name for name in names}
        means = [f"{getattr(self, name):.1f}\n{getattr(self.plain, below[name]):.1f}" for name in names]
        count = f"{self.objects}\n" + (f"×{self.seeds}" if self.seeds > 1 else "")
        cost = f"{self.seconds_per_object:.2f} s\n{self.peak_mb:.0f} MB"
        return [self.solver, self.describe(), count, *means, cost]

    def groups(self) -> Mapping[tuple[str, str], Mapping[str, float]]:
        """By pieces of the object, by the piece's share of its area, and by how sure the solver was of it."""
        kinds: dict[str, tuple[Any, ...]] = {"pieces": self.by_pieces, "area": self.by_size, "sure": self.by_confidence}
        return {
            (word, group.name): {
                name: getattr(getattr(group, "figures", group), name) for name in ("part_accuracy", "rmse_r", "rmse_t")
            }
            for word, groups in kinds.items()
            for group in groups
        }


@dataclass(frozen=True)
class ObjectCell:
    """Fractures, what is lost between them and what a solver sees, and the anchors that answers are seen with.

    `missing` is the share of pieces taken away, though two stay; `noise` the deviation that is added to vertices;
    with `points` the pieces are clouds without faces, so many points a whole object, shared out by area, with
    `points_each` so many points each; `wear` is the radius with which breaks are worn round. None of it changes how
    the pieces are scattered; what is missing at 10 % is missing at 20 %, too.
    """

    THINGS: ClassVar[str] = "objects"
    FIGURES: ClassVar[Mapping[str, str]] = ERROR_LABELS

    data: str
    fractures: Sequence[Broken]
    missing: float = 0.0
    noise: float = 0.0
    points: int = 0
    anchors: tuple[Anchor, ...] = ("none",)
    wear: float = 0.0
    points_each: int = 0

    @property
    def usual_seeds(self) -> int:
        return MISSING_SEEDS if self.missing else 1

    def __len__(self) -> int:
        return len(self.fractures)

    def check(self) -> None:
        """Refuse what no puzzles can be made of."""
        noise, points = self.noise, self.points
        refuse("there are no fractures to evaluate on; pass a folder that holds some", not self.fractures)
        refuse(f"noise {noise} is not a share of the object's size; pass a little, such as 0.001", not 0 <= noise < 1)
        refuse(f"points {points} is below 0; pass the points of an object, or 0 for whole meshes", points < 0)
        refuse("points and points-each are both given; pass either", points and self.points_each)
        much = f"wear {self.wear} is not a small share of the object's size; pass a little, such as 0.005"
        refuse(much, not 0 <= self.wear < 0.1)

    def small(self) -> ObjectCell:
        """The first object, undamaged."""
        return ObjectCell(self.data, self.fractures[:1])

    def case(self, index: int, seed: int) -> Case:
        """Scattered fragments, less what is lost."""
        fracture = self.fractures[index]
        puzzle = scatter(fracture.meshes(), random_stream(seed, index, CUTTING))
        losing = random_stream(seed, index, LOSING)
        share = scoring.piece_sizes(puzzle.fragments)
        stay = surviving(len(puzzle), min(self.missing, max(0.0, 1 - 2 / len(puzzle))), losing)
        clean = puzzle.reordered(stay)
        # Breaks are worn where pieces were, lost ones, too.
        worn = Damage(wear=self.wear).of_puzzle(puzzle, losing).reordered(stay)
        given = self._spoiled(worn, share[stay], losing).without_truth()
        return Case(fracture.name, fracture.category, clean, given, len(puzzle), share[stay])

    def _spoiled(self, puzzle: Puzzle, share: Float[Tensor, "n"], generator: torch.Generator) -> Puzzle:
        """The puzzle as clouds or with noise, if so wished; its points are then drawn anew from what is left."""
        counts = [max(LEAST_POINTS, round(self.points * part)) for part in share.tolist()]
        clouds = tuple(counts) if self.points else self.points_each
        return Damage(noise=self.noise, points=clouds).of_puzzle(puzzle, generator)

    def identity(self, index: int, seed: int) -> dict[str, str | int | float]:
        """All that an object follows from."""
        damage: dict[str, float] = {"missing": self.missing, "noise": self.noise, "points": self.points}
        more = {"wear": self.wear, "points_each": self.points_each}
        damage |= {name: value for name, value in more.items() if value}
        return {"object": self.fractures[index].name, "data": self.data, "index": index, "seed": seed, **damage}

    def score(self, case: Case, step: Step, seconds: float) -> AnchoredScores:
        """How far an answer is from the truth, seen with either anchor; what is laid aside counts at its best guess."""
        anchors: tuple[Anchor, ...] = ("none", "largest")
        result = step.result
        answer = step.poses if result is None or result.guess is None else result.guess
        sure = None if result is None else result.confidence
        return AnchoredScores(*(score_object(case, answer, one, sure, seconds) for one in anchors))

    def read_score(self, entry: dict[str, Any]) -> AnchoredScores:
        """A score that was written as JSON, which knows lists for tuples."""
        seen: list[dict[str, Any]] = [
            {name: tuple(part) if isinstance(part, list) else part for name, part in entry[anchor].items()}
            for anchor in ("none", "largest")
        ]
        return AnchoredScores(*(ObjectScore(**values) for values in seen))

    def rows(self, solver: str, seed: int, draws: Sequence[Sequence[AnchoredScores]]) -> list[Measured]:
        """A row for each anchor."""
        return [
            Measured(self._row(solver, seed, anchor, [[getattr(one, anchor) for one in draw] for draw in draws]), {})
            for anchor in self.anchors
        ]

    def _row(self, solver: str, seed: int, anchor: Anchor, draws: Sequence[Sequence[ObjectScore]]) -> ObjectRow:
        scores = [score for draw in draws for score in draw]
        # A last draw of fewer objects would deviate for that alone.
        whole = [class_figures(draw) for draw in draws if len(draw) == len(draws[0])]
        return ObjectRow(
            *(solver, self.data, len(draws[0]), self.missing, self.noise, self.points, anchor),
            **asdict(class_figures(scores)),
            seconds_per_object=fmean(score.seconds for score in scores),
            peak_mb=round(peak_megabytes(), 1),
            seed=seed,
            seeds=len(draws),
            plain=plain_figures(scores),
            deviation=_over(whole, stdev) if len(whole) > 1 else None,
            classes=by_class(scores),
            by_pieces=by_pieces(scores),
            by_size=piece_groups("share", scores),
            by_confidence=piece_groups("confidence", scores),
            calibration=calibration(scores),
            wear=self.wear,
            points_each=self.points_each,
        )

    def rank(self, score: AnchoredScores) -> tuple[float, ...]:
        """By right pieces, then by the distance of the shapes."""
        seen = self._seen(score)
        return seen.mean("right"), -seen.shape

    def words(self, score: AnchoredScores) -> str:
        """A score for people."""
        seen = self._seen(score)
        right = f"{int(seen.values('right').sum())} of {len(seen.share)} pieces right"
        return f"{right}, error of turns {seen.mean('geodesic'):.0f}°, {seen.seconds:.1f} s"

    def _seen(self, score: AnchoredScores) -> ObjectScore:
        """With the anchor `largest`, if it is asked for."""
        return score.largest if "largest" in self.anchors else score.none
