"""Flat pieces of any outline as a benchmark: real ones, or cut from pictures; how the whole stands does not matter.

Where only rows and columns are known, the steps of the lattice are those of the answer's own neighbours; where only an
order is known, the answer is looked at as an order, too: shredded pages do not tell how far strips were moved along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from diffassemble.assembly.scoring import outline_errors
from diffassemble.core import OutlinePieces, Poses, Puzzle, Step
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import random_stream
from diffassemble.evaluation.metrics import bootstrap_interval, right_pairs
from diffassemble.evaluation.outline_data import Layout, read_recorded
from diffassemble.evaluation.sweep import CUTTING, LOSING, Case, Interval, Measured, peak_megabytes, refuse
from diffassemble.io.pictures import read_picture
from diffassemble.outlines.coverage import coverage
from diffassemble.outlines.cut import check_cut, cut_shapes
from diffassemble.outlines.neighbours import touching

SURE = 0.9
# Overlap is measured with pieces about so many pixels wide, and with no more pixels in all.
_WIDE, _MOST_PIXELS = 48.0, 8e6
# Neighbours of an answer tell the steps of a lattice if they lie within these shares of what areas suggest.
_LIKELY = (0.8, 1.25)


@dataclass(frozen=True)
class Recorded:
    """Folders of pieces whose places are known; the same whatever the seed, but listed in an order by chance."""

    folders: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.folders)

    def name(self, index: int) -> str:
        return "/".join(self.folders[index].resolve().parts[-2:])

    def puzzle(self, index: int, seed: int) -> tuple[Puzzle, Layout]:
        return read_recorded(self.folders[index])


@dataclass(frozen=True)
class CutFromPictures:
    """Pictures, cut into pieces of a shape: how many, how large (0: as the picture allows), and what they lose."""

    pictures: tuple[Path, ...]
    shape: str
    pieces: int
    erode: int = 0
    size: int = 0

    def __len__(self) -> int:
        return len(self.pictures)

    def name(self, index: int) -> str:
        picture = "/".join(self.pictures[index].parts[-2:])
        return f"{picture} {self.shape} {self.pieces}, {self.erode} px eroded, size {self.size}"

    def puzzle(self, index: int, seed: int) -> tuple[Puzzle, Layout]:
        cutting = random_stream(seed, index, CUTTING)
        picture, size = read_picture(self.pictures[index]), self.size or None
        return cut_shapes(picture, self.shape, self.pieces, cutting, size=size, erode=self.erode), "free"


@dataclass(frozen=True)
class OutlineScore:
    """One puzzle: percent of pieces and of neighbour pairs right, mean errors in pixels and degrees, percent overlap.

    `sure` counts the pieces told above 0.9, `sure_right` those of them that are right; what was left out is wrong, but
    has no error.
    """

    pieces: int
    accuracy: float
    neighbours: float
    position_error: float
    rotation_error: float
    overlap: float
    left_out: int
    sure: int
    sure_right: int
    seconds: float


def score_outlines(puzzle: Puzzle, layout: Layout, step: Step, seconds: float) -> OutlineScore:
    """How much of an answer is right."""
    pieces, truth, answer = puzzle.outlines, puzzle.truth, step.poses
    result = step.placements
    assert truth is not None
    placed = result.numbers.cpu() >= 0
    overlap = overlap_share(pieces, answer, placed)
    pairs = true_neighbours(pieces, truth, layout)
    if layout == "lattice":
        truth = lattice_truth(answer, truth, pairs, float(pieces.areas.sqrt().mean()))
    elif layout == "strips":
        answer = ordered_strips(answer, truth, placed, float(pieces.widths.mean()))
    errors = outline_errors(pieces, answer, truth)
    right = errors.right & placed
    joined = right_pairs(pieces, answer, truth, pairs) & placed[pairs].all(1)
    told = placed if placed.any() else torch.ones_like(placed)
    sure = result.confidence.cpu()
    return OutlineScore(
        pieces=len(puzzle),
        accuracy=100 * float(right.double().mean()),
        neighbours=100 * float(joined.double().mean()) if len(joined) else 100.0,
        position_error=float(errors.apart[told].mean()),
        rotation_error=float(errors.degrees[told].mean()),
        overlap=100 * overlap,
        left_out=int((~placed).sum()),
        sure=int((sure > SURE).sum()),
        sure_right=int((right & (sure > SURE)).sum()),
        seconds=seconds,
    )


def true_neighbours(pieces: OutlinePieces, truth: Poses, layout: Layout) -> Int[Tensor, "m 2"]:
    """Pairs that touch in truth: one step apart on a lattice or in an order, else by their outlines."""
    if layout == "free":
        return touching(pieces, truth).pairs
    step = float((pieces.areas.sqrt() if layout == "lattice" else pieces.widths).mean())
    cells = (truth.translation / step).round()
    apart = (cells[:, None] - cells).abs().sum(-1)
    return (apart.triu(1) == 1).nonzero()


def lattice_truth(answer: Poses, truth: Poses, pairs: Int[Tensor, "m 2"], step: float) -> Poses:
    """A truth told by rows and columns, whose steps are those between pieces that the answer puts beside each other."""
    way = truth.translation[pairs[:, 1]] - truth.translation[pairs[:, 0]]
    # Seen in the frame in which the first piece stands as in truth.
    back = truth.rotation[pairs[:, 0]] @ answer.rotation[pairs[:, 0]].cpu().mT
    moved = answer.translation[pairs[:, 1]] - answer.translation[pairs[:, 0]]
    moved = (back @ moved.cpu()[..., None])[..., 0]
    scale = torch.ones(2)
    for axis in range(2):
        found = (moved * way.sign())[way[:, axis].abs() > step / 2, axis] / step
        likely = found[(found > _LIKELY[0]) & (found < _LIKELY[1])]
        if len(likely):
            scale[axis] = likely.median()
    return Poses(truth.rotation, truth.translation * scale)


def ordered_strips(answer: Poses, truth: Poses, placed: Bool[Tensor, "n"], step: float) -> Poses:
    """Strips in the order in which an answer puts them, level with each other and one step apart.

    What was left out is far away. Whether the order runs to the right or to the left is how the whole is turned.
    """
    across = (answer.rotation.cpu() @ truth.rotation.mT)[:, :, 0].double()
    # Strips that are upside down run the other way: doubled, both angles are the same.
    doubled = 2 * torch.atan2(across[:, 1], across[:, 0])
    angle = torch.atan2(doubled.sin().sum(), doubled.cos().sum()) / 2
    along = answer.translation.cpu().double() @ torch.stack([angle.cos(), angle.sin()])
    rank = torch.where(placed, along, torch.inf).argsort().argsort().float()
    rank = torch.where(placed, rank, rank + 1000)
    direction = torch.stack([angle.cos(), angle.sin()]).float()
    return Poses(answer.rotation.cpu(), step * rank[:, None] * direction)


def overlap_share(pieces: OutlinePieces, poses: Poses, placed: Bool[Tensor, "n"]) -> float:
    """The share of the pieces' area that lies on other pieces."""
    turns, shifts = poses.rotation.cpu().double().numpy(), poses.translation.cpu().double().numpy()
    chosen = [index for index in range(len(pieces)) if placed[index]]
    if not chosen:
        return 0.0
    moved = [pieces.contours[index].double().numpy() @ turns[index].T + shifts[index] for index in chosen]
    low, high = (np.stack([getattr(points, name)(0) for points in moved]) for name in ("min", "max"))
    extent = high.max(0) - low.min(0) + 1e-6
    scale = min(_WIDE / float(pieces.widths.median()), float(np.sqrt(_MOST_PIXELS / extent.prod())))
    width, height = (np.ceil(extent * scale).astype(int) + 2).tolist()
    cover = np.zeros((height, width), int)
    for points in moved:
        shown = (points - low.min(0)) * scale + 0.5
        corner = np.floor(shown.min(0)).astype(int)
        right, bottom = (np.ceil(shown.max(0)).astype(int) + 1 - corner).tolist()
        # Whole pixels: those that two pieces share belong to one of them.
        part = coverage(shown - corner, bottom, right) > 0.5
        cover[corner[1] : corner[1] + bottom, corner[0] : corner[0] + right] += part[
            : height - corner[1], : width - corner[0]
        ]
    return float(np.maximum(cover - 1, 0).sum() / cover.sum())


