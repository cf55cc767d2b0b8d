"""The task of learning fracture matching: first what surfaces look like, then which matches are true.

Examples are points of breaks and their counterparts, and matches that are true or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Literal

import numpy as np
import torch
import torch.nn.functional as F
from annotated_types import Interval
from jaxtyping import Bool, Float, Float32, Int64
from scipy.spatial import cKDTree
from torch import Tensor, nn

from diffassemble.core import FragmentPieces, InputError, Mesh, Puzzle
from diffassemble.core.limits import LIMITS
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Batch, Count, Weight
from diffassemble.core.surfaces import sample_surface
from diffassemble.fragments.breaking import scatter
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, close, compose, inverse, pose_rows, transformed
from diffassemble.fragments.damage import UNHARMED, Damage
from diffassemble.fragments.descriptors import (
    COUNTERPART_SIGNS,
    FACE_FEATURES,
    LEVELS,
    FractureSurface,
    SurfacePyramid,
    finest_level,
    fracture_surface,
    surface_features,
    true_breaks,
)
from diffassemble.fragments.matches import can_refine, level_for, match_clusters, prepare
from diffassemble.fragments.model import MATCH_FEATURES, FractureConfig, FractureModels
from diffassemble.fragments.pair_search import Effort
from diffassemble.fragments.surface import spacing_of, with_normals
from diffassemble.training.config import Config, FragmentConfig, TrainingConfig
from diffassemble.training.fragment_data import Broken
from diffassemble.training.fragments import gather
from diffassemble.training.loop import Task
from diffassemble.training.pictures import share_out

_Points = Annotated[int, Interval(ge=20, le=LIMITS.points)]


@dataclass(frozen=True)
class ExampleConfig:
    """How examples are made of fractures; lengths in spacings of level 0, numbers of points per level."""

    balls: tuple[float, float, float] = (np.inf, 25.0, 10.0)
    """radii around two points of the break within which a level is looked at"""
    points: tuple[int, int, int] = (2400, 2000, 1200)
    """points whose break is learnt"""
    pairs: tuple[int, int, int] = (600, 600, 300)
    """points whose counterpart is learnt"""
    heaviest: float = 8.0
    """largest weight of a point, in units of the mean weight"""
    degrees: float = 5.0
    """largest angle of a true match"""
    off: float = 2.5
    """largest displacement of a true match"""
    share: float = 0.1
    """the same, as a share of the piece's own size"""
    touching: float = 0.75
    """share of the searches that are of pieces that touch"""
    few: int = 5
    """points of level 0 that must be near another piece for the two to touch"""


EXAMPLES = ExampleConfig()


@dataclass(frozen=True)
class FractureDataConfig(FragmentConfig):
    """Which broken objects fracture matching is learnt from, and what of it."""

    learn: Literal["surface", "fits"] = "surface"
    """surface: where the break is, and who fits whom; fits, after that: which fits are true"""
    noise: Weight = 0.003
    """largest deviation of the noise that some of the objects get, as a share of their size"""
    wear: Weight = 0.007
    """largest radius with which the breaks of some are worn, as a share of their size"""
    clouds: tuple[_Points, _Points] = (4000, 30_000)
    """points of each fragment of those that are clouds"""
    times: Annotated[int, Interval(ge=1, le=LIMITS.cases)] = 1
    """how often examples are made of each fracture, each time of other points, with other noise and missing pieces"""


@dataclass(frozen=True)
class FractureMatchingTraining(TrainingConfig):
    """How the networks of fracture matching learn."""

    points: Batch = 960
    """points of each level, or fits, in a batch, over all processes"""
    crowd: Count = 160
    """points of one fracture that are told apart in a step"""
    blur: Weight = 0.15
    """noise on the numbers of matches, in their deviations, so that no single match is learnt by heart"""


DEFAULT = FractureMatchingTraining()


