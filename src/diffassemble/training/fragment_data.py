"""Broken objects to learn from: points drawn once and kept, so that training parses no meshes, and an endless stream.

Every puzzle of the stream is a pure function of (seed, step, number).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int8, Int16, Int64
from torch import Tensor

from diffassemble.core import InputError, Locks, Matches, Mesh, Poses, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import seeded
from diffassemble.core.surfaces import sample_surface, surface_area
from diffassemble.fragments.breaking import POINTS, scatter, turned_apart
from diffassemble.fragments.datasets import UNREADABLE, Fracture, MadeFracture
from diffassemble.fragments.matches import PairSearch, find_matches, prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.io.atomic import cache_folder, write_file
from diffassemble.network.judge import corrupt_matches
from diffassemble.training.config import FragmentConfig
from diffassemble.training.pictures import Portion, share_out, uniform

POOL_POINTS = 4096
VERSION = 2
MATCHES_VERSION = 1
"""of how matches are found; other ones are not taken from the cache"""
_STEPS, _NORMAL_STEPS = 65_000, 127
"""whole steps in which pools keep the longest side, and the length of a normal"""
_NAMES = ("steps", "normal_steps", "areas")
Broken = Fracture | MadeFracture
"""an object broken once"""


@dataclass(frozen=True)
class Pool:
    """Points of the fragments where they belong, and the outward normals there.

    The whole is centred and its longest side is 1; kept are whole steps of 1/65000, and of 1/127 for normals.
    """

    steps: Int16[Tensor, "n p 3"]
    normal_steps: Int8[Tensor, "n p 3"]
    areas: Float[Tensor, "n"]
    """of the fragments' surfaces, in any unit"""

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def points(self) -> Float[Tensor, "n p 3"]:
        return self.steps.float() / _STEPS

    def points_at(self, whose: Int64[Tensor, "k"], which: Int64[Tensor, "k"]) -> Float[Tensor, "k 3"]:
        """Some of the points: which of whose."""
        return self.steps[whose, which].float() / _STEPS

    @property
    def normals(self) -> Float[Tensor, "n p 3"]:
        return torch.nn.functional.normalize(self.normal_steps.float(), dim=-1)

    def stretched(self, factors: Float[Tensor, "3"]) -> Pool:
        """The same fracture of an object stretched along the axes; a negative factor mirrors it."""
        places = self.points * factors
        low, high = places.flatten(0, 1).amin(0), places.flatten(0, 1).amax(0)
        places = (places - (low + high) / 2) / (high - low).max()
        normals = torch.nn.functional.normalize(self.normals / factors, dim=-1)
        return _kept(places, normals, self.areas)

    def joined(self, generator: torch.Generator) -> Pool:
        """The same object in fewer pieces: some fragments, drawn at random, each join those nearest to them."""
        centres = self.points.mean(1)
        count = int(torch.randint(1, len(self) + 1, (), generator=generator))
        nuclei = torch.randperm(len(self), generator=generator)[:count]
        groups = torch.cdist(centres, centres[nuclei]).argmin(1)
        parts = [self._together((groups == group).nonzero()[:, 0], generator) for group in groups.unique()]
        steps, normals, areas = (torch.stack(columns) for columns in zip(*parts, strict=True))
        return Pool(steps, normals, areas)

    def _together(self, members: Int64[Tensor, "m"], generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Some fragments as one: as many points as one of them has, drawn evenly by area."""
        size = self.steps.shape[1]
        whose = members[torch.multinomial(self.areas[members], size, replacement=True, generator=generator)]
        which = torch.randperm(size, generator=generator)
        return self.steps[whose, which], self.normal_steps[whose, which], self.areas[members].sum()

    def scatter(self, generator: torch.Generator, points: int = POINTS, missing: float = 0.0) -> Puzzle:
        """A puzzle of some of the points, by the protocol of `fragments.breaking.scatter`; its meshes are clouds.

        A share `missing` of the fragments is lost, but two stay. There are at most as many points as the pool has.
        """
        return self._scattered(self._kept(missing, generator), generator, points)

    def matched(
        self, matches: Matches, generator: torch.Generator, points: int = POINTS, missing: float = 0.0
    ) -> tuple[Puzzle, Matches]:
        """The same puzzle in the frame of its largest fragment, which is locked, and the matches of what is left.

        `matches` are those of the fragments as they stand in the whole.
        """
        kept = self._kept(missing, generator)
        puzzle = self._scattered(kept, generator, points)
        truth = puzzle.truth
        assert truth is not None
        number = torch.full((len(self),), -1)
        number[kept] = torch.arange(len(kept))
        left = matches[((number[matches.first] >= 0) & (number[matches.second] >= 0)).nonzero()[:, 0]]
        first, second = number[left.first], number[left.second]
        relative = truth[second].inverse() @ left.pose @ truth[first]
        largest = self.areas[kept].argmax()
        own = truth[largest.expand(len(kept))].inverse() @ truth
        locks = Locks(torch.arange(len(kept)) == largest, own)
        return replace(puzzle, truth=own, locks=locks), replace(left, first=first, second=second, pose=relative)

    def _kept(self, missing: float, generator: torch.Generator) -> Int64[Tensor, "m"]:
        return surviving(len(self), min(missing, max(0.0, 1 - 2 / len(self))), generator)

    def _scattered(self, kept: Int64[Tensor, "m"], generator: torch.Generator, points: int) -> Puzzle:
        chosen = [torch.randperm(self.steps.shape[1], generator=generator)[:points] for _ in kept]
        drawn = self.steps[kept[:, None], torch.stack(chosen)].float() / _STEPS
        clouds = [Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in drawn]
        return turned_apart(clouds, drawn, generator)


def make_pool(meshes: Sequence[Mesh], generator: torch.Generator, points: int = POOL_POINTS) -> Pool:
    """Draw points evenly by area from each of the fragments, which stand assembled."""
    corners = torch.cat([mesh.vertices for mesh in meshes])
    low, high = corners.amin(0), corners.amax(0)
    drawn = [sample_surface(mesh.vertices, mesh.faces, points, generator) for mesh in meshes]
    places = (torch.stack([place for place, _ in drawn]) - (low + high) / 2) / (high - low).max()
    normals = torch.stack([normal for _, normal in drawn])
    areas = torch.tensor([max(surface_area(mesh.vertices, mesh.faces), 1e-12) for mesh in meshes])
    return _kept(places, normals, areas)


def _kept(places: Float[Tensor, "n p 3"], normals: Float[Tensor, "n p 3"], areas: Float[Tensor, "n"]) -> Pool:
    return Pool((places * _STEPS).round().to(torch.int16), (normals * _NORMAL_STEPS).round().to(torch.int8), areas)


def pool_of(fracture: Broken) -> Pool:
    """The pool of a fracture, from the cache if it is there and its files have not changed since."""

    def make() -> dict[str, Tensor]:
        pool = make_pool(fracture.meshes(), torch.Generator().manual_seed(0))
        return {name: getattr(pool, name) for name in _NAMES}

    found = _cached("pools", fracture, (VERSION, POOL_POINTS), make)
    return Pool(*(found[name] for name in _NAMES))


def matches_of(fracture: Broken, models: FractureModels) -> Matches:
    """The matches of a fracture's fragments as they stand in the whole: true ones are near the identity.

    From the cache, if neither its files nor the matching networks have changed since.
    """

    def make() -> dict[str, Tensor]:
        puzzle = scatter(fracture.meshes(), seeded(MATCHES_VERSION))
        assert puzzle.truth is not None
        found = find_matches(PairSearch(prepare(puzzle.fragments, models, 0), models))
        standing = puzzle.truth[found.second] @ found.pose @ puzzle.truth[found.first].inverse()
        # Fragments were shuffled when they were scattered.
        order = torch.randperm(len(puzzle), generator=seeded(MATCHES_VERSION))
        first, second = order[found.first], order[found.second]
        return {"first": first, "second": second, "turn": standing.rotation, "shift": standing.translation} | {
            "evidence": found.evidence
        }

    found = _cached("matches", fracture, (MATCHES_VERSION, fingerprint(models)), make)
    first, relative = found["first"], Poses(found["turn"], found["shift"])
    return Matches(first, found["second"], relative, torch.zeros_like(first), found["evidence"])


def fingerprint(models: torch.nn.Module) -> str:
    """What tells networks with other weights apart."""
    digest = hashlib.sha256()
    for name, value in sorted(models.state_dict().items()):
        digest.update(name.encode() + value.contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _cached(
    kind: str, fracture: Broken, version: tuple[int | str, ...], make: Callable[[], dict[str, Tensor]]
) -> dict[str, Tensor]:
    """What was made of a fracture before, or is made now; kept, if there is a place for it."""
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in fracture.files]
    source = fracture.source.resolve() if stats else fracture.source  # solids that are made lie in no folder
    told = repr((*version, str(source), fracture.fracture, stats))
    file = cache_folder() / kind / f"{hashlib.sha256(told.encode()).hexdigest()[:32]}.npz"
    with suppress(*UNREADABLE), np.load(file, allow_pickle=False) as arrays:
        return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    made, buffer = make(), io.BytesIO()
    content: dict[str, Any] = {name: value.numpy() for name, value in made.items()}
    np.savez(buffer, **content)
    with suppress(InputError):
        write_file(file, buffer.getvalue())
    return made


Known = tuple[Pool, Matches | None]
"""points of a fracture, and the matches of its fragments where they are heard"""


class PoolMixture:
    """Kinds of fractures, drawn from by their shares, where there are any."""

    def __init__(self, kinds: Sequence[Sequence[Known]], shares: Sequence[float]) -> None:
        some = [(pools, share) for pools, share in zip(kinds, shares, strict=True) if pools and share > 0]
        self.kinds, self.shares = [pools for pools, _ in some], torch.tensor([share for _, share in some])

    def draw(self, generator: torch.Generator) -> Known:
        """One fracture at random."""
        kind = self.kinds[int(torch.multinomial(self.shares, 1, generator=generator))]
        return kind[int(torch.randint(len(kind), (), generator=generator))]


class FragmentStream:
    """Batches of about `pieces` pieces out of kinds of fractures."""

    def __init__(self, pools: Sequence[Sequence[Known]], config: FragmentConfig, pieces: int, seed: int) -> None:
        self.pools = PoolMixture(pools, config.shares)
        self.config, self.pieces, self.seed = config, pieces, seed

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""
        generator = seeded(self.seed, step)
        whole = uniform(0.0, 1.0, generator) < self.config.whole_share
        missing = 0.0 if whole else uniform(0.0, self.config.missing, generator)
        chosen = self._chosen(generator)
        numbers, share = share_out(len(chosen), rank, world)
        made = [self._puzzle(step, number, chosen[number], missing) for number in numbers]
        # The loss is a mean over pieces, of which processes do not get equally many.
        own, every = (sum(len(chosen[number][0]) for number in some) for some in (numbers, range(len(chosen))))
        matches = tuple(heard for _, heard in made if heard is not None)
        weight = own * world / every if share else 0.0
        return Portion([puzzle for puzzle, _ in made], numbers.start, weight, matches=matches)

    def _chosen(self, generator: torch.Generator) -> list[Known]:
        """Fractures at random until they make up a batch."""
        chosen: list[Known] = []
        while not chosen or sum(len(pool) for pool, _ in chosen) < self.pieces:
            pool, matches = self.pools.draw(generator)
            joined = matches is None and uniform(0.0, 1.0, generator) < self.config.joined
            chosen.append((pool.joined(generator) if joined else pool, matches))
        return chosen

    def _puzzle(self, step: int, number: int, known: Known, missing: float) -> tuple[Puzzle, Matches | None]:
        generator, (pool, matches) = seeded(self.seed, step, number), known
        if matches is not None:  # which hold for this very shape
            puzzle, left = pool.matched(matches, generator, self.config.points, missing)
            wrong, unheard = (uniform(0.0, most, generator) for most in (self.config.wrong, self.config.unheard))
            return puzzle, corrupt_matches(left, wrong, unheard, generator)
        stretch = 1 + self.config.stretch * (2 * torch.rand(3, generator=generator) - 1)
        # Nothing is mirrored: which side handles and spouts are on is a custom that can be learnt.
        return pool.stretched(stretch).scatter(generator, self.config.points, missing), None