@dataclass(frozen=True)
class OutlineRow:
    """Means over puzzles: accuracy, neighbours and overlap in percent, errors in pixels and degrees.

    `pieces` is the mean number of pieces given, `missing` the share that is not. `left_out` are pieces a puzzle. `sure`
    is the percentage of pieces told above 0.9, `precision` how many percent of these are right, over all puzzles; it is
    nothing where no piece is sure. `erode` and `shape` are those of pieces cut from pictures.
    """

    HEADINGS: ClassVar[tuple[str, ...]] = (
        *("solver", "puzzles", "count", "accuracy", "neigh-\nbours", "position\nangle", "over-\nlap", "sure\nright"),
        "cost",
    )
    CAPTION: ClassVar[str] = (
        "Percent of pieces at their place, within a quarter of a piece and 5°, after the best motion of the whole; "
        "below it the 95 % interval over puzzles. Neighbours: percent of true neighbours that stand to each other as "
        "in truth. Mean errors of what was placed in pixels and degrees. Overlap: percent of the area. Sure: percent "
        "of pieces told above 0.9, and below it how many percent of these are right. Seconds per puzzle; most memory "
        "so far."
    )

    solver: str
    data: str
    pieces: float
    missing: float
    puzzles: int
    accuracy: float
    neighbours: float
    position_error: float
    rotation_error: float
    overlap: float
    seconds_per_puzzle: float
    perfect: float
    left_out: float
    sure: float
    precision: float | None
    shape: str
    erode: int
    peak_mb: float
    seed: int

    def describe(self) -> str:
        """What the row was measured on."""
        words = [f"{self.pieces:g} pieces" + (f", {self.shape}" if self.shape else "")]
        words += [f"{self.missing:.0%} missing"] if self.missing else []
        words += [f"{self.erode} px eroded"] if self.erode else []
        return f"{self.data}\n{', '.join(words)}"

    def cells(self, intervals: Mapping[str, Interval]) -> list[str]:
        """Two lines: what matters, and what stands below it."""
        low, high = intervals["accuracy"]
        precision = "–" if self.precision is None else f"{self.precision:.1f}"
        return [
            *(self.solver, self.describe(), str(self.puzzles), f"{self.accuracy:.1f}\n{low:.1f}–{high:.1f}"),
            *(f"{self.neighbours:.1f}", f"{self.position_error:.1f} px\n{self.rotation_error:.1f}°"),
            *(f"{self.overlap:.1f}", f"{self.sure:.1f}\n{precision}"),
            f"{self.seconds_per_puzzle:.2f} s\n{self.peak_mb:.0f} MB",
        ]

    def groups(self) -> Mapping[tuple[str, str], Mapping[str, float]]:
        """Puzzles are not told apart."""
        return {}


