"""The task of learning fracture matching: first breaks and their descriptors, then which matches are true.

Examples are points of breaks and their counterparts, and matches that are true or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from annotated_types import Interval
from jaxtyping import Bool, Float, Float32
from scipy.spatial import cKDTree
from torch import Tensor, nn

from diffassemble.core import FragmentPieces, InputError, Mesh, Puzzle
from diffassemble.core.limits import LIMITS
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
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.data import missing_share, share_out, survivors
from diffassemble.training.fragments import Broken, FragmentConfig, gather, made_of
from diffassemble.training.loop import Task

_Points = Annotated[int, Interval(ge=20, le=LIMITS.points)]
Rows = Float32[np.ndarray, "_ _"]


@dataclass(frozen=True)
class ExampleConfig:
    """How examples are made of fractures; lengths in spacings of level 0, numbers of points per level."""

    balls: tuple[float, float, float] = (np.inf, 25.0, 10.0)
    """radii around two points of the break within which examples of a level are"""
    points: tuple[int, int, int] = (2400, 2000, 1200)
    """points of which is learnt whether they are of the break"""
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
    """surface: where the break is, and what its descriptors are; fits, after that: which matches are true"""
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
    """points of each level, or matches, in a batch, over all processes"""
    crowd: Count = 160
    """points of one fracture that are distinguished in a step"""
    blur: Weight = 0.15
    """noise on the numbers of matches, in their deviations, so that no single match is memorised"""


DEFAULT = FractureMatchingTraining()


class SurfaceExamples(NamedTuple):
    """Examples of one fracture at one level.

    `features` of points, whether they are `broken`, and their `weight` so that they count as often as they occur, and
    as if half of each piece were broken; `own` and `counterpart` are features of points that touch each other.
    """

    features: Float32[np.ndarray, "p f"]
    broken: Bool[np.ndarray, "p"]
    weight: Float32[np.ndarray, "p 2"]
    own: Float32[np.ndarray, "q g"]
    counterpart: Float32[np.ndarray, "q g"]


class MatchExamples(NamedTuple):
    """Numbers of matches (`fragments.verification`), and whether they are true."""

    numbers: Float32[np.ndarray, "m v"]
    true: Bool[np.ndarray, "m"]


class FractureMatchingTask(Task):
    """All examples are made at the start, `data.times` of every fracture; then small networks learn from them.

    `data.learn` "surface" teaches breaks and descriptors, "fits" then (with --training.start-from) which matches are
    true.
    """

    defaults = Config(FractureConfig(), FractureDataConfig(), FractureMatchingTraining())
    network = FractureModels
    unit = "points"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        kinds, held_apart = gather(config.data)
        both = [config.data.times * list(some) for some in (chain(*kinds), held_apart)]
        self.held_surfaces = list[tuple[SurfaceExamples, ...]]()
        if config.data.learn == "fits":
            self.matches, self.held_matches = map(self._matches, both)
        else:
            threads = torch.get_num_threads()
            self.surfaces, self.held_surfaces = (made_of(enumerate(some), self._surface, threads) for some in both)

    def check(self, config: Config) -> None:
        super().check(config)
        if config.data.learn == "fits" and not config.training.start_from:
            raise InputError("--data.learn fits: needs networks that know surfaces; pass --training.start-from FOLDER")

    def _surface(self, numbered: tuple[int, Broken]) -> tuple[SurfaceExamples, ...]:
        generator = seeded(self.config.training.seed, numbered[0])
        return surface_examples(numbered[1].meshes(), generator, self._damage(generator))

    def _matches(self, fractures: Sequence[Broken]) -> MatchExamples:
        models, data = FractureModels.from_pretrained(self.config.training.start_from), self.config.data

        def make(numbered: tuple[int, Broken]) -> MatchExamples:
            generator = seeded(self.config.training.seed, numbered[0], 1)
            missing = missing_share(data, generator)
            puzzle = damaged(scatter(numbered[1].meshes(), generator), self._damage(generator), missing, generator)
            return match_examples(puzzle, models, generator)

        nothing = MatchExamples(np.zeros((0, MATCH_FEATURES), np.float32), np.zeros(0, bool))
        made = made_of(enumerate(fractures), make)
        return MatchExamples(*map(np.concatenate, zip(nothing, *made, strict=True)))

    def _damage(self, generator: torch.Generator) -> Damage:
        """What an object suffers; nothing in four of ten cases."""
        return drawn_damage(generator, self.config.data.noise, self.config.data.wear, self.config.data.clouds)

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, FractureModels)
        training = self.config.training
        numbers, weight = share_out(training.points, rank, world)
        generator = seeded(training.seed, step, rank)
        if self.config.data.learn == "fits":
            return weight * verification_loss(model, self.matches, len(numbers), generator, training.blur)
        return weight * surface_loss(model, self.surfaces, len(numbers), generator, training.crowd)

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Percent of points and matches of objects held apart that are classified right; "score" is their mean."""
        assert isinstance(model, FractureModels)
        model.eval()
        scores: dict[str, list[float]] = {}
        if self.config.data.learn == "fits" and len(self.held_matches.true):
            found = model.verification_logits(torch.from_numpy(self.held_matches.numbers)) > 0
            scores["fits"] = [100 * float((found.numpy() == self.held_matches.true).mean())]
        for level, one in (pair for examples in self.held_surfaces for pair in enumerate(examples)):
            if not len(one.broken):
                continue
            logits = model.segmentation_logits(level, torch.from_numpy(one.features))
            for column, kind in enumerate(("breaks", "balanced")):
                right = ((logits[:, column] > 0).numpy() == one.broken) * one.weight[:, column]
                share = 100 * float(right.sum() / one.weight[:, column].sum())
                scores.setdefault(f"{kind} {level}", []).append(share)
            if len(one.own) > 1:
                scores.setdefault(f"matches {level}", []).append(matches_found(model, level, one))
        model.train()
        means = {name: float(np.mean(values)) for name, values in scores.items()}
        return {"score": sum(means.values()) / max(1, len(means)), **means}


