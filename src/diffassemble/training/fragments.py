"""The task of learning to put broken objects together.

Points of every fracture are drawn once and kept on disk, so that training parses no meshes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import torch
from annotated_types import Interval
from jaxtyping import Float, Int16
from torch import Tensor, nn

from diffassemble.assembly.scoring import piece_chamfer, right_pieces
from diffassemble.core import InputError, Matches, Mesh, Poses, Puzzle
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Cases, Count, Fraction, Natural, Settings, Share, Weight
from diffassemble.core.surfaces import chamfer_distance, sample_surface, surface_area
from diffassemble.evaluation.metrics import euler_error, translation_error
from diffassemble.fragments.breaking import POINTS, scatter, turned_apart
from diffassemble.fragments.datasets import Fracture, MadeFracture, break_files, break_solids, find_fractures
from diffassemble.fragments.matches import PairSearch, find_matches, prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.io.atomic import cache_folder
from diffassemble.network.batch import PuzzleBatch, pack, with_matches
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.judge import corrupt_matches, denoise
from diffassemble.training.config import Config
from diffassemble.training.data import (
    Mixture,
    Portion,
    Scored,
    cached,
    missing_share,
    relative_to,
    remaining,
    share_out,
    survivors,
    uniform,
)
from diffassemble.training.denoising import Denoising, DenoisingTraining

STEPS = 65_000
"""whole steps in which pools keep the longest side"""
VERSIONS = {"pools": (2, 4096), "matches": (2,)}
"""of what is kept on disk, and points of a fragment in pools; what other versions made is made anew"""
Broken = Fracture | MadeFracture
"""an object broken once"""
Item = TypeVar("Item")
Made = TypeVar("Made")
_Fragments = Annotated[int, Interval(ge=2, le=LIMITS.fragments)]


@dataclass(frozen=True)
class FragmentConfig(Settings):
    """Which broken objects, which whole ones to break, and what puzzles become of them."""

    folders: tuple[Path, ...] = ()
    """folders of Breaking Bad, of which the training split is used"""
    meshes: tuple[Path, ...] = ()
    """folders of whole solids that are broken here"""
    z_up: str = "[A-Z0-9]*"
    """file names of solids whose up is z, as of Google's scanned objects; that of all others is y"""
    solids: Cases = 0
    """solids with random shapes, to be broken here"""
    breaks: Cases = 3
    """fractures made of each solid"""
    shares: tuple[Weight, Weight, Weight] = (0.6, 0.2, 0.2)
    """how often a fracture is drawn from each of these three kinds, where there are any"""
    held_apart: Natural = 12
    """objects of each Breaking Bad folder that choose the checkpoint and are never trained on"""
    pieces: tuple[_Fragments, _Fragments] = (2, 20)
    """fewest and most pieces of a fracture"""
    points: Annotated[int, Interval(ge=32, le=LIMITS.points)] = 400
    """points a piece"""
    missing: Fraction = 0.3
    """largest share of missing pieces"""
    whole_share: Share = 0.7
    """share of batches without missing pieces"""
    joined: Share = 0.0
    """share of fractures with adjacent fragments joined at random, as `mend` joins them; only without matches"""
    stretch: Fraction = 0.15
    """how far objects are stretched along each axis at random; only without matches"""
    wrong: Fraction = 0.4
    """largest share of matches, where the network reads them, that are wrong"""
    unheard: Fraction = 0.3
    """largest share of them that are lost"""
    matching: str = "fracture-matching"
    """networks that find them: a bundled model, a folder or a hub id"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not (self.folders or self.meshes or self.solids):
            yield "folders", "something to learn from; pass --data.folders DIR, --data.meshes DIR or --data.solids N"
        if self.pieces[0] > self.pieces[1]:
            yield "pieces", "the fewest pieces, then the most"
        if not any(self.shares):
            yield "shares", "more than 0 for some kind"


@dataclass(frozen=True)
class FragmentTraining(DenoisingTraining):
    """How a network learns to put fragments together."""

    chamfer_weight: Weight = 10.0
    """weight of the distance between a piece's shape where it is put and where it belongs; 0 leaves it out"""
    chamfer_points: Count = 128
    """points of a piece by which shapes are compared"""
    bytes_a_point: Count = 1500
    """memory of a step for each point of a piece"""
    wrong: tuple[Share, Share] = (0.0, 0.3)
    """shares of matches that are wrong when objects held apart are put together"""


