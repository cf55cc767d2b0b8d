"""The paper's solver: reverse diffusion from noise to poses, in several samples."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Board, Matches, Poses, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.sampling import DEFAULT as SAMPLING
from diffassemble.network.sampling import SamplingConfig, denoise, sample_count
from diffassemble.squares.edge_model import Evidence, match_finder
from diffassemble.squares.energy import border_confidence
from diffassemble.squares.placement import (
    Uprighter,
    agreement,
    agreements,
    finish,
    held_place,
    nearly_realised,
    place_by_logits,
    realised,
)


@dataclass(frozen=True)
class Samples:
    """Results of several runs of the diffusion; `leader` is the one that was shown last.

    `matches` are those that the network read, if any; `chances` the log probabilities of every cell and turn, if it has
    such a head.
    """

    poses: list[Poses]
    leader: int
    matches: Matches | None
    chances: list[Float[Tensor, "n c 4"]] | None = None

    def placements(self, puzzle: Puzzle) -> list[Placement]:
        """One piece a cell, for each sample."""
        if self.chances is None or puzzle.locks is not None:
            return [held_place(poses, puzzle) for poses in self.poses]
        return [place_by_logits(chance, puzzle.board) for chance in self.chances]


@dataclass(frozen=True)
class DiffusionSolver:
    """Denoises several samples at once and keeps the best, by agreement with the others and by borders.

    Arguments:
        denoising_steps: reverse steps of each sample.
        samples: samples drawn; large puzzles get fewer, as `sampling` bounds the pairs of pieces that attend in all.
        eta: 0 is DDIM, 1 is DDPM.
        upright: classifier of which way is up; without it, the whole stays as it was assembled.
        clearly: factor by which another sample's border evidence must exceed the leader's to be shown in its place.
    """

    model: PoseNetwork
    denoising_steps: int = 20
    samples: int = 8
    eta: float = 0.0
    upright: Uprighter | None = None
    sampling: SamplingConfig = SAMPLING
    clearly: float = 1.2
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the poses of the leading sample after every reverse step, then the final placement.

        The answer does not depend on the order in which the pieces are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        evidence = Evidence(puzzle.pixels)
        samples = yield from self.sample(puzzle, generator, evidence)
        placement, agreed = best_sample(puzzle, samples)
        # Samples of one network share its errors, so agreement alone is not confidence.
        confidence = torch.minimum(agreed, border_confidence(puzzle, placement, evidence))
        # Locked pieces determine which way is up.
        yield from finish(puzzle, [(placement, confidence)], None if puzzle.locks else self.upright)

    def sample(self, puzzle: Puzzle, generator: torch.Generator, evidence: Evidence) -> Generator[Step, None, Samples]:
        """Yield the poses of the leading sample after every reverse step; return all samples."""
        batch = pack([puzzle], match_finder(self.model, evidence))
        space, matches, pitch = self.model.space, batch.matches, puzzle.board.pitch
        count = sample_count(self.samples, len(puzzle), self.sampling)
        chain = denoise(self.model, batch, self.denoising_steps, count, generator, self.eta, puzzle.locks)
        total = len(self.model.schedule.visited(self.denoising_steps))
        poses, leader, chances = [], 0, None
        for number, (noisy, predicted) in enumerate(chain, 1):
            poses = [space.to_poses(sample) for sample in predicted.vectors.unbind(1)]
            if matches is not None:
                fits = [float(nearly_realised(sample, matches, pitch)) for sample in poses]
                best = max(range(len(fits)), key=fits.__getitem__)
                leader = best if fits[best] > self.clearly * fits[leader] else leader
            yield Step(space.to_poses(noisy[:, leader]), done=number / total)
            if predicted.logits is not None:
                chances = [*predicted.logits.flatten(2).log_softmax(-1).view_as(predicted.logits).unbind(1)]
        return Samples(poses, leader, matches, chances)


def best_sample(puzzle: Puzzle, samples: Samples) -> tuple[Placement, Float[Tensor, "n"]]:
    """The sample that ranks highest, and for each piece how far the others agree."""
    placements = samples.placements(puzzle)
    ranks = rank_placements(placements, puzzle.board, samples.matches)
    leads = ranks[samples.leader] == max(ranks)
    chosen = placements.pop(samples.leader if leads else max(range(len(ranks)), key=ranks.__getitem__))
    return chosen, agreement(puzzle.board, chosen, placements)


def rank_placements(placements: list[Placement], board: Board, matches: Matches | None) -> list[float]:
    """How good each placement is: its agreement with the others, in pieces, and the border evidence it realises."""
    ranks = agreements(board, placements)
    if matches is None:
        return ranks
    fits = [float(realised(board.poses(*placement), matches, board.pitch)) for placement in placements]
    return [rank + fit for rank, fit in zip(ranks, fits, strict=True)]