def surface_loss(
    model: FractureModels,
    examples: Sequence[tuple[SurfaceExamples, ...]],
    points: int,
    generator: torch.Generator,
    crowd: int = DEFAULT.crowd,
) -> Float[Tensor, ""]:
    """Cross-entropy of points of several fractures at every level, and of the choice of their counterparts."""
    total = torch.zeros(())
    for level in range(LEVELS):
        useful = [example[level] for example in examples if len(example[level].broken)]
        chosen = torch.randint(len(useful), (max(1, points // crowd),), generator=generator)
        some = [useful[row] for row in chosen.tolist()]
        parts = [torch.randint(len(one.broken), (crowd,), generator=generator).numpy() for one in some]
        drawn = [[column[part] for column in one[:3]] for one, part in zip(some, parts, strict=True)]
        features, broken, weight = (torch.from_numpy(np.concatenate(columns)) for columns in zip(*drawn, strict=True))
        logits = model.segmentation_logits(level, features)
        target = broken[:, None].expand(-1, 2).float()
        total = total + (F.binary_cross_entropy_with_logits(logits, target, reduction="none") * weight).mean()
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
    own, other = (
        torch.from_numpy(np.concatenate([getattr(one, name)[part] for one, part in zip(some, drawn, strict=True)]))
        for name in ("own", "counterpart")
    )
    both = model.describe(level, torch.cat([own * torch.from_numpy(COUNTERPART_SIGNS), other]))
    losses = []
    for sought, seen in zip(both[: len(own)].split(crowd), both[len(own) :].split(crowd), strict=True):
        logits = model.sharpness.exp() * sought @ seen.T
        choice = torch.arange(len(logits))
        losses.append(F.cross_entropy(logits, choice) + F.cross_entropy(logits.T, choice))
    return torch.stack(losses).mean() / 2


def matches_found(model: FractureModels, level: int, one: SurfaceExamples) -> float:
    """Percent of points whose true counterpart is among the best twelve of three hundred."""
    sought = model.describe(level, torch.from_numpy(one.own[:300] * COUNTERPART_SIGNS))
    likeness = sought @ model.describe(level, torch.from_numpy(one.counterpart[:300])).T
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


def drawn_damage(
    generator: torch.Generator, noise: float = 0.003, wear: float = 0.007, clouds: tuple[int, int] = (4000, 30_000)
) -> Damage:
    """Nothing in four of ten cases, noise in three, wear with a little noise in two, clouds of points in the last."""
    kind, size, more = torch.rand(3, generator=generator).tolist()
    little = noise * max(0.0, more - 0.5)
    if kind < 0.4:
        return UNHARMED
    if kind < 0.7:
        return Damage(noise=noise * size)
    if kind < 0.9:
        return Damage(wear=wear * (0.2 + 0.8 * size), noise=little)
    return Damage(points=round(clouds[0] * (clouds[1] / clouds[0]) ** size), noise=little)


class _Seen(NamedTuple):
    """Of each point of a damaged fragment, whether it is of the break, and where it was before any damage."""

    broken: Bool[np.ndarray, "p"]
    places: Float32[np.ndarray, "p 3"]


def surface_examples(
    meshes: Sequence[Mesh], generator: torch.Generator, damage: Damage = UNHARMED, config: ExampleConfig = EXAMPLES
) -> tuple[SurfaceExamples, ...]:
    """Examples of every level out of assembled fragments, of which the damaged surfaces are given to the network.

    Where the break is, and which points touch, follows from the undamaged ones.
    """
    chance = np.random.Generator(np.random.PCG64(int(torch.randint(1 << 30, (1,), generator=generator))))
    whole = torch.cat([mesh.vertices for mesh in meshes])
    unit = float((whole.amax(0) - whole.amin(0)).max())
    clean = [Mesh((mesh.vertices - whole.mean(0)) / unit, mesh.faces) for mesh in meshes]
    given = [with_normals(mesh) for mesh in damage.of(clean, generator)]
    points = torch.stack([sample_surface(mesh.vertices, mesh.faces, 64, generator)[0] for mesh in given])
    spacing = spacing_of(FragmentPieces(points, tuple(given), torch.zeros(len(given), 3)))
    pieces = [SurfacePyramid.of(mesh, spacing, generator) for mesh in given]
    truth = [SurfacePyramid.of(mesh, spacing, generator) for mesh in clean]
    examples, near, centres = list[SurfaceExamples](), list[np.ndarray](), np.zeros((0, 3))
    for level in range(LEVELS):
        if level:
            close = [part[_within(part, centres, config.balls[level] * spacing)] for part in near]
            pieces, truth = (
                [piece.refined(mesh, part, generator) for piece, mesh, part in zip(some, shapes, close, strict=True)]
                for some, shapes in ((pieces, given), (truth, clean))
            )
        touching = true_breaks([piece.levels[level] for piece in truth], spacing / 2**level)
        seen = [_seen(*three, level) for three in zip(pieces, truth, touching, strict=True)]
        if not level:
            broken = np.concatenate([one.places[one.broken] for one in seen])
            centres = broken[chance.integers(len(broken), size=2)]
        shown = [i for i, mesh in enumerate(given) if finest_level(mesh, spacing) >= level]
        examples.append(_level(level, [(pieces[i], seen[i]) for i in shown], centres, chance, config))
        if not level:
            few = [one.broken | (chance.random(len(one.broken)) < 0.003) for one in seen]
            near = [piece.levels[0].points[own] for piece, own in zip(pieces, few, strict=True)]
    return tuple(examples)


def _seen(piece: SurfacePyramid, truth: SurfacePyramid, touching: Bool[np.ndarray, "q"], level: int) -> _Seen:
    known, points = truth.levels[level].points, piece.levels[level].points
    if not len(known) or not len(points):
        return _Seen(np.zeros(len(points), bool), points)
    nearest = cKDTree(known).query(points)[1]
    return _Seen(touching[nearest], known[nearest])


def _within(points: np.ndarray, centres: np.ndarray, reach: float) -> np.ndarray:
    """Which points are near one of the centres."""
    return (((points[:, None] - centres) ** 2).sum(-1) < reach**2).any(1)


def _level(
    level: int,
    pieces: Sequence[tuple[SurfacePyramid, _Seen]],
    centres: np.ndarray,
    chance: np.random.Generator,
    config: ExampleConfig,
) -> SurfaceExamples:
    """Examples of one level, without points at the edge of the balls.

    As many points of the break are chosen as others, with weights that undo the choice, and that balance the piece.
    """
    rows = [(np.zeros((0, surface_features(level)), np.float32), np.zeros(0, bool), np.zeros((0, 2), np.float32))]
    total, faces = max(1, sum(len(seen.broken) for _, seen in pieces)), []
    spacing = pieces[0][0].spacing if pieces else 0.0
    fine = spacing / 2**level
    for piece, seen in pieces:
        inner = _within(piece.levels[level].points, centres, (config.balls[level] - 1.5) * spacing)
        half = max(60, config.points[level] * len(inner) // total) // 2 + 1
        sides = [np.flatnonzero(seen.broken & inner), np.flatnonzero(~seen.broken & inner)]
        drawn = [chance.permutation(side)[:half] for side in sides]
        each = [
            np.tile([len(side) / max(1, len(own)), len(inner) / 2 / max(1, len(own))], (len(own), 1))
            for side, own in zip(sides, drawn, strict=True)
        ]
        chosen = np.concatenate(drawn)
        if len(chosen):
            rows.append((piece.features(level, chosen), seen.broken[chosen], np.concatenate(each).astype(np.float32)))
    features, broken, weight = (np.concatenate(column) for column in zip(*rows, strict=True))
    weight = np.minimum(weight / weight.mean(0) if len(weight) else weight, config.heaviest).astype(np.float32)
    for piece, seen in pieces:
        if seen.broken.sum() > 9:
            faces.append((seen.places[seen.broken], *fracture_surface(piece.levels[level], seen.broken, fine)))
    own, counterpart = _counterparts(faces, 1.5 * fine, config.pairs[level], chance)
    return SurfaceExamples(features, broken, weight, own, counterpart)


def _counterparts(
    faces: Sequence[tuple[Float32[np.ndarray, "_ 3"], FractureSurface, Rows]],
    reach: float,
    count: int,
    chance: np.random.Generator,
) -> tuple[Rows, Rows]:
    """Features of points of the breaks, and of those of other breaks that were nearest to them and face them."""
    if not faces:
        return (np.zeros((0, FACE_FEATURES), np.float32),) * 2
    points, features = (np.concatenate([face[column] for face in faces]) for column in (0, 2))
    normals = np.concatenate([face.smooth for _, face, _ in faces])
    owner = np.repeat(np.arange(len(faces)), [len(places) for places, _, _ in faces])
    far, near = cKDTree(points).query(points, 8, distance_upper_bound=reach)
    near = np.minimum(near, len(points) - 1)
    facing = (normals[near] * normals[:, None]).sum(-1) < -0.3
    good = np.isfinite(far) & (owner[near] != owner[:, None]) & facing
    own = chance.permutation(np.flatnonzero(good.any(1)))[:count]
    return features[own], features[near[own, good[own].argmax(1)]]


def damaged(puzzle: Puzzle, damage: Damage, missing: float, generator: torch.Generator) -> Puzzle:
    """The puzzle with a damage, and without a share of its fragments, though two stay."""
    kept = survivors(len(puzzle), missing, generator)
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
    truth, spacing = pose_rows(puzzle.truth), fragments[0].spacing
    wholes = [fragment.pyramid.levels[0].points for fragment in fragments]
    bodies = [transformed(pose, points) for pose, points in zip(truth, wholes, strict=True)]
    numbers, true = [], []
    for number in range(min(searches, 4 * len(fragments))):
        piece, others = _choose_pieces(bodies, spacing, number % 2 == 0, chance, config)
        first = Cluster(fragments, {piece: IDENTITY})
        second, wanted = Cluster(fragments, {other: truth[other] for other in others}), truth[piece]
        if len(others) == 1:
            second = Cluster(fragments, {others[0]: IDENTITY})
            wanted = compose(inverse(truth[others[0]]), wanted)
        level, drawn = level_for(first, second), chance.random()
        if drawn < 0.1:
            level = 0
        elif drawn < 0.3 and can_refine(first, second, level + 1):
            level += 1
        matches = match_clusters(first, second, level, Effort(), models, seed + number, Effort.kept)
        off = min(config.off * spacing, config.share * float(np.linalg.norm(np.ptp(wholes[piece], axis=0))))
        numbers += [match.features for match in matches]
        true += [close(match.pose, wanted, wholes[piece].mean(0), config.degrees, off) for match in matches]
    return MatchExamples(np.array(numbers, np.float32).reshape(-1, MATCH_FEATURES), np.array(true, bool))


def _choose_pieces(
    bodies: Sequence[np.ndarray], spacing: float, several: bool, chance: np.random.Generator, config: ExampleConfig
) -> tuple[int, list[int]]:
    """A piece, and one or several others, of which one mostly touches it."""

    def touches(one: int, two: int) -> bool:
        far = cKDTree(bodies[two]).query(bodies[one], 1, distance_upper_bound=1.2 * spacing)[0]
        return bool(np.isfinite(far).sum() > config.few)

    piece, *others = (int(piece) for piece in chance.permutation(len(bodies)))
    if chance.random() < config.touching:
        near = next((other for other in others if touches(piece, other)), None)
        others = others if near is None else [near, *(other for other in others if other != near)]
    return piece, others[: int(chance.integers(1, len(bodies))) if several else 1]
