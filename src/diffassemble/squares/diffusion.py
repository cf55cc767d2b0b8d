"""The paper's solver: reverse diffusion from noise to poses, in several samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from diffassemble.core import Board, Matches, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.sampling import SamplingConfig, denoise, sample_count
from diffassemble.squares.edges import Evidence, match_finder
from diffassemble.squares.energy import border_confidence
from diffassemble.squares.placement import Uprighter, finish, held_place, matching, place_by_logits, realised


@dataclass(frozen=True)
class DiffusionSolver:
    """Denoises several samples at once and keeps the best, by agreement with the others and by borders."""

    model: PoseNetwork
    denoising_steps: int = 20
    """reverse steps of each sample"""
    samples: int = 8
    """samples drawn; large puzzles get fewer"""
    eta: float = 0.0
    """0 is DDIM, 1 is DDPM"""
    upright: Uprighter | None = None
    """classifier of which way is up; without it, the whole stays as it was assembled"""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    clearly: float = 1.2
    """factor by which another sample's border evidence must exceed the leader's to be shown in its place"""
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the leading sample's poses after every reverse step, then the placement; independent of piece order."""
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        # 1. Denoise.
        evidence = Evidence(puzzle.pixels)
        batch = pack([puzzle], match_finder(self.model, evidence))
        space, matches, board = self.model.space, batch.matches, puzzle.board
        count = sample_count(self.samples, len(puzzle), self.sampling)
        chain = denoise(self.model, batch, self.denoising_steps, count, generator, self.eta, puzzle.locks)
        total = len(self.model.schedule.visited(self.denoising_steps))
        poses, leader, logits = [], 0, None
        for number, (noisy, predicted) in enumerate(chain, 1):
            poses, logits = [space.to_poses(sample) for sample in predicted.vectors.unbind(1)], predicted.logits
            if matches is not None:
                fits = [float(realised(sample, matches, board.pitch, loose=True)) for sample in poses]
                best = max(range(len(fits)), key=fits.__getitem__)
                leader = best if fits[best] > self.clearly * fits[leader] else leader
            yield Step(space.to_poses(noisy[:, leader]), done=number / total)
        # 2. One piece a cell, in each sample.
        if logits is None or puzzle.locks is not None:
            placements = [held_place(sample, puzzle) for sample in poses]
        else:
            chances = logits.flatten(2).log_softmax(-1).view_as(logits).unbind(1)
            placements = [place_by_logits(chance, board) for chance in chances]
        # 3. The best sample, and the share of the others that agree on each piece.
        ranks = rank_placements(placements, board, matches)
        if ranks[leader] != max(ranks):
            leader = max(range(len(ranks)), key=ranks.__getitem__)
        placement = placements.pop(leader)
        agreed = matching(board, placement, placements).float().mean(0) if placements else torch.ones(len(puzzle))
        # 4. Samples of one network share its errors, so agreement alone is no confidence.
        confidence = torch.minimum(agreed, border_confidence(puzzle, placement, evidence))
        # Locked pieces determine which way is up.
        yield from finish(puzzle, [(placement, confidence)], None if puzzle.locks else self.upright)


def rank_placements(placements: list[Placement], board: Board, matches: Matches | None) -> list[float]:
    """How good each placement is: its agreement with the others, in pieces, and the border evidence it realises."""
    ranks = []
    for index, placement in enumerate(placements):
        others = placements[:index] + placements[index + 1 :]
        agreed = int(matching(board, placement, others).sum()) / max(1, len(others)) if others else 0.0
        ranks.append(
            agreed if matches is None else agreed + float(realised(board.poses(*placement), matches, board.pitch))
        )
    return ranks
