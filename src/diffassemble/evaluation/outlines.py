"""Flat pieces of any outline as a benchmark: real ones, or cut from pictures; scores ignore how the whole is moved.

Places are known of puzzle folders, and of pictures of pieces with a table. A table `truth.csv` names the pieces by
`id`, the names of their files without ending, and has one of these groups of columns:

- `x,y,degrees`: turn the picture clockwise by `degrees` about its middle, and put that to (x, y), in pixels.
- `row,column,upright`: jigsaw pieces on a lattice; a picture turned back, anticlockwise, by `upright` is upright.
- `position,turned`: strips from left to right; `turned` is 180 where the picture is upside down.

A table with the name of a photograph beside it, such as `sheet.csv` of `sheet.jpg`, describes the pieces in that:
`x,y`, the centre of a piece's area there, and `row,column,upright`.

Where only rows and columns are known, the steps of the lattice are those of the answer's own neighbours; where only an
order is known, the answer is scored as an order, too: shifts of strips along each other are unknown.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from skimage.draw import polygon
from torch import Tensor

from diffassemble.assembly.scoring import outline_errors
from diffassemble.core import InputError, OutlinePieces, Poses, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.placements import Placements
from diffassemble.core.poses import plane_rotations
from diffassemble.core.seeds import random_stream
from diffassemble.evaluation.metrics import confirmed, flat_pairs_agree, right_pairs
from diffassemble.evaluation.rows import Score
from diffassemble.evaluation.sweep import CUTTING, LOSING, Case, Cell, Layout, refuse
from diffassemble.io.detect import detect
from diffassemble.io.photo.segmentation import find_pieces
from diffassemble.io.pictures import is_picture, read_picture
from diffassemble.io.puzzles import open_input, read_puzzle
from diffassemble.outlines.cut import check_cut, cut_shapes
from diffassemble.outlines.neighbours import touching

Order = Literal["free", "lattice", "strips"]
"""whether places are given in pixels, by rows and columns, or by their order"""
TABLE = "truth.csv"
_COLUMNS: dict[Order, tuple[str, ...]] = {
    "lattice": ("row", "column", "upright"),
    "strips": ("position", "turned"),
    "free": ("x", "y", "degrees"),
}


@dataclass(frozen=True)
class FlatScoring:
    """How overlap and lattices of answers are measured."""

    piece_pixels: float = 48.0
    """overlap is measured with pieces about so many pixels wide"""
    most_pixels: float = 8e6
    """and with no more pixels in all"""
    likely_step: tuple[float, float] = (0.8, 1.25)
    """neighbours in an answer give the steps of a lattice if they are within these shares of what areas suggest"""


SCORING = FlatScoring()


@dataclass(frozen=True)
class Recorded:
    """Folders of pieces whose places are known; the same whatever the seed, but listed in random order."""

    folders: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.folders)

    def name(self, index: int) -> str:
        return "/".join(self.folders[index].resolve().parts[-2:])

    def puzzle(self, index: int, seed: int) -> tuple[Puzzle, Order]:
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

    def puzzle(self, index: int, seed: int) -> tuple[Puzzle, Order]:
        cutting = random_stream(seed, index, CUTTING)
        picture, size = read_picture(self.pictures[index]), self.size or None
        return cut_shapes(picture, self.shape, self.pieces, cutting, size=size, erode=self.erode), "free"


def score_outlines(puzzle: Puzzle, layout: Order, found: Placements, seconds: float) -> Score:
    """Percent of pieces and of neighbour pairs right, mean errors in pixels and degrees, percent of overlap.

    Unplaced pieces are wrong, but have no error.
    """
    pieces, truth, answer = puzzle.outlines, puzzle.truth, found.poses
    assert truth is not None
    placed = found.numbers.cpu() >= 0
    overlap = overlap_share(pieces, answer, placed)
    pairs = true_neighbours(pieces, truth, layout)
    if layout == "lattice":
        truth = lattice_truth(answer, truth, pairs, float(pieces.areas.sqrt().mean()))
    elif layout == "strips":
        answer = ordered_strips(answer, truth, placed, float(pieces.widths.mean()))
    errors = outline_errors(pieces, answer, truth)
    right = errors.right & placed
    joined = right_pairs(pieces, answer, truth, pairs) & placed[pairs].all(1)
    counted = placed if placed.any() else torch.ones_like(placed)
    accuracy = 100 * float(right.double().mean())
    figures = {
        "accuracy": accuracy,
        "neighbours": 100 * float(joined.double().mean()) if len(joined) else 100.0,
        "position_error": float(errors.apart[counted].mean()),
        "rotation_error": float(errors.degrees[counted].mean()),
        "overlap": 100 * overlap,
        "perfect": 100.0 * (accuracy == 100),
        "unplaced": float((~placed).sum()),
    }
    sure = confirmed(found, lambda some: flat_pairs_agree(pieces.widths[some], answer[some], truth[some]), right)
    return Score(len(puzzle), figures, seconds, *sure)


def true_neighbours(pieces: OutlinePieces, truth: Poses, layout: Order) -> Int[Tensor, "m 2"]:
    """Pairs that touch in truth: one step apart on a lattice or in an order, else by their outlines."""
    if layout == "free":
        return touching(pieces, truth).pairs
    step = float((pieces.areas.sqrt() if layout == "lattice" else pieces.widths).mean())
    cells = (truth.translation / step).round()
    apart = (cells[:, None] - cells).abs().sum(-1)
    return (apart.triu(1) == 1).nonzero()


def lattice_truth(answer: Poses, truth: Poses, pairs: Int[Tensor, "m 2"], step: float) -> Poses:
    """The truth of rows and columns, with the median steps between true neighbours in the answer."""
    way = truth.translation[pairs[:, 1]] - truth.translation[pairs[:, 0]]
    # In the frame in which the first piece is as in truth.
    back = truth.rotation[pairs[:, 0]] @ answer.rotation[pairs[:, 0]].cpu().mT
    moved = answer.translation[pairs[:, 1]] - answer.translation[pairs[:, 0]]
    moved = (back @ moved.cpu()[..., None])[..., 0]
    scale = torch.ones(2)
    for axis in range(2):
        found = (moved * way.sign())[way[:, axis].abs() > step / 2, axis] / step
        likely = found[(found > SCORING.likely_step[0]) & (found < SCORING.likely_step[1])]
        if len(likely):
            scale[axis] = likely.median()
    return Poses(truth.rotation, truth.translation * scale)


def ordered_strips(answer: Poses, truth: Poses, placed: Bool[Tensor, "n"], step: float) -> Poses:
    """Strips in the order in which an answer puts them, level with each other and one step apart.

    Unplaced strips are far away. Whether the order is to the right or to the left depends on how the whole is turned.
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
    """The share of the pieces' area that is covered by several pieces; whole pixels belong to a piece or not."""
    moved = [one for one, there in zip(pieces.placed_contours(poses), placed.tolist(), strict=True) if there]
    if not moved:
        return 0.0
    every = np.concatenate(moved)
    low, extent = every.min(0), np.ptp(every, axis=0) + 1e-6
    scale = min(SCORING.piece_pixels / float(pieces.widths.median()), (SCORING.most_pixels / extent.prod()) ** 0.5)
    cover = np.zeros(np.ceil(extent * scale).astype(int)[::-1] + 2, int)
    for points in moved:
        cover[polygon(*((points - low) * scale + 0.5).T[::-1], cover.shape)] += 1
    return float(np.maximum(cover - 1, 0).sum() / cover.sum())


