"""Broken objects that solvers are measured on: the same for every solver, by the protocol of Breaking Bad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import InputError, Mesh, Puzzle
from diffassemble.core.damage import surviving
from diffassemble.core.seeds import random_stream
from diffassemble.core.surfaces import sample_surface
from diffassemble.evaluation.metrics import piece_sizes
from diffassemble.evaluation.puzzles import spread
from diffassemble.fragments.breaking import scatter

# However few points a whole object has, a piece of it has this many.
LEAST_POINTS = 20


@runtime_checkable
class Broken(Protocol):
    """An object broken once: its class, what it is called, and its fragments where they belong."""

    @property
    def category(self) -> str: ...

    @property
    def name(self) -> str: ...

    def meshes(self) -> Sequence[Mesh]: ...


@dataclass(frozen=True)
class Damage:
    """What is lost between the fragments and what a solver sees of them.

    `missing` is the share of pieces taken away, though two stay; `noise` the deviation that is added to vertices, as a
    share of the object's longest side; with `points` the pieces are clouds without faces, so many points a whole
    object, shared out by area.
    """

    missing: float = 0.0
    noise: float = 0.0
    points: int = 0


@dataclass(frozen=True)
class Case:
    """One broken object: `given` to the solver, scored on the clean `puzzle`, which has the truth.

    `whole` counts its pieces before some went missing; `share` is each piece's share of the area of all of them.
    """

    name: str
    category: str
    puzzle: Puzzle
    given: Puzzle
    whole: int
    share: Float[Tensor, "n"]


def benchmark_cases(
    fractures: Sequence[Broken], damage: Damage, *, limit: int | None = None, seed: int = 0
) -> Iterator[tuple[Case, torch.Generator]]:
    """Scattered fragments, each object with a generator for whoever solves it.

    All follow from the seed and the fracture's place in the list: neither the damage nor `limit`, which takes that many
    evenly spread over the list, changes how the pieces are scattered; what is missing at 10 % is missing at 20 %, too.
    """
    check_fracture_wishes(fractures, damage, limit, seed)
    for index in spread(range(len(fractures)), limit or len(fractures)):
        fracture = fractures[index]
        scattering, solving, losing = (random_stream(seed, index, purpose) for purpose in (0, 1, 2))
        puzzle = scatter(fracture.meshes(), scattering)
        share = piece_sizes(puzzle.fragments)
        stay = surviving(len(puzzle), min(damage.missing, max(0.0, 1 - 2 / len(puzzle))), losing)
        clean = puzzle.reordered(stay)
        given = spoiled(clean, share[stay], damage, losing).without_truth()
        yield Case(fracture.name, fracture.category, clean, given, len(puzzle), share[stay]), solving


def spoiled(puzzle: Puzzle, share: Float[Tensor, "n"], damage: Damage, generator: torch.Generator) -> Puzzle:
    """The puzzle as clouds of points or with noise, if so wished; its points are then drawn anew from what is left."""
    if not damage.points and not damage.noise:
        return puzzle
    pieces = puzzle.fragments
    meshes = pieces.meshes
    if damage.points:
        counts = [max(LEAST_POINTS, round(damage.points * part)) for part in share.tolist()]
        meshes = tuple(_cloud(mesh, count, generator) for mesh, count in zip(meshes, counts, strict=True))
    meshes = tuple(_shaken(mesh, damage.noise, generator) for mesh in meshes)
    drawn = [sample_surface(mesh.vertices, mesh.faces, pieces.points.shape[1], generator)[0] for mesh in meshes]
    return replace(puzzle, pieces=replace(pieces, points=torch.stack(drawn), meshes=meshes))


def check_fracture_wishes(fractures: Sequence[Broken], damage: Damage, limit: int | None, seed: int) -> None:
    """Refuse what no puzzles can be made of."""
    if not fractures:
        raise InputError("there are no fractures to evaluate on; pass a folder that holds some")
    if limit is not None and limit < 1:
        raise InputError(f"limit {limit} leaves no objects; pass a limit of at least 1")
    if not 0 <= damage.missing < 1:
        raise InputError(f"missing {damage.missing} is not a share of the pieces; pass 0 or more and less than 1")
    if not 0 <= damage.noise < 1:
        raise InputError(f"noise {damage.noise} is not a share of the object's size; pass a little, such as 0.001")
    if damage.points < 0:
        raise InputError(f"points {damage.points} is below 0; pass the points of an object, or 0 for whole meshes")
    if seed < 0:
        raise InputError(f"seed {seed} is below 0; pass 0 or more")


def _cloud(mesh: Mesh, count: int, generator: torch.Generator) -> Mesh:
    points, _ = sample_surface(mesh.vertices, mesh.faces, count, generator)
    return Mesh(points, torch.zeros(0, 3, dtype=torch.long))


def _shaken(mesh: Mesh, noise: float, generator: torch.Generator) -> Mesh:
    return Mesh(mesh.vertices + noise * torch.randn(mesh.vertices.shape, generator=generator), mesh.faces)