@dataclass(frozen=True)
class Pool:
    """Points of the fragments at their true poses, in whole steps; the whole is centred, its longest side is 1."""

    steps: Int16[Tensor, "n p 3"]
    areas: Float[Tensor, "n"]
    """of the fragments' surfaces, in any unit"""
    matches: Matches | None = None
    """of the fragments at their true poses, where the network reads them"""

    @staticmethod
    def of(places: Float[Tensor, "n p 3"], areas: Float[Tensor, "n"]) -> Pool:
        """The pool of such points, rounded to whole steps."""
        return Pool((places * STEPS).round().to(torch.int16), areas)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def points(self) -> Float[Tensor, "n p 3"]:
        return self.steps.float() / STEPS

    def scatter(self, generator: torch.Generator, points: int = POINTS, missing: float = 0.0) -> Scored:
        """A puzzle of some of the points, by the protocol of `fragments.breaking.scatter`; its meshes are clouds.

        A share `missing` of the fragments is lost, but two stay. There are at most as many points as the pool has.
        With matches, it is in the frame of its largest fragment, which is locked, and has those of what is left.
        """
        kept = survivors(len(self), missing, generator)
        chosen = [torch.randperm(self.steps.shape[1], generator=generator)[:points] for _ in kept]
        drawn = self.steps[kept[:, None], torch.stack(chosen)].float() / STEPS
        clouds = [Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in drawn]
        puzzle = turned_apart(clouds, drawn, generator)
        if self.matches is None:
            return puzzle, None
        assert puzzle.truth is not None
        left = remaining(self.matches, kept, len(self))
        pose = puzzle.truth[left.second].inverse() @ left.pose @ puzzle.truth[left.first]
        return relative_to(puzzle, self.areas[kept].argmax()), replace(left, pose=pose)


