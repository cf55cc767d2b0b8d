"""Flat pieces to learn from: sheets cut as `outlines.cut` cuts pictures, and matches made up to be like real ones.

A score of fits that is normal with spread s, around +s²/2 for true ones and −s²/2 for wrong ones, is their log
likelihood ratio, and together with the odds beforehand a calibrated probability. Wrong matches lay a side of one piece
at a side of another, both of which truly belong to somebody else. How well matches tell, how many wrong ones there are,
how many true ones are never found and how exact they are differs from puzzle to puzzle.

Beside these, pictures are cut and their pieces compared, once, as those of users are.

Every puzzle of the stream is a pure function of (seed, step, number).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path

import torch
from jaxtyping import Float, Int
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.core import InputError, Locks, Matches, OutlinePieces, Poses, Puzzle
from diffassemble.core.contours import middle, resample
from diffassemble.core.pieces import surviving
from diffassemble.core.poses import plane_rotations
from diffassemble.core.seeds import seeded
from diffassemble.evaluation.outline_data import find_recorded, read_recorded
from diffassemble.io.pictures import read_picture
from diffassemble.outlines.cut import cut_shapes, sheet_outlines
from diffassemble.outlines.hearing import Heard, heard, standing
from diffassemble.outlines.matches import find_matches
from diffassemble.training.config import OutlineConfig, RecordedConfig
from diffassemble.training.pictures import Portion, share_out, uniform

_NOTHING = torch.zeros(4, 1, 1, dtype=torch.uint8)


@dataclass(frozen=True)
class SheetConfig:
    """How sheets and pictures are cut; lengths in pixels."""

    side: int = 1000
    """width of a sheet"""
    points: int = 256
    """points of an outline"""
    near: float = 4.0
    """two pieces touch where their outlines are closer than this"""
    fewest: int = 6
    """points along which two pieces must touch"""
    sizes: tuple[int, ...] = (60, 80, 100)
    """sizes of pieces that are cut from pictures; strips are a third as wide"""
    worn: Mapping[str, int] = field(default_factory=lambda: {"tabs": 1, "torn": 1, "shards": 4, "strips": 0})
    """most that such pieces lose all around"""


DEFAULT = SheetConfig()


@dataclass(frozen=True)
class Sheet:
    """A sheet in pieces as they belong, and along which of them they touch.

    `contact` is, for every touching pair and both ways round, the motion of a frame that stands on the side of the
    first piece, its x axis outwards and its origin amid the contact, as seen from that piece, which lies at `centres`.
    """

    contours: tuple[Float[Tensor, "p 2"], ...]
    centres: Float[Tensor, "n 2"]
    pairs: Int[Tensor, "e 2"]
    contact: Poses

    def __len__(self) -> int:
        return len(self.centres)


def make_sheet(shape: str, pieces: int, generator: torch.Generator, config: SheetConfig = DEFAULT) -> Sheet:
    """Cut a sheet of any proportions."""
    near = config.near
    height = round(config.side * math.exp(uniform(-0.5, 0.2, generator)))
    edges = [outline.edge for outline in sheet_outlines(shape, pieces, config.side, height, generator)]
    fine = [resample(edge, config.points) for edge in edges]
    places = [middle(edge) for edge in edges]
    trees = [cKDTree(curve) for curve in fine]
    pairs, turns, points = [], [], []
    for one in range(len(edges)):
        for two in range(len(edges)):
            low, high = fine[two].min(0) - near, fine[two].max(0) + near
            beside = ((fine[one] > low) & (fine[one] < high)).all(1)
            if one == two or beside.sum() < config.fewest:
                continue
            touching = fine[one][beside][trees[two].query(fine[one][beside], distance_upper_bound=near)[0] < near]
            if len(touching) < config.fewest:
                continue
            amid = touching.mean(0)
            spread = (touching - amid).T @ (touching - amid)
            outwards = torch.linalg.eigh(torch.from_numpy(spread))[1][:, 0]
            towards = torch.from_numpy(places[two] - places[one])
            outwards = outwards if float(outwards @ towards) >= 0 else -outwards
            pairs.append((one, two))
            turns.append(torch.atan2(outwards[1], outwards[0]))
            points.append(torch.from_numpy(amid - places[one]))
    contact = Poses(plane_rotations(torch.stack(turns).float()), torch.stack(points).float())
    contours = tuple(torch.from_numpy(curve - place).float() for curve, place in zip(fine, places, strict=True))
    return Sheet(contours, torch.tensor([*map(list, places)]).float(), torch.tensor(pairs), contact)


def make_puzzle(sheet: Sheet, missing: float, generator: torch.Generator) -> tuple[Puzzle, Matches]:
    """A puzzle of turned pieces, of which a share is lost, and made-up matches of those that are left; in pixels."""
    kept = surviving(len(sheet), min(missing, 1 - 2 / len(sheet)), generator)
    count = len(kept)
    turns = plane_rotations(2 * math.pi * torch.rand(count, generator=generator))
    contours = tuple(sheet.contours[i] @ turn for i, turn in zip(kept.tolist(), turns, strict=True))
    pieces = OutlinePieces((_NOTHING,) * count, contours, torch.zeros(count, 2))
    truth = Poses(turns, sheet.centres[kept])
    number = torch.full((len(sheet),), -1)
    number[kept] = torch.arange(count)
    pairs = number[sheet.pairs]
    own = Poses(turns.mT[pairs[:, 0]], torch.zeros(len(pairs), 2)) @ sheet.contact
    names = tuple(map(str, range(count)))
    return Puzzle(pieces, None, names, truth), made_up(truth, pairs, own, generator)


def made_up(truth: Poses, pairs: Int[Tensor, "e 2"], contact: Poses, generator: torch.Generator) -> Matches:
    """Matches, one way each, of touching pairs, of which −1 means a piece that is lost."""
    tells, most_wrong, lost = uniform(2.0, 7.0, generator), uniform(0.3, 8.0, generator), uniform(0.0, 0.4, generator)
    true = pairs[((pairs[:, 0] < pairs[:, 1]) & (pairs[:, 0] >= 0)).nonzero()[:, 0]]
    true = true[torch.rand(len(true), generator=generator) >= lost]
    relative = truth[true[:, 1]].inverse() @ truth[true[:, 0]]
    sides = (pairs[:, 0] >= 0).nonzero()[:, 0]
    drawn = torch.randint(max(1, len(sides)), (round(most_wrong * len(truth)), 2), generator=generator)
    one, two = sides[drawn].unbind(1) if len(sides) else (drawn[:0, 0], drawn[:0, 1])
    first, second = pairs[one, 0], pairs[two, 0]
    fits = first != second
    # Outwards for the one is inwards for the other.
    facing = Poses(-torch.eye(2).expand(len(one), 2, 2), torch.zeros(len(one), 2))
    laid = contact[two] @ facing @ contact[one].inverse()
    relative = Poses(
        torch.cat([relative.rotation, laid.rotation[fits]]), torch.cat([relative.translation, laid.translation[fits]])
    )
    right = torch.arange(len(relative)) < len(true)
    odds = math.log((len(true) + 0.5) / (float(fits.sum()) + 0.5))
    score = tells * torch.randn(len(right), generator=generator) + tells**2 * (right.float() - 0.5)
    chance = torch.sigmoid(score + odds)
    exact = uniform(0.0, 0.015, generator), uniform(0.0, 0.02, generator) * DEFAULT.side / len(truth) ** 0.5
    off = plane_rotations(exact[0] * torch.randn(len(right), generator=generator))
    moved = exact[1] * torch.randn(len(right), 2, generator=generator)
    relative = Poses(off @ relative.rotation, relative.translation + moved)
    first, second = torch.cat([true[:, 0], first[fits]]), torch.cat([true[:, 1], second[fits]])
    best = torch.zeros(len(truth)).scatter_reduce(0, first, chance, "amax").scatter_reduce(0, second, chance, "amax")
    rank = chance / torch.maximum(best[first], best[second]).clamp(min=1e-9)
    evidence = torch.stack([chance, rank, torch.sigmoid(score)], 1)
    return Matches(first, second, relative, torch.zeros_like(first), evidence)


def compared(
    path: Path, shape: str, pieces: int, generator: torch.Generator, config: SheetConfig = DEFAULT
) -> tuple[Puzzle, Matches]:
    """A puzzle cut from a picture, its pieces somewhat worn, and the matches that are found; in pixels."""
    worn = int(torch.randint(config.worn[shape] + 1, (), generator=generator))
    size = config.sizes[int(torch.randint(len(config.sizes), (), generator=generator))]
    size = size // 3 if shape == "strips" else size
    puzzle = cut_shapes(read_picture(path), shape, pieces, generator, size=size, erode=worn)
    return puzzle, find_matches(puzzle)


def with_losses(puzzle: Puzzle, matches: Matches, missing: float, generator: torch.Generator) -> tuple[Puzzle, Matches]:
    """What is left of a puzzle and its matches when a share of the pieces is lost."""
    kept = surviving(len(puzzle), min(missing, 1 - 2 / len(puzzle)), generator)
    number = torch.full((len(puzzle),), -1)
    number[kept] = torch.arange(len(kept))
    left = matches[((number[matches.first] >= 0) & (number[matches.second] >= 0)).nonzero()[:, 0]]
    return puzzle.reordered(kept), replace(left, first=number[left.first], second=number[left.second])


def seen_from_one(told: Heard) -> tuple[Puzzle, Matches]:
    """The puzzle as it is denoised: in the frame of the piece that most speaks for, which is locked."""
    puzzle, matches, _ = told
    truth = puzzle.truth
    assert truth is not None
    first = standing(matches, len(puzzle)).argmax()
    own = truth[first.expand(len(puzzle))].inverse() @ truth
    return replace(puzzle, truth=own, locks=Locks(torch.arange(len(puzzle)) == first, own)), matches


def recorded_puzzles(data: RecordedConfig) -> tuple[list[Puzzle], list[Puzzle]]:
    """Puzzles of flat pieces with known places to learn from, and those held apart, evenly spread over all."""
    found = [path for folder in data.folders for path in find_recorded(folder)]
    if not found:
        raise InputError(f"--data.folders {data.folders[0]}: holds no puzzles of flat pieces whose places are known")
    count = min(data.held_apart, len(found) // 4)
    apart = {len(found) * (2 * i + 1) // (2 * count) for i in range(count)} if count else set()
    puzzles = [read_recorded(path)[0] for path in found]
    chosen = [index not in apart for index in range(len(found))]
    return [*compress(puzzles, chosen)], [puzzles[index] for index in sorted(apart)]


class OutlineStream:
    """Batches of about `pieces` pieces out of sheets that were cut, and of puzzles whose matches were found."""

    def __init__(
        self,
        sheets: Sequence[Sheet],
        known: Sequence[tuple[Puzzle, Matches]],
        config: OutlineConfig,
        pieces: int,
        seed: int,
    ) -> None:
        self.sheets, self.known, self.config, self.pieces, self.seed = sheets, known, config, pieces, seed

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""
        generator, chosen = seeded(self.seed, step), list[Sheet | tuple[Puzzle, Matches]]()
        while sum(map(_size, chosen)) < self.pieces:
            found = self.known and uniform(0.0, 1.0, generator) < self.config.found_share
            some: Sequence[Sheet | tuple[Puzzle, Matches]] = self.known if found else self.sheets
            chosen.append(some[int(torch.randint(len(some), (), generator=generator))])
        numbers, share = share_out(len(chosen), rank, world)
        made = [self._puzzle(step, number, chosen[number]) for number in numbers]
        own, every = (sum(_size(chosen[number]) for number in some) for some in (numbers, range(len(chosen))))
        weight = own * world / every if share else 0.0
        return Portion([puzzle for puzzle, _ in made], numbers.start, weight, matches=tuple(m for _, m in made))

    def _puzzle(self, step: int, number: int, source: Sheet | tuple[Puzzle, Matches]) -> tuple[Puzzle, Matches]:
        generator = seeded(self.seed, step, number)
        whole = uniform(0.0, 1.0, generator) < self.config.whole_share
        missing = 0.0 if whole else uniform(0.0, self.config.missing, generator)
        if isinstance(source, Sheet):
            return seen_from_one(heard(*make_puzzle(source, missing, generator)))
        return seen_from_one(heard(*with_losses(*source, missing, generator)))


def _size(source: Sheet | tuple[Puzzle, Matches]) -> int:
    return len(source if isinstance(source, Sheet) else source[0])
