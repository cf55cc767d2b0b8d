"""The diffusion network as a solver for flat pieces of any outline: the same denoiser as for squares and fragments.

It reads the matches of the pieces' outlines, seen from the piece with most support, which is fixed while all others are
denoised. Pieces that no chain of likely matches leads to are unplaced. For the network, flat pieces and their matches
are measured in sizes of the whole, so that it is free of scale: the unit is the side of a square of the area of all
pieces together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.assembly.confidence import calibration
from diffassemble.assembly.pose_graph import relax
from diffassemble.core import Locks, Matches, Placements, Poses, Puzzle, Step
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.evidence import grow_clusters
from diffassemble.network.judge import agreeing, anchored, assembled, denoised, judge
from diffassemble.outlines.lattice_answer import lay_apart
from diffassemble.outlines.tabs import mirrored


@dataclass(frozen=True)
class FlatNetworkConfig:
    """What the network reads, and what counts as placed."""

    most: int = 12
    """so many of the most probable matches of a piece are read; training uses as many"""
    least: float = 0.003
    """less probable ones are not read"""
    unplaced: float = 0.056
    """pieces with less confidence are unplaced"""


CONFIG = FlatNetworkConfig()


@dataclass(frozen=True)
class OutlineDiffusionSolver:
    """Denoises several samples at once, whose verdicts on the matches decide; `eta` 0 is DDIM, 1 is DDPM."""

    model: PoseNetwork
    find_matches: Callable[[Puzzle], Matches]
    denoising_steps: int = 10
    samples: int = 8
    eta: float = 0.0
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the poses of the first sample after every reverse step, then the answer.

        The answer does not depend on the order in which the pieces are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        given = normalised(puzzle, self.find_matches(puzzle))
        matches, found = given.matches, Poses.identity(0, 2)
        held, own = anchored(support(matches, len(puzzle)), given.puzzle.locks, 2)
        seen = replace(given.puzzle, locks=held)
        options = self.denoising_steps, self.samples, self.eta, generator
        for done, noisy, clean in denoised(self.model, seen, matches, *options):
            found = clean
            yield Step(given.in_pixels(own @ noisy), done=0.99 * done)
        unit, locked = pack([given.puzzle]).board[:, 2], puzzle.locks is not None
        answer, sure = assembled(matches, judge(self.model, seen, matches, found, unit), held, unit, locked)
        realised = matches[(agreeing(matches, answer, unit) & (matches.first < matches.second)).nonzero()[:, 0]]
        in_pixels = replace(realised, pose=scaled(realised.pose, given.unit))
        poses = relax(given.in_pixels(own @ answer), in_pixels, held.held, realised.probability)
        # Matches of worn outlines may be true and yet not exact enough.
        sure = sure.clamp(max=calibration("outlines_network").ceiling)
        sure = torch.where(held.held, 1.0, sure) if locked else sure
        placed = sure >= CONFIG.unplaced
        laid = Poses(poses.rotation.clone(), poses.translation.clone())
        laid.rotation[~placed], laid.translation[~placed] = torch.eye(2).to(laid.rotation), 0.0
        fixed = held.held if locked else torch.zeros_like(placed)
        lay_apart(puzzle.outlines, laid, [placed.nonzero()[:, 0], *(~placed).nonzero()], fixed)
        note = "unplaced: no chain of likely matches leads to it"
        yield Step.last(
            Placements(
                laid,
                sure.where(placed, 0.0),
                torch.where(placed, 0, -1),
                notes=tuple("" if there else note for there in placed.tolist()),
                guess=poses,
            )
        )


class Normalised(NamedTuple):
    """A puzzle and its matches, both ways, measured in `unit`, which is a number of pixels."""

    puzzle: Puzzle
    matches: Matches
    unit: float

    def in_pixels(self, poses: Poses) -> Poses:
        """Poses in pixels."""
        return scaled(poses, self.unit)


def scaled(poses: Poses, by: float) -> Poses:
    """The same poses of things that are larger by that factor."""
    return Poses(poses.rotation, by * poses.translation)


def normalised(puzzle: Puzzle, matches: Matches) -> Normalised:
    """A puzzle and matches in pixels as the network reads them."""
    pieces, locks, truth = puzzle.outlines, puzzle.locks, puzzle.truth
    unit = float(pieces.areas.sum().sqrt())
    small = replace(
        puzzle,
        pieces=replace(pieces, contours=tuple(contour / unit for contour in pieces.contours)),
        truth=None if truth is None else scaled(truth, 1 / unit),
        locks=None if locks is None else Locks(locks.held, scaled(locks.poses, 1 / unit)),
    )
    likely = _most_likely(both_ways(matches), len(puzzle))
    likely = replace(likely, pose=scaled(likely.pose, 1 / unit), slot=torch.zeros_like(likely.slot))
    return Normalised(small, likely, unit)


def both_ways(matches: Matches) -> Matches:
    """Every match one way, then the other way round, however they were listed."""
    one, two = matches.first, matches.second
    listed, reverse = one << 32 | two, two << 32 | one
    return mirrored(matches[((one < two) | ~torch.isin(reverse, listed)).nonzero()[:, 0]])


def _most_likely(matches: Matches, count: int) -> Matches:
    """Of matches that are listed both ways those that either of their pieces has among its best."""
    order = (matches.first - matches.probability.double().clamp(max=0.999)).argsort(stable=True)
    number = torch.bincount(matches.first, minlength=count)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order)) - (number.cumsum(0) - number)[matches.first[order]]
    chosen = (rank < CONFIG.most) & (matches.probability >= CONFIG.least)
    half = len(matches) // 2
    either = chosen[:half] | chosen[half:]
    return matches[either.repeat(2).nonzero()[:, 0]]


def support(matches: Matches, count: int) -> Float[Tensor, "n"]:
    """How central each piece is: the size of its likely cluster, then its own matches."""
    own = torch.zeros(count).index_add(0, matches.first, matches.probability)
    return grow_clusters(matches, count, apart=0.0)[1].sizes() + own / (1 + own)
