"""How many of the pairs of fragments that touch are matched rightly, and how many of those above 0.9 are right.

All that `mend` and `hybrid` do for broken objects rests on these matches, so they have a table of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table
from scipy.spatial import cKDTree

from diffassemble.cli.progress import show
from diffassemble.cli.sweep import object_cells
from diffassemble.core.thresholds import LIKELY, SURE
from diffassemble.evaluation.fragments import ObjectCell
from diffassemble.evaluation.report import make_table, png, write_rows
from diffassemble.evaluation.sweep import Case, Draws
from diffassemble.fragments.clusters import Fragment
from diffassemble.fragments.contact import close, compose, inverse, moved, pose_rows
from diffassemble.fragments.matches import PairSearch, prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.io.atomic import write_file
from diffassemble.kinds.fragments import FRACTURE_MATCHING
from diffassemble_research.evaluate import PaperOptions
from diffassemble_research.tables import table_outputs

# Points of level 0 lie on each other within so many spacings, near each other's planes, and facing; two fragments
# touch from so many such points on, of the 40,000 that a whole object has.
_NEAR, _PLANE, _FACING, _LEAST = 1.2, 0.35, -0.3, 6
# A match is right if it is turned by at most so many degrees, and off by at most so many spacings.
_DEGREES, _OFF = 5.0, 2.5
_SIZES = ((0.0, 0.01, "under 1 %"), (0.01, 0.04, "1 to 4 %"), (0.04, 2.0, "over 4 %"))
_CONTACTS = ((6.0, 20.0, "6 to 19"), (20.0, 100.0, "20 to 99"), (100.0, 1e9, "100 and more"))


@dataclass(frozen=True)
class PairRow:
    """Two fragments of an object; `smaller` is the share of the whole surface that the smaller one has.

    `contact` is how many points of level 0 touch, `right` the probability of the best right match, 0 if none is;
    `sure` matches have a probability of 0.9 or more, `sure_right` of them are right.
    """

    fracture: str
    category: str
    noise: float
    seed: int
    smaller: float
    contact: int
    right: float
    sure: int
    sure_right: int

    @property
    def touching(self) -> bool:
        return self.contact >= _LEAST


def measure_pairs(case: Case, noise: float, seed: int, models: FractureModels) -> Iterator[PairRow]:
    """Match every two fragments of a puzzle."""
    assert case.puzzle.truth is not None
    fragments = prepare(case.given.fragments, models, seed)
    truth = pose_rows(case.puzzle.truth)
    search = PairSearch(fragments, models, seed)
    whole = sum(fragment.area for fragment in fragments)
    for first in range(len(fragments)):
        for second in range(first):
            wanted = compose(inverse(truth[second]), truth[first])
            found = search.thoroughly(first, second)
            one, two = fragments[first], fragments[second]
            middle, off = one.pyramid.levels[0].points.mean(0), _OFF * one.spacing
            right = [close(match.pose, wanted, middle, _DEGREES, off) for match in found]
            judged = [(match.probability, true) for match, true in zip(found, right, strict=True)]
            yield PairRow(
                *(case.name, case.category, noise, seed, min(one.area, two.area) / whole),
                contact=touching_points(one, two, wanted, noise),
                right=max((chance for chance, true in judged if true), default=0.0),
                sure=sum(chance >= SURE for chance, _ in judged),
                sure_right=sum(chance >= SURE and true for chance, true in judged),
            )


def touching_points(first: Fragment, second: Fragment, pose: np.ndarray, noise: float = 0.0) -> int:
    """Points of the first fragment that lie on the second, facing it, at a pose."""
    own, other = first.pyramid.levels[0], second.pyramid.levels[0]
    points, normals = moved(pose, own.points, own.normals)
    reach = _NEAR * first.spacing + 2.5 * noise
    far, near = cKDTree(other.points).query(points, 1, distance_upper_bound=reach)
    close_by = np.flatnonzero(np.isfinite(far))
    at = near[close_by]
    height = np.abs(((points[close_by] - other.points[at]) * other.normals[at]).sum(1))
    facing = (normals[close_by] * other.normals[at]).sum(1)
    return int(((height < _PLANE * first.spacing + 2.5 * noise) & (facing < _FACING)).sum())


def pair_groups(rows: Sequence[PairRow]) -> Iterator[tuple[str, list[PairRow]]]:
    """All pairs, then by size of the smaller piece, by contact, by noise and by class."""

    def between(field: Callable[[PairRow], float], low: float, high: float) -> list[PairRow]:
        return [row for row in rows if low <= field(row) < high]

    yield "all", list(rows)
    for low, high, name in _SIZES:
        yield f"smaller piece {name}", between(lambda row: row.smaller, low, high)
    for low, high, name in _CONTACTS:
        yield f"touching points {name}", between(lambda row: row.contact, low, high)
    noises = sorted({row.noise for row in rows})
    for noise in noises if len(noises) > 1 else []:
        yield f"noise {100 * noise:g} %", [row for row in rows if row.noise == noise]
    for category in sorted({row.category for row in rows}):
        yield category, [row for row in rows if row.category == category]


def recall(rows: Sequence[PairRow]) -> float | None:
    """Percent of the touching pairs with a right match at 0.5 or more."""
    touching = [row.right >= LIKELY for row in rows if row.touching]
    return 100 * fmean(touching) if touching else None


def precision(rows: Sequence[PairRow]) -> float | None:
    """Percent of the matches at 0.9 or more that are right."""
    sure = sum(row.sure for row in rows)
    return 100 * sum(row.sure_right for row in rows) / sure if sure else None


def pair_table(rows: Sequence[PairRow]) -> Table:
    """A line for each group."""
    lines = []
    for name, own in pair_groups(rows):
        touching, sure = sum(row.touching for row in own), sum(row.sure for row in own)
        shares = ["" if value is None else f"{value:.1f}" for value in (recall(own), precision(own))]
        lines.append([name, str(touching), shares[0], str(sure), shares[1]])
    caption = "Found: touching pairs with a right match at 0.5 or more. Sure: matches at 0.9 or more."
    return make_table(("pairs", "touching", "found\n%", "sure", "right\n%"), lines, caption=caption)


def pair_figure(rows: Sequence[PairRow]) -> bytes:
    """Bars of what was found, group by group."""
    groups = [(name, recall(own)) for name, own in pair_groups(rows)]
    known = [(name, value) for name, value in groups if value is not None]
    figure = Figure(figsize=(7, 0.28 * len(known) + 1), layout="constrained")
    axes = figure.subplots()
    axes.barh([name for name, _ in known], [value for _, value in known], color="#4477aa")
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="touching pairs found (%)")
    return png(figure)


def evaluate_pairs(options: PaperOptions) -> None:
    """Match every two fragments of all broken objects."""
    rows_file, figure = table_outputs(options, "pairs")
    models, rows = FractureModels.from_pretrained(options.model or FRACTURE_MATCHING), list[PairRow]()
    for cell in object_cells(options):
        assert isinstance(cell, ObjectCell)
        draws = Draws(cell, options.limit, options.puzzles, options.seed, options.seeds or 1)
        draws.check()
        for number in range(len(draws)):
            case, _ = draws.case(number)
            rows += measure_pairs(case, cell.noise, draws.place(number)[1], models)
            print(f"{case.name}: {len(rows)} pairs so far", flush=True)
            write_rows(rows, rows_file)
    show(pair_table(rows))
    write_file(figure, pair_figure(rows))
    print(f"wrote {len(rows)} rows to {rows_file} and drew {figure}")
