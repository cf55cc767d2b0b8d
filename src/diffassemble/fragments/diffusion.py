"""The diffusion network as a solver for broken objects, and the plain tree of matches that it has to beat.

A network that hears matches answers relative to the largest fragment, which stays where it is while all others are
denoised (`network/relative.py`). Then the whole is stood up, if somebody knows how. Without matches, as published,
poses are absolute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from diffassemble.core import Matches, Placements, Poses, Puzzle, Step
from diffassemble.core.solver import in_content_order
from diffassemble.fragments.standing import CanonicalRotation, stood
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.relative import anchored, assembled, denoised, linked, tree_poses
from diffassemble.network.sampling import average, denoise, sample_count

UNKNOWN = 0.1
"""confidence where no chain of matches leads to the largest piece: a place is then at best guessed"""
UNSUPPORTED = 0.5
"""confidence without matches where all samples agree: of one network's samples all may be wrong"""
FindMatches = Callable[[Puzzle], Matches]


@dataclass(frozen=True)
class FragmentDiffusionSolver:
    """Denoises several samples at once.

    A network that hears matches has them found by `find_matches`, and `canonical_rotation` stands the answer up, if it
    is given and nothing is locked. Of one that does not, the answer is the mean of the samples, and the confidence half
    of how far they agree with it. `eta` 0 is DDIM, 1 is DDPM.
    """

    model: PoseNetwork
    denoising_steps: int = 20
    samples: int = 8
    eta: float = 0.0
    find_matches: FindMatches | None = None
    canonical_rotation: CanonicalRotation | None = None
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the poses of the first sample after every reverse step, then the answer.

        The answer does not depend on the order in which the fragments are listed.
        """
        ordered_steps = self._heard_steps if self.model.pairwise else self._ordered_steps
        return in_content_order(puzzle, lambda ordered: ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        samples, space = sample_count(self.samples, len(puzzle)), self.model.space
        batch, clean = pack([puzzle]), torch.empty(0)
        total = len(self.model.schedule.visited(self.denoising_steps))
        chain = denoise(self.model, batch, self.denoising_steps, samples, generator, self.eta, puzzle.locks)
        for number, (noisy, predicted) in enumerate(chain, 1):
            clean = predicted.vectors
            yield Step(space.to_poses(noisy[:, 0]), done=number / total)
        poses, agreed = average([space.to_poses(sample) for sample in clean.unbind(1)])
        sure = UNSUPPORTED * agreed
        sure = sure if puzzle.locks is None else sure.where(~puzzle.locks.held, 1.0)
        yield Step.last(Placements(poses, sure))

    def _heard_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        assert self.find_matches is not None, "this model hears matches: pass find_matches"
        count, found = len(puzzle), Poses.identity(0, 3)
        held, own = anchored(puzzle.fragments.areas, puzzle.locks, 3)
        matches = self.find_matches(puzzle)
        told = replace(puzzle, locks=held), matches, self.denoising_steps, self.samples, self.eta, generator
        for done, noisy, clean in denoised(self.model, *told):
            found = clean
            yield Step(own @ noisy, done=0.99 * done)
        answer, sure = assembled(matches, found, held, torch.ones(count))
        placed = own @ answer
        if puzzle.locks is None:
            placed = centred(puzzle, placed)
            if self.canonical_rotation is not None:
                placed = stood(puzzle, placed, sure >= 0.5, self.canonical_rotation)
        yield Step.last(Placements(placed, sure.clamp(min=UNKNOWN * (count > 1)).where(~held.held, 1.0)))


@dataclass(frozen=True)
class TreeSolver:
    """Joins fragments along the maximum spanning tree of their matches; what it does not reach stays in the middle."""

    find_matches: FindMatches
    name: str = "tree"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield one step. The answer does not depend on the order in which the fragments are listed."""
        return in_content_order(puzzle, self._ordered_steps)

    def _ordered_steps(self, puzzle: Puzzle) -> Iterator[Step]:
        held, own = anchored(puzzle.fragments.areas, puzzle.locks, 3)
        matches = self.find_matches(puzzle)
        answer = tree_poses(matches, held)
        sure = linked(matches, answer, held.held, torch.ones(len(puzzle)))
        poses = own @ answer
        poses = poses if puzzle.locks else centred(puzzle, poses)
        yield Step.last(Placements(poses, sure.where(~held.held, 1.0)))


def centred(puzzle: Puzzle, poses: Poses) -> Poses:
    """Poses moved together such that the middle of the whole's box is the origin."""
    points = poses.apply(puzzle.fragments.points).flatten(0, 1)
    return Poses(poses.rotation, poses.translation - (points.amin(0) + points.amax(0)) / 2)
