"""The paper's solver for broken objects: noise becomes poses in space, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from diffassemble.core import Puzzle, Step
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.sampling import average, denoise, sample_count


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
            clean = predicted
            yield Step(space.to_poses(noisy[:, 0]), done=number / total)
        poses, confidence = average([space.to_poses(sample) for sample in clean.unbind(1)])
        yield Step(poses, done=1.0, confidence=confidence)
