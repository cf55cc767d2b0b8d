"""A solid breaks into fragments, and these become a puzzle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from manifold3d import Manifold

from diffassemble.cutting.breaks import Sheet, across, block_below
from diffassemble.cutting.damage import surviving
from diffassemble.cutting.fragments import POINTS, scatter
from diffassemble.cutting.solids import bodies, bounds, mesh_of, solid_of
from diffassemble.puzzle import InputError, Mesh, Puzzle

MOST_PIECES = 200
VOLUME_ERROR = 1e-4
# A fragment has at least this share of what would be its part if all were alike; a chip lies between such shares.
SLIVER = 0.02
CHIP = (0.01, 0.12)
ATTEMPTS = 60
# Broken objects keep one large part: a break takes half of u^UNEVENNESS off a piece, u drawn evenly from [0, 1].
UNEVENNESS = 2.6


@dataclass(frozen=True)
class _Part:
    """One fragment while the breaking goes on; chips are not broken again."""

    solid: Manifold
    volume: float
    chip: bool = False


def fracture(mesh: Mesh, pieces: int, generator: torch.Generator, chips: float = 0.0) -> list[Mesh]:
    """Break a solid into exactly so many fragments, which stand where they were in the whole.

    Breaks are bent and rough; every fragment is watertight and in one part. A share `chips` of the fragments
    (but never all) are small ones, off the edges of the others.
    """
    _check_numbers(pieces, chips)
    low, high = mesh.vertices.amin(0), mesh.vertices.amax(0)
    middle, unit = (low + high) / 2, float((high - low).max())
    whole = solid_of(Mesh((mesh.vertices - middle) / max(unit, 1e-30), mesh.faces))
    parts = [_Part(body, body.volume()) for body in bodies(whole)]
    if len(parts) > pieces:
        raise InputError(f"has {len(parts)} separate parts; ask for at least {len(parts)} pieces")
    small = min(round(pieces * chips), pieces - len(parts))
    parts = _broken(parts, pieces - small, pieces, generator)
    parts = _chipped(parts, pieces, generator)
    volume = whole.volume()
    if abs(sum(part.volume for part in parts) - volume) > VOLUME_ERROR * volume:
        raise InputError("intersects itself, so that it cannot be broken cleanly; repair it and try again")
    return [mesh_of(part.solid, unit, middle) for part in parts]


def fracture_puzzle(
    mesh: Mesh,
    pieces: int,
    generator: torch.Generator,
    missing: float = 0.0,
    chips: float = 0.0,
    points: int = POINTS,
) -> Puzzle:
    """Break a solid into fragments, each centred and turned at random, and lose a share `missing` of them.

    Middle and size of the whole are those before any fragment was lost.
    """
    if not 0 <= missing < 1:
        raise InputError(f"missing share {missing} is not at least 0 and under 1; 0.2 takes 20 % of the pieces away")
    puzzle = scatter(fracture(mesh, pieces, generator, chips), generator, points)
    kept = puzzle.reordered(surviving(len(puzzle), missing, generator))
    return Puzzle(kept.pieces, None, puzzle.names[: len(kept)], kept.truth)


def _check_numbers(pieces: int, chips: float) -> None:
    if not 2 <= pieces <= MOST_PIECES:
        raise InputError(f"cannot break into {pieces} pieces; ask for 2 to {MOST_PIECES}")
    if not 0 <= chips < 1:
        raise InputError(f"share of chips {chips} is not at least 0 and under 1; 0.3 makes 30 % of the pieces small")


def _broken(parts: list[_Part], wanted: int, pieces: int, generator: torch.Generator) -> list[_Part]:
    """Break part after part, large ones rather than small ones, until there are so many."""
    total = sum(part.volume for part in parts)
    least, failures = SLIVER * total / pieces, 0
    while len(parts) < wanted:
        volumes = torch.tensor([part.volume for part in parts])
        chosen = int(torch.multinomial(volumes, 1, generator=generator))
        found = _split(parts[chosen].solid, _break_through(parts[chosen].solid, generator), generator)
        room = wanted - len(parts) + 1
        if 2 <= len(found) <= room and min(part.volume for part in found) > least:
            parts = [*parts[:chosen], *parts[chosen + 1 :], *found]
            continue
        failures += 1
        if failures % ATTEMPTS == 0:
            least /= 4
        if failures > ATTEMPTS * (3 + wanted):
            raise InputError(f"cannot be broken into {pieces} pieces; ask for fewer")
    return parts


def _chipped(parts: list[_Part], pieces: int, generator: torch.Generator) -> list[_Part]:
    """Take chips off parts that are none until there are so many fragments; the depth of a break is found by trying."""
    mean, failures, depth = sum(part.volume for part in parts) / pieces, 0, 0.1
    while len(parts) < pieces:
        volumes = torch.tensor([0.0 if part.chip else part.volume for part in parts])
        chosen = int(torch.multinomial(volumes, 1, generator=generator))
        found = _split(parts[chosen].solid, _break_off(parts[chosen].solid, depth, generator), generator)
        found.sort(key=lambda part: part.volume)
        if len(found) == 2 and CHIP[0] * mean < found[0].volume < CHIP[1] * mean:
            chip = _Part(found[0].solid, found[0].volume, chip=True)
            parts = [*parts[:chosen], *parts[chosen + 1 :], chip, found[1]]
            continue
        taken = sum(part.volume for part in found[:-1])
        depth = max(depth / 1.5, 0.003) if taken > CHIP[0] * mean else min(depth * 1.3, 0.3)
        failures += 1
        if failures > ATTEMPTS * (3 + pieces):
            raise InputError(f"cannot be broken into {pieces} pieces with so many chips; ask for fewer")
    return parts


def _split(solid: Manifold, sheet: Sheet, generator: torch.Generator) -> list[_Part]:
    """What a break along the sheet leaves of a solid."""
    halves = solid.split(block_below(sheet, _corners(solid), generator))
    return [_Part(body, body.volume()) for half in halves if not half.is_empty() for body in bodies(half)]


def _break_through(solid: Manifold, generator: torch.Generator) -> Sheet:
    """Where a piece breaks: mostly across its long axes, some way off its middle."""
    points = _corners(solid)
    spread, axes = np.linalg.eigh(np.cov(points.T) + 1e-12 * np.eye(3))
    drawn = torch.randn(3, generator=generator, dtype=torch.double).numpy()
    normal = axes @ (np.sqrt(spread) * drawn)
    share, along, side = torch.rand(3, generator=generator, dtype=torch.double).tolist()
    share = max(0.02, 0.5 * share**UNEVENNESS)
    normal = normal / np.linalg.norm(normal)
    offset = np.quantile(points @ normal, share if side < 0.5 else 1 - share)
    nearest = points[np.argsort(np.abs(points @ normal - offset))[: max(1, len(points) // 10)]]
    return across(normal, nearest[int(along * len(nearest))], generator)


def _break_off(solid: Manifold, depth: float, generator: torch.Generator) -> Sheet:
    """A break just below some outermost corner of a piece."""
    points = _corners(solid)
    low, high = bounds(solid)
    direction = torch.randn(3, generator=generator, dtype=torch.double).numpy() * np.sqrt(high - low)
    normal = direction / np.linalg.norm(direction)
    tip = points[np.argmax(points @ normal)]
    return across(normal, tip - depth * normal, generator)


def _corners(solid: Manifold) -> Float[np.ndarray, "v 3"]:
    return np.array(solid.to_mesh().vert_properties[:, :3], np.float64)
