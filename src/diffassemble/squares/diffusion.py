"""The paper's solver: noise becomes poses, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Board, Matches, Poses, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.core.locks import settle_loose
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import PuzzleBatch, pack
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.sampling import MOST_PAIRS, denoise, sample_count
from diffassemble.squares.edge_model import match_finder
from diffassemble.squares.placement import agreement, agreements, fit, place
from diffassemble.squares.upright import Uprighter

Answer = tuple[Placement, Float[Tensor, "n"]]
# A challenger must be this much better to be shown instead of the leader, so that the eye can follow.
_CLEARLY = 1.2


@dataclass(frozen=True)
class DiffusionSolver:
    """Denoises several samples at once and keeps the best: the one the others agree with, and borders if known.

    `upright` knows which way is up; without it, the whole stays as it was assembled. `eta` 0 is DDIM, 1 is DDPM. Large
    puzzles get fewer samples: pieces attend to each other in pairs, of which there are at most `most_pairs` in all.
    """

    model: PoseNetwork
    denoising_steps: int = 20
    samples: int = 8
    eta: float = 0.0
    upright: Uprighter | None = None
    most_pairs: int = MOST_PAIRS
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the poses of the leading sample after every reverse step, then the final placement.

        The answer does not depend on the order in which the pieces are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        batch = pack([puzzle], match_finder(self.model))
        samples = sample_count(self.samples, len(puzzle), self.most_pairs)
        chain = denoise(self.model, batch, self.denoising_steps, samples, generator, self.eta, puzzle.locks)
        total = len(self.model.schedule.visited(self.denoising_steps))
        clean, leader = torch.empty(0), 0
        for number, (noisy, clean) in enumerate(chain, 1):
            leader = self._leader(clean, batch, leader)
            yield Step(self.model.space.to_poses(noisy[:, leader]), done=number / total)
        yield from self._finish(puzzle, batch, clean, leader)

    def _leader(self, clean: Float[Tensor, "n k p"], batch: PuzzleBatch, leader: int) -> int:
        if batch.matches is None:
            return leader
        fits = [float(loose_fit(self.model.space.to_poses(sample), batch)) for sample in clean.unbind(1)]
        best = max(range(len(fits)), key=fits.__getitem__)
        return best if fits[best] > _CLEARLY * fits[leader] else leader

    def _finish(self, puzzle: Puzzle, batch: PuzzleBatch, clean: Float[Tensor, "n k p"], leader: int) -> Iterator[Step]:
        board = puzzle.board
        for chosen, confidence in self._answers(puzzle, batch, clean, leader):
            placed = board.poses(*chosen)
            yield Step(placed, done=1.0, confidence=confidence)
        # What is locked says which way is up.
        by = 0 if self.upright is None or puzzle.locks else self.upright(puzzle, placed, board.fitting_turns())
        if by:
            yield Step(board.poses(*board.turned(*chosen, by)[1:]), done=1.0, confidence=confidence)

    def _answers(
        self, puzzle: Puzzle, batch: PuzzleBatch, clean: Float[Tensor, "n k p"], leader: int
    ) -> Iterator[Answer]:
        """Better and better answers; here only one: the best sample, and how far the others agree."""
        board = puzzle.board
        placements = [held_place(self.model.space.to_poses(sample), puzzle) for sample in clean.unbind(1)]
        ranks = rank_placements(placements, board, batch.matches)
        best = leader if ranks[leader] == max(ranks) else max(range(len(ranks)), key=ranks.__getitem__)
        chosen = placements.pop(best)
        yield chosen, agreement(board, chosen, placements)


def held_place(poses: Poses, puzzle: Puzzle) -> Placement:
    """One piece a cell, the locked ones where they are locked."""
    if puzzle.locks is None:
        return place(poses, puzzle.board)
    return settle_loose(poses, puzzle.board, puzzle.locks)


def rank_placements(placements: list[Placement], board: Board, matches: Matches | None) -> list[float]:
    """How good each placement is: its agreement with the others, in pieces, and the border evidence it realises."""
    ranks = agreements(board, placements)
    if matches is None:
        return ranks
    fits = [float(fit(board.poses(*placement), matches, board.pitch)) for placement in placements]
    return [rank + realised for rank, realised in zip(ranks, fits, strict=True)]


def loose_fit(poses: Poses, batch: PuzzleBatch) -> Float[Tensor, ""]:
    """Evidence that loose poses agree with: matings count in full when realised and fade with distance."""
    matches = batch.matches
    assert matches is not None
    wanted = poses[matches.second] @ matches.relative
    pitch = batch.board[matches.first, 2]
    apart = (wanted.translation - poses.translation[matches.first]).norm(dim=-1) / pitch
    twist = (wanted.rotation - poses.rotation[matches.first]).flatten(1).norm(dim=-1)
    return (matches.weight * torch.exp(-4 * apart**2 - 2 * twist**2)).sum()