@dataclass(frozen=True)
class OutlineCell:
    """Puzzles of flat pieces, and the share of them that is missing."""

    THINGS: ClassVar[str] = "puzzles"
    FIGURES: ClassVar[Mapping[str, str]] = {"accuracy": "pieces right, %"}

    data: str
    source: Recorded | CutFromPictures
    missing: float = 0.0

    @property
    def usual_seeds(self) -> int:
        return 1

    def __len__(self) -> int:
        return len(self.source)

    def check(self) -> None:
        """Refuse what no puzzles can be made of."""
        refuse("there are no puzzles to evaluate on; pass a folder that holds some", not len(self.source))
        if isinstance(self.source, CutFromPictures):
            check_cut(self.source.shape, self.source.pieces, self.missing, self.source.erode)

    def small(self) -> OutlineCell:
        """The first puzzle, whole."""
        return OutlineCell(self.data, self.source)

    def case(self, index: int, seed: int) -> Case:
        """Some of the pieces, in an order that tells nothing."""
        puzzle, layout = self.source.puzzle(index, seed)
        whole = len(puzzle)
        puzzle = puzzle.reordered(surviving(whole, self.missing, random_stream(seed, index, LOSING)))
        share = puzzle.outlines.areas / puzzle.outlines.areas.sum()
        return Case(self.source.name(index), layout, puzzle, puzzle.without_truth(), whole, share)

    def identity(self, index: int, seed: int) -> dict[str, str | int | float]:
        """All that a puzzle follows from."""
        return {"puzzle": self.source.name(index), "index": index, "seed": seed, "missing": self.missing}

    def score(self, case: Case, step: Step, seconds: float) -> OutlineScore:
        """How much of an answer is right."""
        layout: Any = case.category
        return score_outlines(case.puzzle, layout, step, seconds)

    def read_score(self, entry: dict[str, Any]) -> OutlineScore:
        """A score that was written as JSON."""
        return OutlineScore(**entry)

    def rows(self, solver: str, seed: int, draws: Sequence[Sequence[OutlineScore]]) -> list[Measured]:
        """One row, with the intervals of its percentages."""
        scores = [score for draw in draws for score in draw]

        def mean(name: str) -> float:
            return fmean(getattr(score, name) for score in scores)

        sure = sum(score.sure for score in scores)
        right = sum(score.sure_right for score in scores)
        cut = self.source if isinstance(self.source, CutFromPictures) else None
        row = OutlineRow(
            *(solver, self.data, round(mean("pieces"), 1), self.missing, len(scores)),
            *(mean("accuracy"), mean("neighbours"), mean("position_error"), mean("rotation_error"), mean("overlap")),
            seconds_per_puzzle=mean("seconds"),
            perfect=100 * fmean(score.accuracy == 100 for score in scores),
            left_out=mean("left_out"),
            sure=100 * sure / sum(score.pieces for score in scores),
            precision=100 * right / sure if sure else None,
            shape="" if cut is None else cut.shape,
            erode=0 if cut is None else cut.erode,
            peak_mb=round(peak_megabytes(), 1),
            seed=seed,
        )
        names = ("accuracy", "neighbours")
        return [Measured(row, {name: bootstrap_interval([getattr(one, name) for one in scores]) for name in names})]

    def rank(self, score: OutlineScore) -> tuple[float, ...]:
        """By what is right."""
        return (score.accuracy,)

    def words(self, score: OutlineScore) -> str:
        """A score for people."""
        return f"{score.accuracy:.1f} % right, {score.neighbours:.1f} % of neighbours, {score.seconds:.1f} s"
