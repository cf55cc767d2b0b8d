"""The diffusion network as a solver for broken objects, and the plain tree of matches that it has to beat.

A network that hears matches answers relative to the largest fragment, which stays where it is while all others are
denoised. Each of several samples hears other matches; of what they make, the assembly that shows most evidence is the
answer. Then the whole is stood up, if somebody knows how. Without matches, as published, poses are absolute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import Locks, Matches, Poses, Puzzle, Step
from diffassemble.core.solver import in_content_order
from diffassemble.fragments.matches import spoilt
from diffassemble.fragments.standing import CanonicalRotation, stood
from diffassemble.network.batch import pack, pack_copies
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.evidence import grow_clusters
from diffassemble.network.sampling import average, denoise, sample_count
from diffassemble.network.spatial import Held, angle_between, residuals, settled, shown_evidence

# Share of the matches that all samples but the first do not hear.
_UNHEARD = 0.25
# Two samples agree on a piece that they turn and place alike, in radians and in the object's longest side.
_TURN, _SHIFT = 0.15, 0.05
# A match that contradicts a shown one speaks against it if it is at least this probable.
_RIVAL = 0.1
# Nobody knows what no match says: where no chain of matches leads to the largest piece, a place is at best guessed.
_GUESS = 0.1
FindMatches = Callable[[Puzzle], Matches]


@dataclass(frozen=True)
class FragmentDiffusionSolver:
    """Denoises several samples at once.

    A network that hears matches has them found by `find_matches`, and `canonical_rotation` stands the answer up, if it
    is given and nothing is locked. Of one that does not, the answer is the mean of the samples, and the confidence how
    far they agree with it. `eta` 0 is DDIM, 1 is DDPM.
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
        poses, confidence = average([space.to_poses(sample) for sample in clean.unbind(1)])
        yield Step(poses, done=1.0, confidence=confidence)

    def _heard_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        assert self.find_matches is not None, "this model hears matches: pass find_matches"
        space, count = self.model.space, len(puzzle)
        held, own = anchored(puzzle)
        matches = self.find_matches(puzzle)
        samples = sample_count(self.samples, count)
        heard = [matches, *(spoilt(matches, 0.0, _UNHEARD, generator) for _ in range(samples - 1))]
        batch = pack_copies(replace(puzzle, locks=held), heard)
        total = len(self.model.schedule.visited(self.denoising_steps))
        found = Poses.identity(count, 3)
        chain = denoise(self.model, batch, self.denoising_steps, 1, generator, self.eta, batch.locks)
        for number, (noisy, predicted) in enumerate(chain, 1):
            found = space.to_poses(predicted.vectors[:, 0])
            yield Step(own @ space.to_poses(noisy[:count, 0]), done=0.99 * number / total)
        shape = samples, count
        poses = found.rotation.view(*shape, 3, 3).transpose(0, 1), found.translation.view(*shape, 3).transpose(0, 1)
        known = Held(held.held, held.poses.rotation, held.poses.translation)
        rotation, place = (part.transpose(0, 1) for part in settled(matches, *poses, known))
        evidence = torch.stack([shown_evidence(matches, *pose)[0] for pose in zip(rotation, place, strict=True)])
        best = int(evidence.argmax())
        answer = Poses(rotation[best], place[best])
        alike = (angle_between(rotation, answer.rotation) < _TURN) & (
            (place - answer.translation).norm(dim=-1) < _SHIFT
        )
        agreed = (evidence.softmax(0)[:, None] * alike).sum(0)
        sure = agreed * linked(matches, answer, held.held)
        placed = own @ answer
        if puzzle.locks is None:
            placed = centred(puzzle, placed)
            if self.canonical_rotation is not None:
                placed = stood(puzzle, placed, sure >= 0.5, self.canonical_rotation)
        yield Step(placed, 1.0, sure.clamp(min=_GUESS * (count > 1)).where(~held.held, 1.0))


@dataclass(frozen=True)
class TreeSolver:
    """Joins fragments along the maximum spanning tree of their matches; what it does not reach stays in the middle."""

    find_matches: FindMatches
    name: str = "tree"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield one step. The answer does not depend on the order in which the fragments are listed."""
        return in_content_order(puzzle, self._ordered_steps)

    def _ordered_steps(self, puzzle: Puzzle) -> Iterator[Step]:
        held, own = anchored(puzzle)
        matches = self.find_matches(puzzle)
        answer = tree_poses(matches, held)
        sure = linked(matches, answer, held.held)
        poses = own @ answer
        yield Step(poses if puzzle.locks else centred(puzzle, poses), 1.0, sure.where(~held.held, 1.0))


def tree_poses(matches: Matches, held: Locks) -> Poses:
    """Every piece where the most probable matches put it, seen from one that is held."""
    count = len(held.held)
    poses = Poses.identity(count, 3)
    if len(matches) == 0:
        return held.applied(poses)
    clusters = grow_clusters(matches, count, apart=0.0)[-1]
    for root in held.held.nonzero()[:, 0].tolist():
        members = (clusters.label == clusters.label[root]).nonzero()[:, 0]
        at = torch.full_like(members, root)
        placed = held.poses[at] @ clusters.frame[at].inverse() @ clusters.frame[members]
        poses.rotation[members], poses.translation[members] = placed.rotation, placed.translation
    return held.applied(poses)


def anchored(puzzle: Puzzle) -> tuple[Locks, Poses]:
    """What is held while others move, seen from its largest piece; and the pose of that piece, once for every piece.

    Where nothing is locked, that is the largest of all, which stays turned as it was given.
    """
    count, areas = len(puzzle), puzzle.fragments.areas
    if puzzle.locks is None:
        largest = int(areas.argmax())
        return Locks(torch.arange(count) == largest, Poses.identity(count, 3)), Poses.identity(count, 3)
    largest = int(areas.masked_fill(~puzzle.locks.held, -1).argmax())
    own = puzzle.locks.poses[torch.full((count,), largest)]
    return Locks(puzzle.locks.held, own.inverse() @ puzzle.locks.poses), own


def linked(matches: Matches, poses: Poses, held: Bool[Tensor, "n"]) -> Float[Tensor, "n"]:
    """How probable it is that a piece belongs where it stands: by the best chain of shown matches to what is held.

    A match that is shown shares its probability with those of the same two pieces that are not.
    """
    count = len(held)
    angle, far = residuals(matches, poses.rotation[:, None], poses.translation[:, None])
    shown = ((angle < 2 * _TURN) & (far < 2 * _SHIFT))[:, 0]
    chance = matches.weight.clamp(1e-6, 0.995)
    odds = chance / (1 - chance)
    pair = matches.first * count + matches.second
    against = odds.where(~shown & (chance >= _RIVAL), 0.0)
    rivals = torch.zeros(count * count).index_add(0, pair, against)[pair]
    link = torch.where(shown, odds / (1 + odds + rivals), 0.0)
    best = torch.zeros(count * count).scatter_reduce(0, pair, link, "amax").view(count, count)
    sure = held.float()
    for _ in range(count):
        sure = torch.maximum(sure, (best * sure).amax(1))
    return sure


def centred(puzzle: Puzzle, poses: Poses) -> Poses:
    """Poses moved together such that the middle of the whole's box is the origin."""
    points = poses.apply(puzzle.fragments.points).flatten(0, 1)
    return Poses(poses.rotation, poses.translation - (points.amin(0) + points.amax(0)) / 2)