@dataclass(frozen=True)
class OutlineCell(Cell):
    """Puzzles of flat pieces, and the share of them that is missing."""

    LAYOUT: ClassVar[Layout] = Layout(
        things="puzzles",
        columns=(
            ("accuracy", "{accuracy:.1f}\n{accuracy_low:.1f}–{accuracy_high:.1f}"),
            ("neighb.\nperfect", "{neighbours:.1f}\n{perfect:.1f}"),
            ("position\nangle", "{position_error:.1f} px\n{rotation_error:.1f}°"),
            ("overlap\nunplaced", "{overlap:.1f}\n{unplaced:.1f}"),
        ),
        caption="Percent of pieces at their place, within a quarter of a piece and 5°, after the best motion of the "
        "whole; below it the 95 % interval over puzzles. Neighbours: percent of true neighbours with the relative pose "
        "of the truth. Perfect: percent of puzzles. Mean errors of placed pieces in pixels and degrees. Overlap: "
        "percent of the area; unplaced: pieces a puzzle.",
        drawn={"accuracy": "pieces right, %"},
        rank=("accuracy",),
    )

    CONDITIONS: ClassVar[dict[str, str]] = {"shape": "{}", "missing": "{:.0%} missing", "erode": "{} px eroded"}
    usual_seeds = 1
    views = ("",)

    data: str
    source: Recorded | CutFromPictures
    missing: float = 0.0

    @property
    def shape(self) -> str:
        """The shape of pieces that are cut from pictures."""
        return self.source.shape if isinstance(self.source, CutFromPictures) else ""

    @property
    def erode(self) -> int:
        """The pixels that these lose all around."""
        return self.source.erode if isinstance(self.source, CutFromPictures) else 0

    @property
    def words(self) -> tuple[str, ...]:
        if isinstance(self.source, CutFromPictures):
            return (f"{self.source.pieces} {self.shape}", *super().words[1:])
        return super().words or ("as recorded",)

    def __len__(self) -> int:
        return len(self.source)

    def check(self) -> None:
        """Refuse what no puzzles can be made of."""
        refuse("there are no puzzles to evaluate on; pass a folder that holds some", not len(self.source))
        if isinstance(self.source, CutFromPictures):
            check_cut(self.source.shape, self.source.pieces, self.missing, self.source.erode)

    def case(self, index: int, seed: int) -> Case:
        """Some of the pieces, in random order."""
        puzzle, layout = self.source.puzzle(index, seed)
        whole = len(puzzle)
        puzzle = puzzle.reordered(surviving(whole, self.missing, random_stream(seed, index, LOSING)))
        share = puzzle.outlines.areas / puzzle.outlines.areas.sum()
        return Case(self.source.name(index), layout, puzzle, puzzle.without_truth(), whole, share)

    def identity(self, index: int, seed: int) -> dict[str, str | int | float]:
        """All that a puzzle depends on."""
        return {"puzzle": self.source.name(index), "index": index, "seed": seed, "missing": self.missing}

    def score(self, case: Case, found: Placements, seconds: float) -> dict[str, Score]:
        """How much of an answer is right."""
        layout: Any = case.category
        return {"": score_outlines(case.puzzle, layout, found, seconds)}


