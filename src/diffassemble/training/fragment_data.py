"""Broken objects to learn from: points drawn once and kept, so that training parses no meshes, and an endless stream.

Every puzzle of the stream is a pure function of (seed, step, number).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int8, Int16, Int64
from torch import Tensor

from diffassemble.core import InputError, Mesh, Puzzle
from diffassemble.core.pieces import surviving
from diffassemble.core.seeds import seeded
from diffassemble.core.surfaces import sample_surface, surface_area
from diffassemble.files.atomic import cache_folder, write_file
from diffassemble.fragments.breaking import POINTS, turned_apart
from diffassemble.fragments.datasets import UNREADABLE, Fracture, MadeFracture
from diffassemble.training.config import FragmentConfig
from diffassemble.training.pictures import Portion, share_out, uniform

POOL_POINTS = 4096
VERSION = 2
_STEPS = 65_000
_NORMAL_STEPS = 127
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
        lost = min(missing, max(0.0, 1 - 2 / len(self)))
        kept = surviving(len(self), lost, generator)
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
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in fracture.files]
    told = repr((VERSION, POOL_POINTS, str(fracture.source.resolve()), fracture.fracture, stats))
    file = cache_folder() / "pools" / f"{hashlib.sha256(told.encode()).hexdigest()[:32]}.npz"
    with suppress(*UNREADABLE), np.load(file, allow_pickle=False) as arrays:
        return Pool(*(torch.from_numpy(arrays[name]) for name in _NAMES))
    pool = make_pool(fracture.meshes(), torch.Generator().manual_seed(0))
    buffer = io.BytesIO()
    np.savez(buffer, **{name: getattr(pool, name).numpy() for name in _NAMES})
    # Without a place to keep it, it is drawn anew next time.
    with suppress(InputError):
        write_file(file, buffer.getvalue())
    return pool


class PoolMixture:
    """Kinds of fractures, drawn from by their shares, where there are any."""

    def __init__(self, kinds: Sequence[Sequence[Pool]], shares: Sequence[float]) -> None:
        some = [(pools, share) for pools, share in zip(kinds, shares, strict=True) if pools and share > 0]
        self.kinds, self.shares = [pools for pools, _ in some], torch.tensor([share for _, share in some])

    def draw(self, generator: torch.Generator) -> Pool:
        """One fracture at random."""
        kind = self.kinds[int(torch.multinomial(self.shares, 1, generator=generator))]
        return kind[int(torch.randint(len(kind), (), generator=generator))]


class FragmentStream:
    """Batches of about `pieces` pieces out of kinds of fractures."""

    def __init__(self, pools: Sequence[Sequence[Pool]], config: FragmentConfig, pieces: int, seed: int) -> None:
        self.pools = PoolMixture(pools, config.shares)
        self.config, self.pieces, self.seed = config, pieces, seed

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""
        generator = seeded(self.seed, step)
        whole = uniform(0.0, 1.0, generator) < self.config.whole_share
        missing = 0.0 if whole else uniform(0.0, self.config.missing, generator)
        chosen = self._chosen(generator)
        numbers, share = share_out(len(chosen), rank, world)
        puzzles = [self._puzzle(step, number, chosen[number], missing) for number in numbers]
        # The loss is a mean over pieces, of which processes do not get equally many.
        own, every = (sum(len(chosen[number]) for number in some) for some in (numbers, range(len(chosen))))
        return Portion(puzzles, numbers.start, own * world / every if share else 0.0)

    def _chosen(self, generator: torch.Generator) -> list[Pool]:
        """Fractures at random until they make up a batch."""
        chosen: list[Pool] = []
        while not chosen or sum(map(len, chosen)) < self.pieces:
            pool = self.pools.draw(generator)
            joined = uniform(0.0, 1.0, generator) < self.config.joined
            chosen.append(pool.joined(generator) if joined else pool)
        return chosen

    def _puzzle(self, step: int, number: int, pool: Pool, missing: float) -> Puzzle:
        generator = seeded(self.seed, step, number)
        stretch = 1 + self.config.stretch * (2 * torch.rand(3, generator=generator) - 1)
        # Up stays up; left and right, front and back are often a matter of taste.
        mirror = 1 - 2 * torch.randint(0, 2, (3,), generator=generator) * torch.tensor([1, 0, 1])
        return pool.stretched(stretch * mirror).scatter(generator, self.config.points, missing)
