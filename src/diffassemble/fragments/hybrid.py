"""Solvers for broken objects that ask the diffusion network: the paper's own, and the hybrid with `mend`.

In the hybrid geometry joins fragments, one network turns the object upright, and another guesses what geometry can't
place. Fracture surfaces tell how fragments lie to each other, and nothing of how the whole stood. So what `mend` has
joined is turned to how such objects stand. Then it counts as one large fragment that stays where it is, and diffusion,
which has learnt from fragments joined at random, places what is left around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import FragmentPieces, Locks, Mesh, Poses, Puzzle, Solver, Step
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.sampling import average, denoise, sample_count

# Share of the work that joining is.
_JOINING = 0.8
# No guess is surer than this: samples that agree with each other may all be wrong.
GUESS = 0.5
CanonicalRotation = Callable[[Float[Tensor, "p 3"]], Float[Tensor, "3 3"]]
"""Says by which rotation an object, given as a cloud, must be turned to stand as its kind does."""


@dataclass(frozen=True)
class FragmentDiffusionSolver:
    """Denoises several samples at once; the answer is their mean, the confidence how far they agree with it.

    `eta` 0 is DDIM, 1 is DDPM.
    """

    model: PoseNetwork
    denoising_steps: int = 20
    samples: int = 8
    eta: float = 0.0
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the poses of the first sample after every reverse step, then the mean of all.

        The answer does not depend on the order in which the fragments are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

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


@dataclass(frozen=True)
class FragmentHybridSolver:
    """Joins by `mend`, turns the joined by `canonical_rotation`, then poses the loose ones by `diffusion`.

    Without it diffusion poses the joined too. Confidence and objects are those of `mend`; for what it could not place,
    the confidence is how far the network's samples agree, halved. Where some fragments are locked they say how the
    object stands, and nothing is left to the networks.
    """

    mend: Solver
    diffusion: Solver
    canonical_rotation: CanonicalRotation | None = None
    name: str = "hybrid"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the fragments being joined, then the joined and the loose ones finding their places.

        The answer does not depend on the order in which the fragments are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        for mended in self.mend.steps(puzzle, generator):
            yield replace(mended, done=_JOINING * mended.done)
        sure = mended.confidence
        if puzzle.locks is not None or sure is None:
            yield mended
            return
        joined = sure > 0
        if not bool(joined.any()):  # where nothing fits, the largest fragment stands for the whole
            joined = torch.arange(len(puzzle)) == puzzle.fragments.areas.argmax()
        coarse, centre = coarsened(puzzle, mended.poses, joined, generator)
        if self.canonical_rotation is not None:
            cloud, standing = coarse.fragments.points[0], Poses.identity(len(coarse), 3)
            standing.rotation[0] = self.canonical_rotation(cloud)
            turned = cloud @ standing.rotation[0].mT  # the middle of its bounding box comes to the origin
            standing.translation[0] = -(turned.amin(0) + turned.amax(0)) / 2
            if len(coarse) == 1:
                yield replace(mended, poses=_spread(standing, mended.poses, joined, centre), done=1.0)
                return
            coarse = replace(coarse, locks=Locks(torch.arange(len(coarse)) == 0, standing))
        for step in self.diffusion.steps(coarse, generator):
            poses = _spread(step.poses, mended.poses, joined, centre)
            if step.confidence is not None:
                sure = sure.masked_scatter(~joined, GUESS * step.confidence[1:])
            done = _JOINING + (1 - _JOINING) * step.done
            told = None if step.confidence is None else sure
            yield Step(poses, done, told, mended.objects, notes=guessed_notes(mended.notes, ~joined & (sure > 0)))


def guessed_notes(notes: tuple[str, ...] | None, guessed: Bool[Tensor, "n"]) -> tuple[str, ...] | None:
    """What is said of each fragment when a network has placed some that were not joined."""
    if notes is None:
        return None
    return tuple(
        f"{note}; placed by guess of a network" if placed else note
        for note, placed in zip(notes, guessed.tolist(), strict=True)
    )


def coarsened(
    puzzle: Puzzle, poses: Poses, joined: Bool[Tensor, "n"], generator: torch.Generator
) -> tuple[Puzzle, Float[Tensor, "3"]]:
    """The puzzle in which the joined fragments, at these poses, are one: the first. Also where its origin lies."""
    pieces = puzzle.fragments
    members, loose = joined.nonzero()[:, 0], (~joined).nonzero()[:, 0]
    size = pieces.points.shape[1]
    shares = pieces.areas.float()[members]
    whose = members[torch.multinomial(shares, size, replacement=True, generator=generator)]
    which = torch.randperm(size, generator=generator)
    cloud = poses[whose].apply(pieces.points[whose, which][:, None])[:, 0]
    centre = cloud.mean(0)
    whole = cloud - centre
    rest = pieces[loose]
    clouds = (Mesh(whole, torch.zeros(0, 3, dtype=torch.long)), *rest.meshes)
    origins = torch.cat([torch.zeros(1, 3), rest.origins])
    content = FragmentPieces(torch.cat([whole[None], rest.points]), clouds, origins, pieces.unit)
    return Puzzle(content, None, ("joined", *(puzzle.names[i] for i in loose.tolist()))), centre


def _spread(coarse: Poses, mended: Poses, joined: Bool[Tensor, "n"], centre: Float[Tensor, "3"]) -> Poses:
    """Poses of all fragments: the joined ones move together, the loose ones each by itself."""
    members = joined.nonzero()[:, 0]
    whole = coarse[torch.zeros(len(members), dtype=torch.long)]
    local = Poses(mended.rotation[members], mended.translation[members] - centre)
    placed = whole @ local
    rotation, translation = mended.rotation.clone(), mended.translation.clone()
    rotation[members], translation[members] = placed.rotation, placed.translation
    rotation[~joined], translation[~joined] = coarse.rotation[1:], coarse.translation[1:]
    return Poses(rotation, translation)