def find_recorded(folder: Path) -> list[Path]:
    """The puzzles with known places in a folder: itself, tables of its photographs, or folders that are some."""
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error
    if _is_recorded(folder):
        return [folder]
    tables = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    return [path for path in inner if _is_recorded(path)] or [table for table in tables if _photo_of(table)]


def _photo_of(table: Path) -> Path | None:
    """The photograph whose pieces a table describes."""
    return next((file for file in sorted(table.parent.glob(f"{table.stem}.*")) if is_picture(file)), None)


def _is_recorded(folder: Path) -> bool:
    if (folder / TABLE).is_file():
        return True
    return (folder / "puzzle.json").is_file() and detect(folder).kind == "outlines"


def read_recorded(folder: Path) -> tuple[Puzzle, Order]:
    """A puzzle with its truth, and how that gives places."""
    if folder.suffix == ".csv" and (photo := _photo_of(folder)) is not None:
        return _read_photographed(folder, photo)
    if not (folder / TABLE).is_file():
        puzzle = read_puzzle(folder)
        if puzzle.truth is None:
            raise InputError(f"{folder}: has no truth.json, so answers can't be scored; cut a puzzle, or leave it out")
        return puzzle, "free"
    rows = _rows(folder / TABLE)
    layout = next((name for name, columns in _COLUMNS.items() if set(columns) <= set(rows[0])), None)
    if layout is None:
        known = "; ".join(",".join(("id", *columns)) for columns in _COLUMNS.values())
        raise InputError(f"{folder / TABLE}: has columns {','.join(rows[0])}; it must have {known}")
    puzzle = open_input(folder, kind="outlines")
    wanted = {row["id"]: row for row in rows}
    stems = [Path(name).stem for name in puzzle.names]
    absent = [stem for stem in stems if stem not in wanted]
    if absent:
        raise InputError(f"{folder / TABLE}: has no place of {absent[0]} and {len(absent) - 1} more; add them")
    numbers = _numbers([wanted[stem] for stem in stems], _COLUMNS[layout], folder / TABLE)
    return replace(puzzle, truth=_truth(puzzle, layout, numbers)), layout