class FractureMatchingTask(Task):
    """All examples are made at the start, `data.times` of every fracture; then small networks learn from them.

    `data.learn` "surface" teaches where the break is and who fits whom, "fits" then (with --training.start-from) which
    matches are true.
    """

    defaults = Config(FractureConfig(), FractureDataConfig(), FractureMatchingTraining())
    network = FractureModels

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.points, "points"
        kinds, held_apart = gather(config.data)
        train = [fracture for kind in kinds for fracture in kind]
        if config.data.learn == "fits":
            self.matches, self.held_matches = self._matches(train), self._matches(held_apart)
        else:
            self.surfaces, self.held_surfaces = self._surfaces(train), self._surfaces(held_apart)

    def check(self, config: Config) -> None:
        super().check(config)
        if config.data.learn == "fits" and not config.training.start_from:
            raise InputError("--data.learn fits: needs networks that know surfaces; pass --training.start-from FOLDER")

    def _surfaces(self, fractures: Sequence[Broken]) -> list[tuple[SurfaceExamples, ...]]:
        def make(number: int, fracture: Broken) -> tuple[SurfaceExamples, ...] | None:
            generator = seeded(self.config.training.seed, number)
            with suppress(InputError):  # a solid that can't be broken that way
                return surface_examples(fracture.meshes(), generator, self._damage(generator))
            return None

        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            made = pool.map(make, count(), self.config.data.times * list(fractures))
            return [examples for examples in made if examples is not None]

    def _matches(self, fractures: Sequence[Broken]) -> MatchExamples:
        models = FractureModels.from_pretrained(self.config.training.start_from)
        data = self.config.data
        made = [MatchExamples(np.zeros((0, MATCH_FEATURES), np.float32), np.zeros(0, bool))]
        for number, fracture in enumerate(data.times * list(fractures)):
            generator = seeded(self.config.training.seed, number, 1)
            whole = float(torch.rand(1, generator=generator)) < data.whole_share
            missing = 0.0 if whole else data.missing * float(torch.rand(1, generator=generator))
            with suppress(InputError):
                puzzle = damaged(scatter(fracture.meshes(), generator), self._damage(generator), missing, generator)
                made.append(match_examples(puzzle, models, generator))
        return MatchExamples(np.concatenate([m.numbers for m in made]), np.concatenate([m.true for m in made]))

    def _damage(self, generator: torch.Generator) -> Damage:
        """What an object suffers; nothing in four of ten cases."""
        return drawn_damage(generator, self.config.data.noise, self.config.data.wear, self.config.data.clouds)

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, FractureModels)
        numbers, weight = share_out(self.config.training.points, rank, world)
        generator = seeded(self.config.training.seed, step, rank)
        if self.config.data.learn == "fits":
            return weight * verification_loss(model, self.matches, len(numbers), generator, self.config.training.blur)
        return weight * surface_loss(model, self.surfaces, len(numbers), generator, self.config.training.crowd)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """On objects held apart, in percent: points and matches told right; "score" is their mean."""
        assert isinstance(model, FractureModels)
        model.eval()
        with torch.no_grad():
            if self.config.data.learn == "surface":
                scores = self._surface_scores(model)
            else:
                found = model.verification_logits(torch.from_numpy(self.held_matches.numbers)) > 0
                right = found.numpy() == self.held_matches.true
                scores = {"fits": 100 * float(right.mean())} if len(right) else {}
        model.train()
        return {"score": sum(scores.values()) / max(1, len(scores)), **scores}

    def _surface_scores(self, model: FractureModels) -> dict[str, float]:
        scores: dict[str, list[float]] = {}
        for examples in self.held_surfaces:
            for level, one in enumerate(examples):
                if not len(one.broken):
                    continue
                logits = model.segmentation_logits(level, torch.from_numpy(one.features))
                for column, kind in enumerate(("breaks", "balanced")):
                    right = ((logits[:, column] > 0).numpy() == one.broken) * one.weight[:, column]
                    share = 100 * float(right.sum() / one.weight[:, column].sum())
                    scores.setdefault(f"{kind} {level}", []).append(share)
                if len(one.own) > 1:
                    scores.setdefault(f"matches {level}", []).append(matches_found(model, level, one))
        return {name: float(np.mean(values)) for name, values in scores.items()}


