"""Scores of assembled objects, and the means that tables show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean, median
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import Poses
from diffassemble.evaluation.fragment_puzzles import Case
from diffassemble.evaluation.metrics import (
    anchored,
    euler_error,
    geodesic_error,
    piece_chamfer,
    right_pieces,
    shape_chamfer,
    translation_error,
)

# none: poses as they are answered; largest: the whole is moved such that its largest piece stands at its true pose.
Anchor = Literal["none", "largest"]


@dataclass(frozen=True)
class ObjectScore:
    """One object: errors of its pieces, of its shape, and what it took. `whole` and `share` as in `Case`."""

    category: str
    whole: int
    share: Float[Tensor, "n"]
    euler: Float[Tensor, "n"]
    geodesic: Float[Tensor, "n"]
    translation: Float[Tensor, "n"]
    chamfer: Float[Tensor, "n"]
    shape: float
    confidence: Float[Tensor, "n"] | None
    seconds: float

    @property
    def right(self) -> Bool[Tensor, "n"]:
        """Which pieces stand where they belong."""
        return right_pieces(self.chamfer)


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


def score_object(
    case: Case, answer: Poses, anchor: Anchor, confidence: Float[Tensor, "n"] | None = None, seconds: float = 0.0
) -> ObjectScore:
    """How far an answer is from the truth."""
    puzzle, truth = case.puzzle, case.puzzle.truth
    assert truth is not None
    points = puzzle.fragments.points
    answer = Poses(answer.rotation.to(points), answer.translation.to(points))
    if anchor == "largest":
        answer = anchored(answer, truth, int(case.share.argmax()))
    return ObjectScore(
        category=case.category,
        whole=case.whole,
        share=case.share,
        euler=euler_error(answer, truth),
        geodesic=geodesic_error(answer, truth),
        translation=translation_error(answer, truth),
        chamfer=piece_chamfer(points, answer, truth),
        shape=shape_chamfer(points, answer, truth),
        confidence=confidence,
        seconds=seconds,
    )


def plain_figures(scores: Sequence[ObjectScore]) -> Figures:
    """Every object counts alike."""
    return Figures(
        rmse_r=fmean(float(score.euler.mean()) for score in scores),
        rmse_t=100 * fmean(float(score.translation.mean()) for score in scores),
        part_accuracy=100 * fmean(float(score.right.double().mean()) for score in scores),
        part_accuracy_rest=100 * fmean(_right_rest(score) for score in scores),
        all_right=100 * fmean(bool(score.right.all()) for score in scores),
        chamfer=1000 * fmean(score.shape for score in scores),
        geodesic=fmean(float(score.geodesic.mean()) for score in scores),
        geodesic_median=median(float(score.geodesic.mean()) for score in scores),
    )


def class_figures(scores: Sequence[ObjectScore]) -> Figures:
    """Every class counts alike, as in the benchmark: the mean over classes of the means over their objects.

    Only the median is that of all objects.
    """
    several = [group.figures for group in by_class(scores)]
    means = {field.name: fmean(getattr(one, field.name) for one in several) for field in fields(Figures)}
    return replace(Figures(**means), geodesic_median=plain_figures(scores).geodesic_median)


def by_class(scores: Sequence[ObjectScore]) -> tuple[Group, ...]:
    """One group for each class of objects, by name."""
    return _groups([(score.category, score) for score in sorted(scores, key=lambda score: score.category)])


def by_pieces(scores: Sequence[ObjectScore]) -> tuple[Group, ...]:
    """Groups by how many pieces the object broke into."""
    kinds = (("2", 2, 2), ("3–4", 3, 4), ("5–8", 5, 8), ("9–20", 9, 20), ("over 20", 21, 10**9))
    return _groups([(name, one) for name, least, most in kinds for one in scores if least <= one.whole <= most])


def by_size(scores: Sequence[ObjectScore]) -> tuple[PieceGroup, ...]:
    """Groups of pieces by their share of the whole object's area."""
    return _piece_groups(
        (("< 1 %", 0.0, 0.01), ("1–4 %", 0.01, 0.04), ("> 4 %", 0.04, 2.0)), scores, [one.share for one in scores]
    )


def by_confidence(scores: Sequence[ObjectScore]) -> tuple[PieceGroup, ...]:
    """Groups of pieces by how sure the solver was of them; of objects where it said nothing, none."""
    told = [(one, one.confidence) for one in scores if one.confidence is not None]
    bounds = (("< 0.5", 0.0, 0.5), ("0.5–0.9", 0.5, 0.9), ("> 0.9", 0.9, 2.0))
    return _piece_groups(bounds, [one for one, _ in told], [sure for _, sure in told])


def calibration(scores: Sequence[ObjectScore], bins: int = 10) -> tuple[Calibration, ...]:
    """Confidences in equal steps, beside how often they were right; the largest piece of each object is left out.

    It is the anchor, whose place is given to the score.
    """
    sure, right = [torch.zeros(0, dtype=torch.double)], [torch.zeros(0, dtype=torch.bool)]
    for score in scores:
        if score.confidence is not None:
            rest = torch.arange(len(score.share)) != score.share.argmax()
            sure.append(score.confidence[rest].double())
            right.append(score.right[rest])
    value, truth = torch.cat(sure), torch.cat(right).double()
    which = (value * bins).long().clamp(max=bins - 1)
    return tuple(
        Calibration(int((which == i).sum()), float(value[which == i].mean()), 100 * float(truth[which == i].mean()))
        for i in range(bins)
        if (which == i).any()
    )


def _right_rest(score: ObjectScore) -> float:
    """Share of the right pieces but for the largest; an object of one piece has nothing to be wrong."""
    rest = torch.arange(len(score.share)) != score.share.argmax()
    return float(score.right[rest].double().mean()) if rest.any() else 1.0


def _groups(named: Sequence[tuple[str, ObjectScore]]) -> tuple[Group, ...]:
    members: dict[str, list[ObjectScore]] = {}
    for name, score in named:
        members.setdefault(name, []).append(score)
    return tuple(Group(name, len(scores), plain_figures(scores)) for name, scores in members.items())


def _piece_groups(
    bounds: Sequence[tuple[str, float, float]], scores: Sequence[ObjectScore], values: Sequence[Tensor]
) -> tuple[PieceGroup, ...]:
    """Pieces whose value is at least the lower bound and below the upper; groups without pieces are left out."""
    if not scores:
        return ()
    value = torch.cat([own.double() for own in values])
    right, euler, moved, turned = (
        torch.cat([getattr(score, name).double() for score in scores])
        for name in ("right", "euler", "translation", "geodesic")
    )
    groups = []
    for name, low, high in bounds:
        chosen = (value >= low) & (value < high)
        if chosen.any():
            means = [float(column[chosen].mean()) for column in (right, euler, moved, turned)]
            groups.append(PieceGroup(name, int(chosen.sum()), 100 * means[0], means[1], 100 * means[2], means[3]))
    return tuple(groups)
