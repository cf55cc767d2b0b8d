"""Broken objects as a benchmark, by the protocol of Breaking Bad: scattered, damaged, and scored piece by piece.

Lengths are shares of the whole object's longest side, angles are degrees. An answer is scored as it stands (anchor
`none`), and moved as a whole such that its largest piece is at its true pose (`largest`): anchors change how an answer
is scored, not what the solver knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import torch

from diffassemble.assembly.scoring import anchored, piece_chamfer, piece_sizes, right_pieces
from diffassemble.core import Mesh, Poses
from diffassemble.core.pieces import surviving
from diffassemble.core.placements import Placements
from diffassemble.core.seeds import random_stream
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.evaluation import metrics
from diffassemble.evaluation.rows import Part, Score
from diffassemble.evaluation.sweep import CUTTING, LOSING, Case, Cell, Layout, refuse
from diffassemble.fragments.breaking import scatter
from diffassemble.fragments.damage import Damage

# However few points a whole object has, a piece of it has this many.
LEAST_POINTS = 20
Anchor = Literal["none", "largest"]
ANCHORS: tuple[Anchor, ...] = ("none", "largest")
ERROR_LABELS = {"rmse_r": "RMSE(R), degrees", "rmse_t": "RMSE(T) × 100", "part_accuracy": "part accuracy, %"}
# Groups of objects by their pieces, and of pieces by two of their columns: from the lower bound to below the upper.
_BY_PIECES = (("2", 2, 3), ("3–4", 3, 5), ("5–8", 5, 9), ("9–20", 9, 21), ("over 20", 21, 10**9))
_BY_COLUMN = {
    "area": (("< 1 %", 0.0, 0.01), ("1–4 %", 0.01, 0.04), ("≥ 4 %", 0.04, 2.0)),
    "confidence": ((f"< {LIKELY}", 0.0, LIKELY), (f"{LIKELY}–{SURE}", LIKELY, SURE), (f"≥ {SURE}", SURE, 2.0)),
}


@runtime_checkable
class Broken(Protocol):
    """An object broken once: its class, what it is called, and its fragments where they belong."""

    @property
    def category(self) -> str: ...
    @property
    def name(self) -> str: ...
    def meshes(self) -> Sequence[Mesh]: ...


def score_object(case: Case, found: Placements, anchor: Anchor, seconds: float = 0.0) -> Score:
    """Errors of an answer seen with an anchor: its figures are means over the pieces, its columns the pieces' own.

    Figures: RMSE of Euler angles and geodesic error in degrees, RMSE of translation × 100, percent of pieces at their
    place (of all, and without the largest), 100 if all are, and the Chamfer distance of the shape × 1000.
    """
    puzzle, truth = case.puzzle, case.puzzle.truth
    assert truth is not None
    points, guess = puzzle.fragments.points, found.poses if found.guess is None else found.guess
    answer, given = (Poses(one.rotation.to(points), one.translation.to(points)) for one in (guess, found.poses))
    largest = int(case.share.argmax())
    if anchor == "largest":
        answer = anchored(answer, truth, largest)
    right = right_pieces(piece_chamfer(points, answer, truth)).double()
    columns = {
        "area": case.share.double(),
        "confidence": found.confidence.double(),
        "right": right,
        "rmse_r": metrics.euler_error(answer, truth),
        "rmse_t": 100 * metrics.translation_error(answer, truth),
        "geodesic": metrics.geodesic_error(answer, truth),
    }
    rest = torch.arange(len(right)) != largest
    figures = {name: float(columns[name].mean()) for name in ("rmse_r", "rmse_t")}
    figures |= {
        "part_accuracy": 100 * float(right.mean()),
        "part_accuracy_rest": 100 * float(right[rest].mean()) if rest.any() else 100.0,
        "all_right": 100.0 * bool(right.all()),
        "chamfer": 1000 * metrics.shape_chamfer(points, answer, truth),
        "geodesic": float(columns["geodesic"].mean()),
    }
    sure = metrics.confirmed(found, lambda some: metrics.fragment_pairs_agree(points[some], given[some], truth[some]))
    own = {name: tuple(column.tolist()) for name, column in columns.items()}
    return Score(len(right), figures, seconds, *sure, category=case.category, whole=case.whole, columns=own)


def piece_parts(by: str, scores: Sequence[Score]) -> list[Part]:
    """Means over the pieces, whichever object they belong to, by their share of the area or their confidence."""
    names = (by, "right", "rmse_r", "rmse_t", "geodesic")
    value, right, *errors = (np.concatenate([score.columns[name] for score in scores]) for name in names)
    found = []
    for name, low, high in _BY_COLUMN[by]:
        chosen = (value >= low) & (value < high)
        if chosen.any():
            means = [100 * float(right[chosen].mean()), *(float(error[chosen].mean()) for error in errors)]
            figures = dict(zip(("part_accuracy", *names[2:]), means, strict=True))
            found.append(Part(by, name, int(chosen.sum()), figures))
    return found


@dataclass(frozen=True)
class ObjectCell(Cell):
    """Fractures, how they are damaged, and the anchors under which answers are scored (the views).

    `missing` is the share of pieces taken away, though two stay; `noise` the deviation that is added to vertices;
    with `points` the pieces are clouds without faces, so many points a whole object, shared out by area, with
    `points_each` so many points each; `wear` is the radius with which breaks are worn round. None of it changes how
    the pieces are scattered; what is missing at 10 % is missing at 20 %, too.
    """

    LAYOUT: ClassVar[Layout] = Layout(
        things="objects",
        columns=(
            ("R\ngeod.", "{rmse_r:.1f}°\n{geodesic:.1f}°"),
            ("T\nCD", "{rmse_t:.1f}\n{chamfer:.1f}"),
            ("PA", "{part_accuracy:.1f}\n{part_accuracy_low:.1f}–{part_accuracy_high:.1f}"),
            ("PA rest\nall right", "{part_accuracy_rest:.1f}\n{all_right:.1f}"),
            ("plain PA\nR", "{plain_part_accuracy:.1f}\n{plain_rmse_r:.1f}°"),
        ),
        caption="Means over classes of class means; plain: means over objects. R: RMSE of Euler angles, geod.: "
        "geodesic error, in degrees (chance: R 86, geod. 126). T: RMSE of translation × 100. PA: percent of pieces at "
        "their place (Chamfer distance < 0.01) with its 95 % interval; rest: without the largest piece. All right: "
        "percent of objects. CD: Chamfer distance of the shape × 1000. Anchor largest: the whole is moved such that "
        "its largest piece is at its true pose; none: poses as answered.",
        drawn=ERROR_LABELS,
        rank=("part_accuracy", "-chamfer"),
    )
    CONDITIONS: ClassVar[dict[str, str]] = {
        **{"missing": "{:.0%} missing", "noise": "{:.1%} noise", "points": "{} points"},
        **{"points_each": "{} points each", "wear": "{:.1%} worn"},
    }
    MEDIANS: ClassVar[tuple[str, ...]] = ("geodesic",)

    data: str
    fractures: Sequence[Broken]
    missing: float = 0.0
    noise: float = 0.0
    points: int = 0
    anchors: tuple[Anchor, ...] = ("none",)
    wear: float = 0.0
    points_each: int = 0

    @property
    def usual_seeds(self) -> int:  # type: ignore[override]
        return 5 if self.missing else 1  # the result depends on which pieces are missing

    @property
    def views(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.anchors

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

    def case(self, index: int, seed: int) -> Case:
        """Scattered fragments, less what is lost."""
        fracture = self.fractures[index]
        puzzle = scatter(fracture.meshes(), random_stream(seed, index, CUTTING))
        losing = random_stream(seed, index, LOSING)
        share = piece_sizes(puzzle.fragments)
        stay = surviving(len(puzzle), min(self.missing, max(0.0, 1 - 2 / len(puzzle))), losing)
        clean = puzzle.reordered(stay)
        # Breaks are worn between all pieces, missing ones included.
        worn = Damage(wear=self.wear).of_puzzle(puzzle, losing).reordered(stay)
        counts = tuple(max(LEAST_POINTS, round(self.points * part)) for part in share[stay].tolist())
        damage = Damage(noise=self.noise, points=counts if self.points else self.points_each)
        given = damage.of_puzzle(worn, losing).without_truth()  # whose points are drawn anew
        return Case(fracture.name, fracture.category, clean, given, len(puzzle), share[stay])

    def identity(self, index: int, seed: int) -> dict[str, str | int | float]:
        """All that an object depends on."""
        later = {"wear", "points_each"}  # which older files of scores lack
        damage = {name: value for name, value in self.setting.items() if value or name not in later}
        return {"object": self.fractures[index].name, "data": self.data, "index": index, "seed": seed, **damage}

    def score(self, case: Case, found: Placements, seconds: float) -> dict[str, Score]:
        """Errors of an answer seen with either anchor; unplaced pieces count at their best guess."""
        return {anchor: score_object(case, found, anchor, seconds) for anchor in ANCHORS}

    def parts(self, scores: Sequence[Score]) -> tuple[Part, ...]:
        """Objects by class and by number of pieces, pieces by size and by confidence."""
        classes = dict.fromkeys(sorted(score.category for score in scores))
        groups = [("class", name, [score for score in scores if score.category == name]) for name in classes]
        for name, least, above in _BY_PIECES:
            groups.append(("pieces", name, [score for score in scores if least <= score.whole < above]))
        found = [
            Part(by, name, len(own), {key: fmean(score[key] for score in own) for key in own[0].figures})
            for by, name, own in groups
            if own
        ]
        return (*found, *(part for by in _BY_COLUMN for part in piece_parts(by, scores)))
