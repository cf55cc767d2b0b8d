"""The task of learning to put flat pieces of any outline together.

Data are sheets cut as `outlines.cut` cuts pictures, with synthetic matches, and pictures whose pieces are compared
once, as those of users are. A score of fits that is normal with spread s, around +s²/2 for true ones and −s²/2 for
wrong ones, is their log likelihood ratio, and together with the prior odds a calibrated probability. Wrong matches
put a side of one piece at a side of another, both of which truly have other neighbours. How informative scores are,
how many matches are wrong, how many true ones are never found and how exact they are differs from puzzle to puzzle.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import torch
from annotated_types import Interval
from jaxtyping import Float, Int
from scipy.spatial import cKDTree
from torch import Tensor, nn

from diffassemble.core import InputError, Matches, OutlinePieces, Poses, Puzzle
from diffassemble.core.contours import middle, resample
from diffassemble.core.limits import LIMITS
from diffassemble.core.poses import plane_rotations
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Cases, Count, Fraction, Natural, Positive, Settings, Share
from diffassemble.diffusion.rotations import angle_between
from diffassemble.io.pictures import read_picture
from diffassemble.network.batch import pack
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.judge import assembled, denoised, judge
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.diffusion import normalised, support
from diffassemble.outlines.grow import find_matches
from diffassemble.outlines.partition import sheet_outlines
from diffassemble.squares.pictures import picture_paths
from diffassemble.training.config import Config
from diffassemble.training.data import Portion, missing_share, relative_to, remaining, share_out, survivors, uniform
from diffassemble.training.denoising import Denoising, DenoisingTraining

Known = tuple[Puzzle, Matches]
"""a puzzle with its truth, and its matches"""
_Outlines = Annotated[int, Interval(ge=3, le=LIMITS.outlines)]


@dataclass(frozen=True)
class OutlineConfig(Settings):
    """Which sheets are cut, and what puzzles become of them."""

    shapes: tuple[Literal["tabs", "torn", "shards", "strips"], ...] = ("tabs", "torn", "shards", "strips")
    """how sheets are cut, in turn"""
    folders: tuple[Path, ...] = ()
    """folders of pictures to cut as well, whose pieces are compared as those of users are"""
    pictures: Cases = 96
    """pictures of these folders that are cut"""
    found_share: Share = 0.5
    """share of puzzles with matches that were found so, if there are any; those of all others are synthetic"""
    sheets: Annotated[int, Interval(ge=1, le=LIMITS.cases)] = 80
    """sheets that are cut beforehand; turns, losses and synthetic matches are always others"""
    held_apart: Natural = 24
    """sheets that choose the checkpoint and are never trained on"""
    pieces: tuple[_Outlines, _Outlines] = (4, 40)
    """fewest and most pieces of a sheet"""
    missing: Fraction = 0.3
    """largest share of missing pieces"""
    whole_share: Share = 0.5
    """share of puzzles without missing pieces"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.pieces[0] > self.pieces[1]:
            yield "pieces", "the fewest pieces, then the most"
        if not self.shapes:
            yield "shapes", "some of tabs, torn, shards and strips"


@dataclass(frozen=True)
class OutlineTraining(DenoisingTraining):
    """How a network learns to put flat pieces together."""

    most_cut: Count = 24
    """most pieces of a puzzle with matches that are searched for: these are many more than synthetic ones"""
    validation_steps: Count = 10
    near: Positive = 0.125
    """largest error of a right place, in units, of which a typical piece is half as long"""
    twist: Positive = 5.0
    """largest error of a right rotation, in degrees"""


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


SHEETS = SheetConfig()


