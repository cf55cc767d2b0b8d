"""The diffusion network as a solver for flat pieces of any outline: the same denoiser as for squares and fragments.

It hears the matches of the pieces' outlines, seen from the piece for which most speaks, which stays where it is while
all others are denoised. What no chain of likely matches leads to is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool
from torch import Tensor

from diffassemble.assembly.pose_graph import relax
from diffassemble.core import Matches, Placements, Poses, Puzzle, Step
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.judge import agreeing, anchored, assembled, denoised, judge
from diffassemble.outlines.hearing import heard, resized, standing

# A piece that is less probably where it stands is left out.
_LEFT_OUT = 0.05
# Matches of worn outlines may be true and yet not exact enough: no place is surer than that by matches alone.
_SUREST = 0.89
_NOTE = "left out: no match that the others bear out leads to it"


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
        told = heard(puzzle, self.find_matches(puzzle))
        matches, found = told.matches, Poses.identity(0, 2)
        held, own = anchored(standing(matches, len(puzzle)), told.puzzle.locks, 2)
        seen = replace(told.puzzle, locks=held)
        options = self.denoising_steps, self.samples, self.eta, generator
        for done, noisy, clean in denoised(self.model, seen, matches, *options):
            found = clean
            yield Step(told.in_pixels(own @ noisy), done=0.99 * done)
        unit = pack([told.puzzle]).board[:, 2]
        judged, locked = judge(self.model, seen, matches, found, unit), puzzle.locks is not None
        answer, sure = assembled(matches, judged, held, unit, locked)
        borne_out = matches[(agreeing(matches, answer, unit) & (matches.first < matches.second)).nonzero()[:, 0]]
        in_pixels = replace(borne_out, pose=resized(borne_out.pose, told.length))
        poses = relax(told.in_pixels(own @ answer), in_pixels, held.held, borne_out.probability)
        sure = torch.where(held.held, 1.0, _SUREST * sure) if locked else _SUREST * sure
        placed = sure >= _LEFT_OUT
        yield Step.last(
            Placements(
                laid_aside(puzzle, poses, placed),
                sure.where(placed, 0.0),
                torch.where(placed, 0, -1),
                notes=tuple("" if there else _NOTE for there in placed.tolist()),
                guess=poses,
            )
        )


def laid_aside(puzzle: Puzzle, poses: Poses, placed: Bool[Tensor, "n"]) -> Poses:
    """The same poses with all that is not placed in rows below the rest, as it was given."""
    contours, gap = puzzle.outlines.contours, 0.2 * float(puzzle.outlines.areas.median().sqrt())
    stands = [contours[i] @ poses.rotation[i].T + poses.translation[i] for i in placed.nonzero()[:, 0].tolist()]
    low, high = torch.cat(stands).amin(0), torch.cat(stands).amax(0)
    rotation, translation = poses.rotation.clone(), poses.translation.clone()
    corner, row = torch.stack([low[0], high[1] + gap]), 0.0
    for piece in (~placed).nonzero()[:, 0].tolist():
        least, most = contours[piece].amin(0), contours[piece].amax(0)
        if float(corner[0] + (most - least)[0]) > float(high[0]) and float(corner[0]) > float(low[0]):
            corner, row = torch.stack([low[0], corner[1] + row + gap]), 0.0
        rotation[piece], translation[piece] = torch.eye(2), corner - least
        corner = corner + torch.stack([(most - least)[0] + gap, torch.zeros(())])
        row = max(row, float((most - least)[1]))
    return Poses(rotation, translation)