def surface_loss(
    model: FractureModels,
    examples: Sequence[tuple[SurfaceExamples, ...]],
    points: int,
    generator: torch.Generator,
    crowd: int = DEFAULT.crowd,
) -> Float[Tensor, ""]:
    """Cross-entropy of points of several fractures at every level, and of the choice of their matches."""
    total = torch.zeros(())
    for level in range(LEVELS):
        useful = [example[level] for example in examples if len(example[level].broken)]
        chosen = torch.randint(len(useful), (max(1, points // crowd),), generator=generator)
        some = [useful[row] for row in chosen.tolist()]
        parts = [torch.randint(len(one.broken), (crowd,), generator=generator).numpy() for one in some]
        drawn = [(one.features[p], one.broken[p], one.weight[p]) for one, p in zip(some, parts, strict=True)]
        features, broken, weight = (np.concatenate(columns) for columns in zip(*drawn, strict=True))
        logits = model.segmentation_logits(level, torch.from_numpy(features))
        wanted = torch.from_numpy(broken)[:, None].expand(-1, 2).float()  # both opinions are of the same
        losses = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
        total = total + (losses * torch.from_numpy(weight)).mean()
        total = total + 0.3 * mate_loss(model, level, some, generator, crowd)
    return total


def mate_loss(
    model: FractureModels,
    level: int,
    examples: Sequence[SurfaceExamples],
    generator: torch.Generator,
    crowd: int = DEFAULT.crowd,
) -> Float[Tensor, ""]:
    """Every point has to choose its counterpart among those of the others of its fracture, and be chosen by it."""
    some = [one for one in examples if len(one.own) > 1]
    if not some:
        return torch.zeros(())
    drawn = [torch.randint(len(one.own), (crowd,), generator=generator).numpy() for one in some]
    own = torch.from_numpy(np.concatenate([one.own[part] for one, part in zip(some, drawn, strict=True)]))
    other = torch.from_numpy(np.concatenate([one.counterpart[part] for one, part in zip(some, drawn, strict=True)]))
    both = model.describe(level, torch.cat([own * torch.from_numpy(COUNTERPART_SIGNS), other]))
    sizes = [len(part) for part in drawn]
    losses = []
    for sought, seen in zip(both[: len(own)].split(sizes), both[len(own) :].split(sizes), strict=True):
        logits = model.sharpness.exp() * sought @ seen.T
        choice = torch.arange(len(logits))
        losses.append(F.cross_entropy(logits, choice) + F.cross_entropy(logits.T, choice))
    return torch.stack(losses).mean() / 2


def matches_found(model: FractureModels, level: int, one: SurfaceExamples) -> float:
    """Percent of points whose true counterpart is among the best twelve of three hundred."""
    sought = model.describe(level, torch.from_numpy(one.own[:300] * COUNTERPART_SIGNS))
    seen = model.describe(level, torch.from_numpy(one.counterpart[:300]))
    likeness = sought @ seen.T
    return 100 * float(((likeness > likeness.diagonal()[:, None]).sum(1) < 12).float().mean())


def verification_loss(
    model: FractureModels,
    examples: MatchExamples,
    count: int,
    generator: torch.Generator,
    blur: float = DEFAULT.blur,
) -> Float[Tensor, ""]:
    """Cross-entropy of matches being true."""
    rows = torch.randint(len(examples.true), (count,), generator=generator).numpy()
    numbers = torch.from_numpy(examples.numbers[rows])
    blurred = numbers + blur * numbers.std(0) * torch.randn(numbers.shape, generator=generator)
    logits = model.verification_logits(blurred)
    return F.binary_cross_entropy_with_logits(logits, torch.from_numpy(examples.true[rows]).float())


@dataclass(frozen=True)
class SurfaceExamples:
    """What one fracture teaches at one level.

    `features` of points, whether they are `broken`, and their `weight` so that they count as often as they occur, and
    as if half of each piece were broken; `own` and `counterpart` are features of points that lie on each other.
    """

    features: Float32[np.ndarray, "p f"]
    broken: Bool[np.ndarray, "p"]
    weight: Float32[np.ndarray, "p 2"]
    own: Float32[np.ndarray, "q g"]
    counterpart: Float32[np.ndarray, "q g"]


def drawn_damage(
    generator: torch.Generator, noise: float = 0.003, wear: float = 0.007, clouds: tuple[int, int] = (4000, 30_000)
) -> Damage:
    """Nothing in four of ten cases, noise in three, wear with a little noise in two, clouds of points in the last."""
    kind, size, more = torch.rand(3, generator=generator).tolist()
    if kind < 0.4:
        return UNHARMED
    if kind < 0.7:
        return Damage(noise=noise * size)
    if kind < 0.9:
        return Damage(wear=wear * (0.2 + 0.8 * size), noise=noise * max(0.0, more - 0.5))
    return Damage(points=round(clouds[0] * (clouds[1] / clouds[0]) ** size), noise=noise * max(0.0, more - 0.5))


def surface_examples(
    meshes: Sequence[Mesh], generator: torch.Generator, damage: Damage = UNHARMED, config: ExampleConfig = EXAMPLES
) -> tuple[SurfaceExamples, ...]:
    """Examples of every level out of fragments that stand assembled, and are seen with a damage.

    Where the break is, and what lay on what, is known of the undamaged ones.
    """
    chance = np.random.Generator(np.random.PCG64(int(torch.randint(1 << 30, (1,), generator=generator))))
    whole = torch.cat([mesh.vertices for mesh in meshes])
    unit = float((whole.amax(0) - whole.amin(0)).max())
    clean = [Mesh((mesh.vertices - whole.mean(0)) / unit, mesh.faces) for mesh in meshes]
    seen = [with_normals(mesh) for mesh in damage.of(clean, generator)]
    points = torch.stack([sample_surface(mesh.vertices, mesh.faces, 64, generator)[0] for mesh in seen])
    spacing = spacing_of(FragmentPieces(points, tuple(seen), torch.zeros(len(seen), 3)))
    pieces = [SurfacePyramid.of(mesh, spacing, generator) for mesh in seen]
    truth = [SurfacePyramid.of(mesh, spacing, generator) for mesh in clean]
    touching = true_breaks([piece.levels[0] for piece in truth], spacing)
    told = [_Told.of(piece, known, own, 0) for piece, known, own in zip(pieces, truth, touching, strict=True)]
    broken = np.concatenate([one.places[one.broken] for one in told])
    centres = broken[chance.integers(len(broken), size=2)]
    examples = [_level(0, pieces, told, centres, chance, config)]
    few = [one.broken | (chance.random(len(one.broken)) < 0.003) for one in told]
    near = [piece.levels[0].points[own] for piece, own in zip(pieces, few, strict=True)]
    for level in range(1, LEVELS):
        reach = config.balls[level] * spacing
        close = [part[_within(part, centres, reach)] for part in near]
        pieces = [piece.refined(mesh, part, generator) for piece, mesh, part in zip(pieces, seen, close, strict=True)]
        truth = [piece.refined(mesh, part, generator) for piece, mesh, part in zip(truth, clean, close, strict=True)]
        touching = true_breaks([piece.levels[level] for piece in truth], spacing / 2**level)
        told = [_Told.of(piece, known, own, level) for piece, known, own in zip(pieces, truth, touching, strict=True)]
        shown = [i for i, mesh in enumerate(seen) if finest_level(mesh, spacing) >= level]
        examples.append(_level(level, [pieces[i] for i in shown], [told[i] for i in shown], centres, chance, config))
    return tuple(examples)


def _nothing(level: int) -> SurfaceExamples:
    features, empty = np.zeros((0, surface_features(level)), np.float32), np.zeros((0, FACE_FEATURES), np.float32)
    return SurfaceExamples(features, np.zeros(0, bool), np.zeros((0, 2), np.float32), empty, empty)


@dataclass(frozen=True)
class _Told:
    """For each point that is seen of a fragment, whether it is of the break, and where it was before any damage."""

    broken: Bool[np.ndarray, "p"]
    places: Float32[np.ndarray, "p 3"]

    @staticmethod
    def of(piece: SurfacePyramid, truth: SurfacePyramid, touching: Bool[np.ndarray, "q"], level: int) -> _Told:
        known, points = truth.levels[level].points, piece.levels[level].points
        if not len(known) or not len(points):
            return _Told(np.zeros(len(points), bool), points)
        nearest = cKDTree(known).query(points)[1]
        return _Told(touching[nearest], known[nearest])


def _within(points: np.ndarray, centres: np.ndarray, reach: float) -> np.ndarray:
    """Which points lie near one of the centres."""
    return (((points[:, None] - centres) ** 2).sum(-1) < reach**2).any(1)


def _level(
    level: int,
    pieces: Sequence[SurfacePyramid],
    told: Sequence[_Told],
    centres: np.ndarray,
    chance: np.random.Generator,
    config: ExampleConfig,
) -> SurfaceExamples:
    """Examples of one level; points at the edge of what was looked at are left out."""
    nothing = _nothing(level)
    if not pieces:
        return nothing
    spacing = pieces[0].spacing
    total = max(1, sum(len(one.broken) for one in told))
    rows = [(nothing.features, nothing.broken, nothing.weight)]
    for piece, one in zip(pieces, told, strict=True):
        inner = _within(piece.levels[level].points, centres, (config.balls[level] - 1.5) * spacing)
        chosen, weight = _choose(one.broken, inner, max(60, config.points[level] * len(inner) // total), chance)
        if len(chosen):
            rows.append((piece.features(level, chosen), one.broken[chosen], weight))
    features, broken, weight = (np.concatenate(column) for column in zip(*rows, strict=True))
    weight = np.minimum(weight / weight.mean(0) if len(weight) else weight, config.heaviest).astype(np.float32)
    fine = spacing / 2**level
    some = [(piece.levels[level], one) for piece, one in zip(pieces, told, strict=True) if one.broken.sum() > 9]
    faces = [(one.places[one.broken], *fracture_surface(points, one.broken, fine)) for points, one in some]
    own, counterpart = _matches(faces, 1.5 * fine, config.pairs[level], chance)
    return SurfaceExamples(features, broken, weight, own, counterpart)


def _choose(
    broken: np.ndarray, inner: np.ndarray, count: int, chance: np.random.Generator
) -> tuple[Int64[np.ndarray, "k"], Float32[np.ndarray, "k 2"]]:
    """As many points of the break as others, with the weights that undo the choice, and that balance the piece."""
    sides = [np.flatnonzero(broken & inner), np.flatnonzero(~broken & inner)]
    chosen = [chance.permutation(side)[: count // 2 + 1] for side in sides]
    weight = [
        np.tile([len(side) / max(1, len(own)), len(broken) / 2 / max(1, len(own))], (len(own), 1))
        for side, own in zip(sides, chosen, strict=True)
    ]
    return np.concatenate(chosen), np.concatenate(weight).astype(np.float32)


def _matches(
    faces: Sequence[tuple[Float32[np.ndarray, "_ 3"], FractureSurface, Float32[np.ndarray, "_ g"]]],
    reach: float,
    count: int,
    chance: np.random.Generator,
) -> tuple[Float32[np.ndarray, "q g"], Float32[np.ndarray, "q g"]]:
    """Features of points of the breaks, and of those of other breaks that were nearest to them and face them."""
    if not faces:
        return (np.zeros((0, FACE_FEATURES), np.float32),) * 2
    points = np.concatenate([places for places, _, _ in faces])
    normals = np.concatenate([face.smooth for _, face, _ in faces])
    features = np.concatenate([features for _, _, features in faces])
    owner = np.repeat(np.arange(len(faces)), [len(places) for places, _, _ in faces])
    far, near = cKDTree(points).query(points, 8, distance_upper_bound=reach)
    near = np.minimum(near, len(points) - 1)
    facing = (normals[near] * normals[:, None]).sum(-1) < -0.3
    good = np.isfinite(far) & (owner[near] != owner[:, None]) & facing
    own = chance.permutation(np.flatnonzero(good.any(1)))[:count]
    return features[own], features[near[own, good[own].argmax(1)]]


@dataclass(frozen=True)
class MatchExamples:
    """Numbers of matches (`fragments.verification`), and whether they are true."""

    numbers: Float32[np.ndarray, "m v"]
    true: Bool[np.ndarray, "m"]


def damaged(puzzle: Puzzle, damage: Damage, missing: float, generator: torch.Generator) -> Puzzle:
    """The puzzle with a damage, and without a share of its fragments, though two stay."""
    kept = surviving(len(puzzle), min(missing, max(0.0, 1 - 2 / len(puzzle))), generator)
    return damage.of_puzzle(puzzle, generator).reordered(kept)


def match_examples(
    puzzle: Puzzle,
    models: FractureModels,
    generator: torch.Generator,
    searches: int = 14,
    config: ExampleConfig = EXAMPLES,
) -> MatchExamples:
    """Search for matches of random pairs, every other time against a cluster that truly belongs together.

    Most searches are of pieces that truly touch. Every fifth starts at the next finer level, every tenth at level 0. Of
    two or three fragments there are fewer searches.
    """
    assert puzzle.truth is not None
    seed = int(torch.randint(1 << 30, (1,), generator=generator))
    chance = np.random.Generator(np.random.PCG64(seed))
    fragments = prepare(puzzle.fragments, models, seed)
    truth = pose_rows(puzzle.truth)
    wholes = [fragment.pyramid.levels[0].points for fragment in fragments]
    bodies = [transformed(pose, points) for pose, points in zip(truth, wholes, strict=True)]
    numbers, true = [], []
    for number in range(min(searches, 4 * len(fragments))):
        piece, others = _choose_pieces(bodies, fragments[0].spacing, number % 2 == 0, chance, config)
        first = Cluster(fragments, {piece: IDENTITY})
        second = Cluster(fragments, {other: truth[other] for other in others})
        wanted = truth[piece]
        if len(others) == 1:
            second = Cluster(fragments, {others[0]: IDENTITY})
            wanted = compose(inverse(truth[others[0]]), wanted)
        level, drawn = level_for(first, second), chance.random()
        if drawn < 0.1:
            level = 0
        elif drawn < 0.3 and can_refine(first, second, level + 1):
            level += 1
        matches = match_clusters(first, second, level, Effort(), models, seed + number, Effort.kept)
        off = min(
            config.off * fragments[0].spacing, config.share * float(np.linalg.norm(np.ptp(wholes[piece], axis=0)))
        )
        numbers += [match.features for match in matches]
        true += [close(match.pose, wanted, wholes[piece].mean(0), config.degrees, off) for match in matches]
    return MatchExamples(np.array(numbers, np.float32).reshape(-1, MATCH_FEATURES), np.array(true, bool))


def _choose_pieces(
    bodies: Sequence[np.ndarray], spacing: float, several: bool, chance: np.random.Generator, config: ExampleConfig
) -> tuple[int, list[int]]:
    """A piece, and one or several others, of which one mostly touches it."""
    order = [int(piece) for piece in chance.permutation(len(bodies))]
    piece, others = order[0], order[1:]
    if chance.random() < config.touching:
        near = [other for other in others if _touch(bodies[piece], bodies[other], spacing, config.few)]
        others = near[:1] + [other for other in others if other not in near[:1]]
    return piece, others[: int(chance.integers(1, len(bodies))) if several else 1]


def _touch(one: np.ndarray, two: np.ndarray, spacing: float, few: int) -> bool:
    far = cKDTree(two).query(one, 1, distance_upper_bound=1.2 * spacing)[0]
    return bool(np.isfinite(far).sum() > few)
