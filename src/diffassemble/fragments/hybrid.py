"""Geometry joins fragments, one network guesses what geometry can't place, another stands the whole up.

Fracture surfaces tell how fragments lie to each other, and nothing of how the whole stood. What `mend` has joined stays
together while diffusion, which hears the same matches, places what is left around it. Where no matches lead there,
`mend`'s own best guess is better than that of a network. Then all is turned to how such objects stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool
from torch import Tensor

from diffassemble.core import Locks, Placements, Puzzle, Solver, Step
from diffassemble.core.solver import in_content_order
from diffassemble.fragments.diffusion import UNKNOWN
from diffassemble.fragments.standing import CanonicalRotation, stood

# Share of the work that joining is.
_JOINING = 0.8
# No guess is surer than this: samples that agree with each other may all be wrong.
GUESS = 0.5


@dataclass(frozen=True)
class FragmentHybridSolver:
    """Joins by `mend`, poses the loose ones by `diffusion`, then stands all up by `canonical_rotation`, if it is given.

    Confidence and objects are those of `mend`; for what it could not place, the confidence is half of what diffusion
    tells, and its place is diffusion's, unless that knows nothing and `mend` has a guess. Where some fragments are
    locked they say how the object stands, and nothing is left to the networks.
    """

    mend: Solver
    diffusion: Solver
    canonical_rotation: CanonicalRotation | None = None
    name: str = "hybrid"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the fragments being joined, then the loose ones finding their places, and the whole standing.

        The answer does not depend on the order in which the fragments are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        for mended in self.mend.steps(puzzle, generator):
            yield replace(mended, done=_JOINING * mended.done)
        if puzzle.locks is not None or mended.result is None:
            yield mended
            return
        result = mended.result
        sure, poses = result.confidence, result.poses
        joined = sure > 0
        if not bool(joined.any()):  # where nothing fits, the largest fragment stands for the whole
            joined = torch.arange(len(puzzle)) == puzzle.fragments.areas.argmax()
        if not bool(joined.all()):
            for step in self.diffusion.steps(replace(puzzle, locks=Locks(joined, poses)), generator):
                guessed = step
                yield Step(step.poses, _JOINING + 0.9 * (1 - _JOINING) * step.done)
            poses = Locks(joined, result.poses).applied(guessed.poses)
            if guessed.result is not None:
                likely = guessed.result.confidence
                if result.guess is not None:
                    poses = Locks(~joined & (likely <= UNKNOWN), result.guess).applied(poses)
                sure = torch.where(joined, sure, GUESS * likely)
        if self.canonical_rotation is not None:
            poses = stood(puzzle, poses, joined, self.canonical_rotation)
        notes = guessed_notes(result.notes, ~joined & (sure > 0))
        yield Step.last(Placements(poses, sure, result.objects, notes=notes))


def guessed_notes(notes: tuple[str, ...] | None, guessed: Bool[Tensor, "n"]) -> tuple[str, ...] | None:
    """What is said of each fragment when a network has placed some that were not joined."""
    if notes is None:
        return None
    return tuple(
        f"{note}; placed by guess of a network" if placed else note
        for note, placed in zip(notes, guessed.tolist(), strict=True)
    )