class OutlineTask(Denoising):
    """Sheets cut in all shapes, with synthetic matches; the share of pieces right on sheets held apart."""

    defaults = Config(
        ModelConfig(backbone="outline", symmetry="invariant", space="plane", contact_slots=1, verdicts=True),
        OutlineConfig(),
        OutlineTraining(pieces=192, noises=3, translation_weight=4.0, learning_rate=8e-4, average=0.998, warmup=100),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        data, seed = config.data, config.training.seed
        sheets = []
        for number in range(data.sheets + data.held_apart):
            generator = seeded(seed, number, 5)
            pieces = int(torch.randint(data.pieces[0], data.pieces[1] + 1, (), generator=generator))
            sheets.append(make_sheet(data.shapes[number % len(data.shapes)], pieces, generator))
        self.sheets, self.known = sheets[data.held_apart :], [*cut_pictures(data, seed, config.training.most_cut)]
        self.held_apart = [
            for_network(*make_puzzle(sheet, data.missing * (number % 2), seeded(79, number)))
            for number, sheet in enumerate(sheets[: data.held_apart])
        ]

    def check(self, config: Config) -> None:
        super().check(config)
        model = config.model
        if model.space != "plane" or not (model.votes and model.verdicts) or model.contact_slots != 1:
            raise InputError("--model.votes: flat pieces need votes, verdicts, the space plane and contact-slots 1")

    def portion(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """Puzzles of about as many pieces as were asked for: of sheets, and with matches that were found."""
        data, training = self.config.data, self.config.training
        generator, chosen, sizes = seeded(training.seed, step), list[Sheet | Known](), list[int]()
        while sum(sizes) < training.pieces:
            found = self.known and uniform(0.0, 1.0, generator) < data.found_share
            some: Sequence[Sheet | Known] = self.known if found else self.sheets
            chosen.append(some[int(torch.randint(len(some), (), generator=generator))])
            sizes.append(len(chosen[-1].centres if isinstance(chosen[-1], Sheet) else chosen[-1][0]))
        numbers, weight = share_out(sizes, rank, world)
        made = [self._puzzle(seeded(training.seed, step, number), chosen[number]) for number in numbers]
        return Portion([one for one, _ in made], numbers.start, weight, matches=tuple(matches for _, matches in made))

    def _puzzle(self, generator: torch.Generator, source: Sheet | Known) -> Known:
        missing = missing_share(self.config.data, generator)
        if isinstance(source, Sheet):
            return for_network(*make_puzzle(source, missing, generator))
        return for_network(*with_losses(*source, missing, generator))

    def validate(self, model: nn.Module) -> dict[str, float]:
        """The share of pieces right on sheets held apart, by one sample each: as sampled, and as assembled."""
        assert isinstance(model, PoseNetwork)
        found = [_right(model, *known, number, self.config.training) for number, known in enumerate(self.held_apart)]
        placed, right = torch.tensor(found).mean(0).tolist() if found else (0.0, 0.0)
        return {"score": placed + right, "right": right, "placed": placed}


def _right(
    model: PoseNetwork, puzzle: Puzzle, matches: Matches, number: int, config: OutlineTraining
) -> tuple[float, float]:
    """Percent of the pieces that one sample puts where they belong, before and after it is assembled."""
    truth, locks, unit = puzzle.truth, puzzle.locks, pack([puzzle]).board[:, 2]
    assert truth is not None
    assert locks is not None
    *_, (_, _, sample) = denoised(model, puzzle, matches, config.validation_steps, 1, 0.0, seeded(80, number))
    answers = sample, assembled(matches, judge(model, puzzle, matches, sample, unit), locks, unit)[0]
    near = [(poses.translation - truth.translation).norm(dim=-1) < config.near * unit for poses in answers]
    straight = [angle_between(poses.rotation, truth.rotation).rad2deg() < config.twist for poses in answers]
    placed, right = (100 * float((close & turned).float().mean()) for close, turned in zip(near, straight, strict=True))
    return placed, right


@dataclass(frozen=True)
class Sheet:
    """A sheet in pieces as they belong, and along which of them they touch.

    `contact` is, for every touching pair and both ways round, the motion of a frame at the side of the first piece (its
    x axis outwards, its origin amid the contact) as seen from that piece, whose place is in `centres`.
    """

    contours: tuple[Float[Tensor, "p 2"], ...]
    centres: Float[Tensor, "n 2"]
    pairs: Int[Tensor, "e 2"]
    contact: Poses


def make_sheet(shape: str, pieces: int, generator: torch.Generator, config: SheetConfig = SHEETS) -> Sheet:
    """Cut a sheet of any proportions."""
    height = round(config.side * math.exp(uniform(-0.5, 0.2, generator)))
    edges = [outline.edge for outline in sheet_outlines(shape, pieces, config.side, height, generator)]
    fine, places = [resample(edge, config.points) for edge in edges], [middle(edge) for edge in edges]
    trees = [cKDTree(curve) for curve in fine]
    pairs, turns, points = [], [], []
    for one in range(len(edges)):
        for two in range(len(edges)):
            low, high = fine[two].min(0) - config.near, fine[two].max(0) + config.near
            beside = fine[one][((fine[one] > low) & (fine[one] < high)).all(1)]
            if one == two or len(beside) < config.fewest:
                continue
            touching = beside[trees[two].query(beside, distance_upper_bound=config.near)[0] < config.near]
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


def make_puzzle(sheet: Sheet, missing: float, generator: torch.Generator) -> Known:
    """A puzzle of turned pieces, of which a share is lost, and synthetic matches of those that are left; in pixels."""
    whole = len(sheet.centres)
    kept = survivors(whole, missing, generator)
    count = len(kept)
    turns = plane_rotations(2 * math.pi * torch.rand(count, generator=generator))
    contours = tuple(sheet.contours[i] @ turn for i, turn in zip(kept.tolist(), turns, strict=True))
    blank = torch.zeros(4, 1, 1, dtype=torch.uint8)
    pieces = OutlinePieces((blank,) * count, contours, torch.zeros(count, 2))
    truth = Poses(turns, sheet.centres[kept])
    number = torch.full((whole,), -1)
    number[kept] = torch.arange(count)
    pairs = number[sheet.pairs]
    own = Poses(turns.mT[pairs[:, 0]], torch.zeros(len(pairs), 2)) @ sheet.contact
    return Puzzle(pieces, None, tuple(map(str, range(count))), truth), synthetic_matches(truth, pairs, own, generator)


def synthetic_matches(truth: Poses, pairs: Int[Tensor, "e 2"], contact: Poses, generator: torch.Generator) -> Matches:
    """Matches, one way each, of touching pairs, of which −1 means a piece that is lost."""
    spread, most_wrong, lost = uniform(2.0, 7.0, generator), uniform(0.3, 8.0, generator), uniform(0.0, 0.4, generator)
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
    wrong = contact[two] @ facing @ contact[one].inverse()
    relative = Poses(
        torch.cat([relative.rotation, wrong.rotation[fits]]), torch.cat([relative.translation, wrong.translation[fits]])
    )
    right = torch.arange(len(relative)) < len(true)
    odds = math.log((len(true) + 0.5) / (float(fits.sum()) + 0.5))
    score = spread * torch.randn(len(right), generator=generator) + spread**2 * (right.float() - 0.5)
    chance = torch.sigmoid(score + odds)
    exact = uniform(0.0, 0.015, generator), uniform(0.0, 0.02, generator) * SHEETS.side / len(truth) ** 0.5
    off = plane_rotations(exact[0] * torch.randn(len(right), generator=generator))
    moved = exact[1] * torch.randn(len(right), 2, generator=generator)
    relative = Poses(off @ relative.rotation, relative.translation + moved)
    first, second = torch.cat([true[:, 0], first[fits]]), torch.cat([true[:, 1], second[fits]])
    best = torch.zeros(len(truth)).scatter_reduce(0, first, chance, "amax").scatter_reduce(0, second, chance, "amax")
    rank = chance / torch.maximum(best[first], best[second]).clamp(min=1e-9)
    evidence = torch.stack([chance, rank, torch.sigmoid(score)], 1)
    return Matches(first, second, relative, torch.zeros_like(first), evidence)


def cut_pictures(data: OutlineConfig, seed: int, most: int, config: SheetConfig = SHEETS) -> Iterator[Known]:
    """Puzzles of pictures spread over the folders, their pieces somewhat worn, with the matches found; in pixels."""
    files = [file for folder in data.folders for file in picture_paths(folder)]
    for number, file in enumerate(files[:: max(1, len(files) // max(1, data.pictures))][: data.pictures]):
        generator, shape = seeded(seed, number, 6), data.shapes[number % len(data.shapes)]
        pieces = int(torch.randint(data.pieces[0], min(data.pieces[1], most) + 1, (), generator=generator))
        worn = int(torch.randint(config.worn[shape] + 1, (), generator=generator))
        size = config.sizes[int(torch.randint(len(config.sizes), (), generator=generator))]
        size = size // 3 if shape == "strips" else size
        puzzle = cut_shapes(read_picture(file), shape, pieces, generator, size=size, erode=worn)
        yield puzzle, find_matches(puzzle)


def with_losses(puzzle: Puzzle, matches: Matches, missing: float, generator: torch.Generator) -> Known:
    """What is left of a puzzle and its matches when a share of the pieces is lost."""
    kept = survivors(len(puzzle), missing, generator)
    return puzzle.reordered(kept), remaining(matches, kept, len(puzzle))


def for_network(puzzle: Puzzle, matches: Matches) -> Known:
    """The puzzle as it is denoised: in the frame of the piece with most evidence, which is locked."""
    puzzle, matches, _ = normalised(puzzle, matches)
    return relative_to(puzzle, support(matches, len(puzzle)).argmax()), matches