def _read_photographed(table: Path, photo: Path) -> tuple[Puzzle, Order]:
    """The pieces found in a photograph, each with the row of the table at its place; others are missing."""
    rows = _rows(table)
    given = _numbers(rows, ("x", "y", *_COLUMNS["lattice"]), table)
    puzzle = open_input(photo, kind="outlines", sheet="none")
    found = [piece.centre for piece, _ in find_pieces(photo, read_picture(photo)).outlined]
    centres = torch.tensor(found).double()
    apart, nearest = torch.cdist(centres, given[:, :2]).min(1)
    strange = bool((apart > puzzle.outlines.widths / 2).any()) or len(set(nearest.tolist())) < len(found)
    if len(found) != len(puzzle) or strange:
        raise InputError(f"{photo}: things were found at places where {table} has no piece")
    numbers = given[nearest][:, 2:]
    return replace(puzzle, truth=_truth(puzzle, "lattice", numbers)), "lattice"


def _rows(source: Path) -> list[dict[str, str]]:
    try:
        with source.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{source}: cannot be read ({error})") from error
    if not rows or "id" not in rows[0]:
        raise InputError(f"{source}: is no table of pieces; its first column must be id")
    return rows


def _numbers(rows: Sequence[dict[str, str]], columns: Sequence[str], source: Path) -> Float[Tensor, "n columns"]:
    try:
        return torch.tensor([[float(row[column]) for column in columns] for row in rows], dtype=torch.double)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {', '.join(columns)} must be numbers in every line") from error


def _truth(puzzle: Puzzle, layout: Order, numbers: Float[Tensor, "n columns"]) -> Poses:
    """Where the table puts the pieces; steps of a lattice and from strip to strip are the mean width of a piece."""
    pieces = puzzle.outlines
    if layout == "free":
        places, degrees = numbers[:, :2], numbers[:, 2]
        rotation = plane_rotations(degrees.deg2rad())
        sizes = torch.tensor([[texture.shape[2], texture.shape[1]] for texture in pieces.textures]).double()
        places = places + (rotation @ (pieces.origins.double() - sizes / 2)[..., None])[..., 0]
    elif layout == "lattice":
        rotation = plane_rotations(-numbers[:, 2].deg2rad())
        places = numbers[:, [1, 0]] * float(pieces.areas.sqrt().mean())
    else:
        rotation = plane_rotations(-numbers[:, 1].deg2rad())
        places = torch.stack([numbers[:, 0], torch.zeros(len(numbers))], 1) * float(pieces.widths.mean())
    return Poses(rotation.float(), places.float())