class FragmentTask(Denoising):
    """Puzzles of broken objects; the shape's Chamfer distance beside the loss; accuracy on objects held apart."""

    defaults = Config(
        ModelConfig(backbone="vn_dgcnn", features=48, symmetry="invariant", space="so3", contact_slots=1),
        FragmentConfig(),
        FragmentTraining(),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        data, matched = config.data, getattr(config.model, "pairwise", False)
        models = FractureModels.from_pretrained(data.matching) if matched else None
        self.known, apart = load_fractures(data, models)
        self.held_apart: list[Scored] = []
        for number, pool in enumerate(apart):
            generator = seeded(77, number)
            puzzle, left = pool.scatter(generator, data.points)
            if left is None:
                self.held_apart.append((puzzle, None))
                continue
            for wrong in config.training.wrong:
                self.held_apart.append((puzzle, corrupt_matches(left, wrong, 0.0, generator)))

    def check(self, config: Config) -> None:
        super().check(config)
        points = config.data.points
        needed = config.training.bytes_a_point * points * config.training.pieces / config.training.devices
        check_memory(needed, f"--data.points {points}: a step", "take fewer points or --training.pieces")
        self.check_model(config.model)

    def check_model(self, model: Any) -> None:
        """Refuse networks that read no matches of broken objects, by the names of their options."""
        if not (model.pairwise and model.votes and model.space == "so3" and model.contact_slots == 1):
            raise InputError("--model.votes: matches are read with votes, space so3 and contact-slots 1")

    def draw(self, generator: torch.Generator) -> Pool:
        """A random fracture."""
        return self.known.draw(generator)

    def puzzle(self, pool: Pool, missing: float, generator: torch.Generator) -> Scored:
        """A puzzle of a fracture, a share of whose pieces is missing and of whose matches some are wrong."""
        data = self.config.data
        puzzle, left = pool.scatter(generator, data.points, missing)
        assert left is not None
        wrong, lost = (uniform(0.0, most, generator) for most in (data.wrong, data.unheard))
        return puzzle, corrupt_matches(left, wrong, lost, generator)

    def portion(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """Random fractures of about as many pieces as were asked for, one missing share for all."""
        seed = self.config.training.seed
        generator, chosen = seeded(seed, step), list[Pool]()
        missing = missing_share(self.config.data, generator)
        while sum(map(len, chosen)) < self.config.training.pieces:
            chosen.append(self.draw(generator))
        numbers, weight = share_out([*map(len, chosen)], rank, world)
        made = [self.puzzle(chosen[number], missing, seeded(seed, step, number)) for number in numbers]
        left = tuple(matches for _, matches in made if matches is not None)
        return Portion([puzzle for puzzle, _ in made], numbers.start, weight, matches=left)

    def further_loss(self, batch: PuzzleBatch, true: Poses, predicted: Poses) -> Tensor | float:
        training = self.config.training
        if training.chamfer_weight == 0:
            return 0.0
        points = batch.content[:, : training.chamfer_points].repeat_interleave(len(true) // len(batch.content), 0)
        with torch.autocast(points.device.type, enabled=False):  # neighbours are searched with all digits
            return training.chamfer_weight * chamfer_distance(predicted.apply(points), true.apply(points)).mean()

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Errors on held-apart objects, one sample each; "score" is part accuracy less RMSE(R).

        Poses are absolute; those of networks that read matches are relative to the largest piece, some matches wrong.
        """
        assert isinstance(model, PoseNetwork)
        errors = [_errors(model, *known, number) for number, known in enumerate(self.held_apart)]
        turn, shift, right = torch.stack(errors).mean(0).tolist() if errors else (0.0, 0.0, 0.0)
        return {"score": right - turn, "part accuracy": right, "RMSE(R)": turn, "RMSE(T)": shift}


def _errors(model: PoseNetwork, puzzle: Puzzle, matches: Matches | None, number: int) -> Float[Tensor, "3"]:
    """RMSE(R) in degrees, RMSE(T) × 100 and part accuracy in percent of one sample."""
    assert puzzle.truth is not None
    batch = pack([puzzle]) if matches is None else with_matches(pack([puzzle]), [matches])
    *_, (_, found) = denoise(model, batch, 15, 1, seeded(78, number), locks=puzzle.locks)
    answer = model.space.to_poses(found.vectors[:, 0])
    right = right_pieces(piece_chamfer(puzzle.fragments.points, answer, puzzle.truth))
    turn, shift = euler_error(answer, puzzle.truth).mean(), translation_error(answer, puzzle.truth).mean()
    return torch.stack([turn.double(), 100 * shift.double(), 100 * right.double().mean()])


def gather(data: FragmentConfig) -> tuple[list[list[Broken]], list[Fracture]]:
    """Fractures to learn from, by kind (Breaking Bad's, of files, of random solids), and those held apart."""
    found: list[Broken] = []
    held_apart, held_out = [], set()
    for folder in data.folders:
        train, every = find_fractures(folder, "train", pieces=data.pieces), find_fractures(folder, "all")
        held_out |= {one.object for one in every} - {one.object for one in find_fractures(folder, "train")}
        objects = sorted({one.object for one in train})
        apart = set(objects[:: max(1, len(objects) // max(1, data.held_apart))][: data.held_apart])
        held_out |= apart
        held_apart += [fracture for fracture in train if fracture.object in apart]
        found += [fracture for fracture in train if fracture.object not in apart]
    files: list[Broken] = []
    for folder in data.meshes:
        if not folder.is_dir():
            raise InputError(f"--data.meshes {folder}: is not a folder")
        files += break_files(folder, data.breaks, data.pieces, frozenset(held_out), data.z_up)
    kinds: list[list[Broken]] = [found, files, [*break_solids(data.solids, data.breaks, data.pieces)]]
    if not any(kind for kind, share in zip(kinds, data.shares, strict=True) if share):
        named = ", ".join(map(str, (*data.folders, *data.meshes))) or "--data.solids 0"
        raise InputError(f"{named}: has nothing to learn from; pass fractures, meshes or --data.solids")
    return kinds, held_apart


def load_fractures(data: FragmentConfig, models: FractureModels | None = None) -> tuple[Mixture[Pool], list[Pool]]:
    """Pools of the fractures to learn from and of those held apart, with the matches that `models` find, if given.

    Kinds without any fracture are left out.
    """

    def known(fracture: Broken) -> Pool:
        pool = pool_of(fracture)
        return pool if models is None else replace(pool, matches=matches_of(fracture, models))

    kinds, held_apart = gather(data)
    made = [made_of(kind, known) for kind in kinds]
    some = [(kind, share) for kind, share in zip(made, data.shares, strict=True) if kind and share > 0]
    return Mixture([kind for kind, _ in some], [share for _, share in some]), made_of(held_apart, known)


def made_of(fractures: Iterable[Item], make: Callable[[Item], Made], threads: int = 1) -> list[Made]:
    """What is made of every fracture, but of none that a solid could not be broken into."""

    def attempt(fracture: Item) -> list[Made]:
        with suppress(InputError):
            return [make(fracture)]
        return []

    with ThreadPoolExecutor(threads) as pool:
        return [one for some in pool.map(attempt, fractures) for one in some]


def make_pool(meshes: Sequence[Mesh], generator: torch.Generator, points: int = VERSIONS["pools"][1]) -> Pool:
    """Draw points evenly by area from each of the assembled fragments."""
    corners = torch.cat([mesh.vertices for mesh in meshes])
    low, high = corners.amin(0), corners.amax(0)
    drawn = torch.stack([sample_surface(mesh.vertices, mesh.faces, points, generator)[0] for mesh in meshes])
    areas = torch.tensor([max(surface_area(mesh.vertices, mesh.faces), 1e-12) for mesh in meshes])
    return Pool.of((drawn - (low + high) / 2) / (high - low).max(), areas)


def pool_of(fracture: Broken) -> Pool:
    """The pool of a fracture, from the cache if it is there and its files have not changed."""

    def make() -> dict[str, Tensor]:
        pool = make_pool(fracture.meshes(), torch.Generator().manual_seed(0))
        return {"steps": pool.steps, "areas": pool.areas}

    path = _cache_path("pools", fracture)
    found = cached(path, make, required=False)
    return Pool(found["steps"], found["areas"])


def matches_of(fracture: Broken, models: FractureModels) -> Matches:
    """The matches of a fracture's fragments at their true poses: those that are true are near the identity.

    From the cache, if neither its files nor the matching networks have changed.
    """
    version, digest = VERSIONS["matches"][0], hashlib.sha256()
    for name, value in sorted(models.state_dict().items()):
        digest.update(name.encode() + value.contiguous().numpy().tobytes())

    def make() -> dict[str, Tensor]:
        puzzle = scatter(fracture.meshes(), seeded(version))
        assert puzzle.truth is not None
        found = find_matches(PairSearch(prepare(puzzle.fragments, models, 0), models))
        true = puzzle.truth[found.second] @ found.pose @ puzzle.truth[found.first].inverse()
        # Fragments were shuffled when they were scattered.
        order = torch.randperm(len(puzzle), generator=seeded(version))
        ends = {"first": order[found.first], "second": order[found.second]}
        return {**ends, "turn": true.rotation, "shift": true.translation, "evidence": found.evidence}

    found = cached(_cache_path("matches", fracture, digest.hexdigest()[:16]), make, required=False)
    first, relative = found["first"], Poses(found["turn"], found["shift"])
    return Matches(first, found["second"], relative, torch.zeros_like(first), found["evidence"])


def _cache_path(kind: str, fracture: Broken, *further: str) -> Path:
    """Where this version keeps what it made of a fracture, which changes with the fracture's files."""
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in fracture.files]
    source = fracture.source.resolve() if stats else fracture.source  # solids that are made have no folder
    key = repr((*VERSIONS[kind], *further, str(source), fracture.fracture, stats))
    return cache_folder() / kind / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
