"""Examples for the networks of fracture matching: points of breaks and their matches, and matches true or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64

from diffassemble.core import FragmentPieces, Mesh, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.surfaces import sample_surface
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, Pose, close, compose, inverse
from diffassemble.fragments.descriptors import (
    FACE_FEATURES,
    LEVELS,
    FractureSurface,
    SurfacePyramid,
    fracture_surface,
    surface_features,
    true_breaks,
)
from diffassemble.fragments.matches import level_for, match_clusters, prepare
from diffassemble.fragments.model import MATCH_FEATURES, FractureModels
from diffassemble.fragments.pair_search import Effort
from diffassemble.fragments.surface import spacing_of

# Finer levels are looked at within so many spacings of level 0 around two points of the break.
_BALLS = (np.inf, 25.0, 10.0)
_POINTS = (2400, 2000, 1200)
_PAIRS = (600, 600, 300)
_HEAVIEST = 8.0
# A match is true if it is turned by at most so many degrees, and off by at most so many spacings of level 0.
_DEGREES, _OFF = 5.0, 2.5


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


def jittered(meshes: Sequence[Mesh], deviation: float, generator: torch.Generator) -> list[Mesh]:
    """The same meshes as a noisy scanner would see them."""
    return [
        Mesh(mesh.vertices + deviation * torch.randn(mesh.vertices.shape, generator=generator), mesh.faces)
        for mesh in meshes
    ]


def surface_examples(
    meshes: Sequence[Mesh], generator: torch.Generator, noise: float = 0.0
) -> tuple[SurfaceExamples, ...]:
    """Examples of every level out of fragments that stand assembled, with noise of a given deviation."""
    chance = np.random.Generator(np.random.PCG64(int(torch.randint(1 << 30, (1,), generator=generator))))
    noisy = jittered(meshes, noise, generator) if noise else list(meshes)
    points = torch.stack([sample_surface(mesh.vertices, mesh.faces, 64, generator)[0] for mesh in noisy])
    spacing = spacing_of(FragmentPieces(points, tuple(noisy), torch.zeros(len(noisy), 3)))
    pieces = [SurfacePyramid.of(mesh, spacing, generator) for mesh in noisy]
    labels = true_breaks([piece.levels[0] for piece in pieces], max(spacing, 2.5 * noise))
    touching = np.concatenate([piece.levels[0].points[own] for piece, own in zip(pieces, labels, strict=True)])
    centres = touching[chance.integers(len(touching), size=2)]
    examples = [_level(0, pieces, labels, centres, chance, noise)]
    few = [own | (chance.random(len(own)) < 0.003) for own in labels]
    near = [piece.levels[0].points[own] for piece, own in zip(pieces, few, strict=True)]
    for level in range(1, LEVELS):
        reach = _BALLS[level] * spacing
        close = [part[_within(part, centres, reach)] for part in near]
        pieces = [piece.refined(mesh, part, generator) for piece, mesh, part in zip(pieces, noisy, close, strict=True)]
        labels = true_breaks([piece.levels[level] for piece in pieces], max(spacing / 2**level, 2.5 * noise))
        examples.append(_level(level, pieces, labels, centres, chance, noise))
    return tuple(examples)


def _within(points: np.ndarray, centres: np.ndarray, reach: float) -> np.ndarray:
    """Which points lie near one of the centres."""
    return (((points[:, None] - centres) ** 2).sum(-1) < reach**2).any(1)


def _level(
    level: int,
    pieces: Sequence[SurfacePyramid],
    labels: Sequence[np.ndarray],
    centres: np.ndarray,
    chance: np.random.Generator,
    noise: float,
) -> SurfaceExamples:
    """Examples of one level; points at the edge of what was looked at are left out."""
    spacing = pieces[0].spacing
    total = max(1, sum(map(len, labels)))
    nothing = np.zeros((0, surface_features(level)), np.float32), np.zeros(0, bool), np.zeros((0, 2), np.float32)
    rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [nothing]
    for piece, broken in zip(pieces, labels, strict=True):
        inner = _within(piece.levels[level].points, centres, (_BALLS[level] - 1.5) * spacing)
        chosen, weight = _choose(broken, inner, max(60, _POINTS[level] * len(broken) // total), chance)
        if len(chosen):
            rows.append((piece.features(level, chosen), broken[chosen], weight))
    features, broken, weight = (np.concatenate(column) for column in zip(*rows, strict=True))
    weight = np.minimum(weight / weight.mean(0) if len(weight) else weight, _HEAVIEST).astype(np.float32)
    fine = spacing / 2**level
    broken_pieces = [(piece.levels[level], own) for piece, own in zip(pieces, labels, strict=True) if own.sum() > 9]
    faces = [fracture_surface(points, own, fine) for points, own in broken_pieces]
    own, counterpart = _matches(faces, max(1.5 * fine, 2 * noise), _PAIRS[level], chance)
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
    faces: Sequence[tuple[FractureSurface, Float32[np.ndarray, "_ g"]]],
    reach: float,
    count: int,
    chance: np.random.Generator,
) -> tuple[Float32[np.ndarray, "q g"], Float32[np.ndarray, "q g"]]:
    """Features of points of the breaks, and of the nearest points of other breaks that face them."""
    from scipy.spatial import cKDTree

    if not faces:
        return (np.zeros((0, FACE_FEATURES), np.float32),) * 2
    points = np.concatenate([face.points for face, _ in faces])
    normals = np.concatenate([face.smooth for face, _ in faces])
    features = np.concatenate([features for _, features in faces])
    owner = np.repeat(np.arange(len(faces)), [len(face.points) for face, _ in faces])
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


def worn(puzzle: Puzzle, noise: float, missing: float, generator: torch.Generator) -> Puzzle:
    """The puzzle without a share of its fragments, though two stay, the others as a noisy scanner would see them.

    `noise` is a share of the size of the whole.
    """
    left = puzzle.reordered(surviving(len(puzzle), min(missing, max(0.0, 1 - 2 / len(puzzle))), generator))
    meshes = jittered(left.fragments.meshes, noise, generator)
    return replace(left, pieces=replace(left.fragments, meshes=tuple(meshes)))


def match_examples(
    puzzle: Puzzle, models: FractureModels, generator: torch.Generator, searches: int = 14
) -> MatchExamples:
    """Search for matches of random pairs, every other time against a cluster that truly belongs together.

    Of two or three fragments there are fewer searches.
    """
    assert puzzle.truth is not None
    seed = int(torch.randint(1 << 30, (1,), generator=generator))
    chance = np.random.Generator(np.random.PCG64(seed))
    fragments = prepare(puzzle.fragments, models, seed)
    truth = np.concatenate([puzzle.truth.rotation.flatten(1).numpy(), puzzle.truth.translation.numpy()], 1)
    numbers, true = [], []
    for number in range(min(searches, 4 * len(fragments))):
        order = chance.permutation(len(fragments))
        size = 1 if number % 2 else int(chance.integers(1, len(fragments)))
        first = Cluster(fragments, {int(order[-1]): IDENTITY})
        second = Cluster(fragments, {int(piece): truth[piece].astype(np.float64) for piece in order[:size]})
        level = min(level_for(first, second) + int(chance.random() < 0.2), LEVELS - 1)
        wanted = truth[order[-1]].astype(np.float64)
        if size == 1:
            wanted = compose(inverse(truth[order[0]].astype(np.float64)), wanted)
            second = Cluster(fragments, {int(order[0]): IDENTITY})
        matches = match_clusters(first, second, level, Effort(), models, seed + number)
        middle = fragments[order[-1]].pyramid.levels[0].points.mean(0)
        numbers += [match.numbers for match in matches]
        true += [is_true(match.pose, wanted, middle, fragments[0].spacing) for match in matches]
    return MatchExamples(np.array(numbers, np.float32).reshape(-1, MATCH_FEATURES), np.array(true, bool))


def is_true(pose: Pose, wanted: Pose, middle: Float32[np.ndarray, "3"], spacing: float) -> bool:
    """Whether a pose is the wanted one, up to what refinement mends."""
    return close(pose, wanted, middle, _DEGREES, _OFF * spacing)
