"""Solvers of broken objects by a network: diffusion alone, the tree of matches beside it, and both after `mend`.

A network that reads matches answers relative to the largest fragment, which stays where it is while all others are
denoised (`network/judge.py`); then the whole is brought to its canonical orientation. Without matches, as published,
poses are absolute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from diffassemble.core import Locks, Matches, Placements, Poses, Puzzle, Solver, Step
from diffassemble.core.solver import in_content_order
from diffassemble.core.thresholds import LIKELY
from diffassemble.fragments.standing import CanonicalRotation, stood
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.judge import (
    anchored,
    assembled,
    average,
    denoise,
    denoised,
    judge,
    linked,
    sample_count,
    tree_poses,
)

FindMatches = Callable[[Puzzle], Matches]


@dataclass(frozen=True)
class NetworkConfidenceConfig:
    """How far answers of a network are believed."""

    unknown: float = 0.1
    """confidence where no chain of matches leads to the largest piece: a place is then at best guessed"""
    unsupported: float = 0.5
    """confidence without matches where all samples agree: of one network's samples all may be wrong"""
    guess: float = 0.5
    """the same for what `mend` could not place, as a factor"""
    joining: float = 0.8
    """share of the work of `hybrid` that joining is"""


BELIEF = NetworkConfidenceConfig()


@dataclass(frozen=True)
class FragmentDiffusionSolver:
    """Denoises several samples at once.

    A network that reads matches has them found by `find_matches`, and `canonical_rotation` stands the answer up, if it
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
        ordered_steps = self._relative_steps if self.model.pairwise else self._absolute_steps
        return in_content_order(puzzle, lambda ordered: ordered_steps(ordered, generator))

    def _absolute_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        samples, space = sample_count(self.samples, len(puzzle)), self.model.space
        batch, clean = pack([puzzle]), torch.empty(0)
        total = len(self.model.schedule.visited(self.denoising_steps))
        chain = denoise(self.model, batch, self.denoising_steps, samples, generator, self.eta, puzzle.locks)
        for number, (noisy, predicted) in enumerate(chain, 1):
            clean = predicted.vectors
            yield Step(space.to_poses(noisy[:, 0]), done=number / total)
        poses, agreed = average([space.to_poses(sample) for sample in clean.unbind(1)])
        sure = BELIEF.unsupported * agreed
        yield Step.last(Placements(poses, sure if puzzle.locks is None else sure.where(~puzzle.locks.held, 1.0)))

    def _relative_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        assert self.find_matches is not None, "this model reads matches: pass find_matches"
        count, found = len(puzzle), Poses.identity(0, 3)
        held, own = anchored(puzzle.fragments.areas, puzzle.locks, 3)
        matches = self.find_matches(puzzle)
        seen, options = replace(puzzle, locks=held), (self.denoising_steps, self.samples, self.eta, generator)
        for done, noisy, clean in denoised(self.model, seen, matches, *options):
            found = clean
            yield Step(own @ noisy, done=0.99 * done)
        unit = torch.ones(count)
        answer, sure = assembled(matches, judge(self.model, seen, matches, found, unit), held, unit)
        placed = own @ answer
        if puzzle.locks is None:
            placed = centred(puzzle, placed)
            if self.canonical_rotation is not None:
                placed = stood(puzzle, placed, sure >= LIKELY, self.canonical_rotation)
        sure = sure.clamp(min=BELIEF.unknown * (count > 1))
        yield Step.last(Placements(placed, sure.where(~held.held, 1.0)))


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
        poses = own @ answer if puzzle.locks else centred(puzzle, own @ answer)
        yield Step.last(Placements(poses, sure.where(~held.held, 1.0)))


def centred(puzzle: Puzzle, poses: Poses) -> Poses:
    """Poses moved together such that the middle of the whole's box is the origin."""
    points = poses.apply(puzzle.fragments.points).flatten(0, 1)
    return Poses(poses.rotation, poses.translation - (points.amin(0) + points.amax(0)) / 2)


@dataclass(frozen=True)
class FragmentHybridSolver:
    """Joins by `mend`, poses the loose ones by `diffusion`, then stands all up by `canonical_rotation`, if it is given.

    What `mend` joined stays together, with its confidence and objects. Of what it could not place, the confidence is
    half of that of diffusion, and the place is diffusion's, unless no matches lead there and `mend` has a guess. Where
    some fragments are locked, the frame is theirs, and nothing is left to the networks.
    """

    mend: Solver
    diffusion: Solver
    canonical_rotation: CanonicalRotation | None = None
    name: str = "hybrid"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the fragments being joined, then the loose ones finding their places, and the whole upright.

        The answer does not depend on the order in which the fragments are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        for mended in self.mend.steps(puzzle, generator):
            yield replace(mended, done=BELIEF.joining * mended.done)
        if puzzle.locks is not None or mended.result is None:
            yield mended
            return
        result = mended.result
        sure, poses = result.confidence, result.poses
        joined = sure > 0
        if not bool(joined.any()):  # where nothing fits, the largest fragment represents the whole
            joined = torch.arange(len(puzzle)) == puzzle.fragments.areas.argmax()
        if not bool(joined.all()):
            for step in self.diffusion.steps(replace(puzzle, locks=Locks(joined, poses)), generator):
                guessed = step
                yield Step(step.poses, BELIEF.joining + 0.9 * (1 - BELIEF.joining) * step.done)
            poses = Locks(joined, result.poses).applied(guessed.poses)
            if guessed.result is not None:
                likely = guessed.result.confidence
                if result.guess is not None:
                    poses = Locks(~joined & (likely <= BELIEF.unknown), result.guess).applied(poses)
                sure = torch.where(joined, sure, BELIEF.guess * likely)
        if self.canonical_rotation is not None:
            poses = stood(puzzle, poses, joined, self.canonical_rotation)
        notes = result.notes
        if notes is not None:
            marked = zip(notes, (~joined & (sure > 0)).tolist(), strict=True)
            notes = tuple(f"{note}; placed by guess of a network" if own else note for note, own in marked)
        yield Step.last(Placements(poses, sure, result.objects, notes=notes))
