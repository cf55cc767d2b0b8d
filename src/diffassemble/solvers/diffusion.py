"""The paper's solver: noise becomes poses, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.diffusion import sample
from diffassemble.geometry import Poses
from diffassemble.model.batch import PuzzleBatch, pack
from diffassemble.model.denoiser import Denoiser
from diffassemble.puzzle import Puzzle, Step
from diffassemble.solvers.placement import agreement, fit, place

Placement = tuple[Int[Tensor, "n"], Int[Tensor, "n"]]


@dataclass(frozen=True)
class DiffusionSolver:
    """Denoises several samples at once and keeps the one that the borders like best.

    `upright` says by how many clockwise quarter turns a placement must be turned as a whole to stand upright.
    `eta` 0 is DDIM, 1 is DDPM.
    """

    model: Denoiser
    denoising_steps: int = 20
    samples: int = 4
    eta: float = 0.0
    upright: Callable[[Puzzle, Poses], int] | None = None
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the poses of the leading sample after every reverse step, then the final placement.

        The answer does not depend on the order in which the pieces are listed.
        """
        order = content_order(puzzle.pieces.pixels)
        back = order.argsort()
        for step in self._ordered_steps(puzzle.reordered(order), generator):
            sure = None if step.confidence is None else step.confidence[back]
            yield Step(step.poses[back], step.done, sure)

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        batch = pack([puzzle], pairwise=True)
        chain = denoise(self.model, batch, self.denoising_steps, self.samples, generator, self.eta)
        clean = torch.empty(0)
        for number, (noisy, clean) in enumerate(chain):
            poses = self.model.space.to_poses(noisy[:, self._leader(clean, batch)])
            yield Step(poses, done=(number + 1) / (self.denoising_steps + 1))
        yield from self._finish(puzzle, batch, clean)

    def _leader(self, clean: Float[Tensor, "n k p"], batch: PuzzleBatch) -> int:
        assert batch.mates is not None
        fits = [loose_fit(self.model.space.to_poses(clean[:, k]), batch) for k in range(clean.shape[1])]
        return int(torch.stack(fits).argmax())

    def _finish(self, puzzle: Puzzle, batch: PuzzleBatch, clean: Float[Tensor, "n k p"]) -> Iterator[Step]:
        board = puzzle.board
        placements = [place(self.model.space.to_poses(clean[:, k]), board) for k in range(clean.shape[1])]
        assert batch.mates is not None
        fits = [fit(board.poses(*placement), batch.mates, board.pitch) for placement in placements]
        best = int(torch.stack(fits).argmax())
        chosen = placements.pop(best)
        confidence = agreement(board, chosen, placements)
        placed = board.poses(*chosen)
        if self.upright is not None:
            by = self.upright(puzzle, placed)
            yield Step(placed, done=self.denoising_steps / (self.denoising_steps + 1), confidence=confidence)
            shape, cells, turns = board.turned(*chosen, by)
            placed = shape.poses(cells, turns) if shape == board else placed
        yield Step(placed, done=1.0, confidence=confidence)


def content_order(pixels: Float[Tensor, "n 3 s s"]) -> Int[Tensor, "n"]:
    """An order of the pieces that depends on what they show and not on how they are listed."""
    flat = pixels.flatten(1).double()
    ruler = torch.randn(flat.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.double)
    return (flat * ruler).sum(-1).argsort(stable=True)


def loose_fit(poses: Poses, batch: PuzzleBatch) -> Float[Tensor, ""]:
    """Evidence that loose poses agree with: matings count in full when realised and fade with distance."""
    mates = batch.mates
    assert mates is not None
    wanted = poses[mates.second] @ mates.relative
    pitch = batch.board[mates.first, 2]
    apart = (wanted.translation - poses.translation[mates.first]).norm(dim=-1) / pitch
    twist = (wanted.rotation - poses.rotation[mates.first]).flatten(1).norm(dim=-1)
    return (mates.weight * torch.exp(-4 * apart**2 - 2 * twist**2)).sum()


@torch.no_grad()
def denoise(
    model: Denoiser, batch: PuzzleBatch, steps: int, samples: int, generator: torch.Generator, eta: float = 0.0
) -> Iterator[tuple[Float[Tensor, "n k p"], Float[Tensor, "n k p"]]]:
    """Yield (x_t, predicted x_0) of `samples` chains for all puzzles of the batch, from sampled noise to time 0."""
    condition = model.condition(batch)
    count = len(batch.puzzle)
    start = torch.randn((count, samples, model.space.width), generator=generator)

    def predict(noisy: Tensor, time: int) -> Tensor:
        return model(noisy, torch.full((count, samples), time), condition)

    yield from sample(predict, start, model.schedule, steps, generator, eta)
