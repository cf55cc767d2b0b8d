"""Several puzzles packed into one: rows are pieces, `puzzle` says whose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Mates, Poses, Puzzle

BOARD_WIDTH = 4


@dataclass(frozen=True)
class PuzzleBatch:
    """What the network sees of b puzzles with n pieces in all; mates never cross puzzles."""

    content: Float[Tensor, "n *x"]
    """pixels or points"""
    puzzle: Int[Tensor, "n"]
    board: Float[Tensor, "n 4"]
    """what is known of the whole that a piece belongs to; the third number is its unit of length"""
    room: Float[Tensor, "n d"]
    """how far apart the centres of two pieces of the whole can be along each axis"""
    mates: Mates | None

    def to(self, device: torch.device) -> PuzzleBatch:
        """The same on another device."""
        mates = self.mates
        if mates is not None:
            relative = Poses(mates.relative.rotation.to(device), mates.relative.translation.to(device))
            pair = mates.first.to(device), mates.second.to(device)
            mates = Mates(*pair, relative, mates.slot.to(device), mates.evidence.to(device))
        content, puzzle, board, room = (x.to(device) for x in (self.content, self.puzzle, self.board, self.room))
        return PuzzleBatch(content, puzzle, board, room, mates)


MatchFinder = Callable[[Puzzle], Mates]
"""Finds the pairwise evidence of a puzzle; each kind of pieces has its own."""


def pack(puzzles: Sequence[Puzzle], find_matches: MatchFinder | None = None) -> PuzzleBatch:
    """Pack puzzles of equal piece size, with the matches of each, if somebody finds them."""
    counts = torch.tensor([len(puzzle) for puzzle in puzzles])
    described, room = (torch.tensor(part) for part in zip(*map(_surroundings, puzzles), strict=True))
    index = torch.arange(len(puzzles)).repeat_interleave(counts)
    mates = None
    if find_matches is not None:
        mates = join_mates([find_matches(puzzle) for puzzle in puzzles], (torch.cumsum(counts, 0) - counts).tolist())
    content = torch.cat([puzzle.pieces.content for puzzle in puzzles])
    return PuzzleBatch(content, index, described[index], room[index], mates)


def _surroundings(puzzle: Puzzle) -> tuple[list[float], list[float]]:
    """Four numbers that describe the whole, and its room; without a lattice only the number of pieces is known."""
    board = puzzle.lattice
    if board is None:
        return [math.log(len(puzzle)) / 3, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0]
    described = [math.log(board.rows) / 3, math.log(board.cols) / 3, board.pitch, len(puzzle) / board.cells]
    return described, [(board.cols - 1) * board.pitch, (board.rows - 1) * board.pitch]


def join_mates(mates: Sequence[Mates], starts: Sequence[int]) -> Mates:
    """Mates of several puzzles as one, each shifted to where its puzzle's rows start."""
    shifted = list(zip(mates, starts, strict=True))
    return Mates(
        torch.cat([m.first + start for m, start in shifted]),
        torch.cat([m.second + start for m, start in shifted]),
        Poses(torch.cat([m.relative.rotation for m in mates]), torch.cat([m.relative.translation for m in mates])),
        torch.cat([m.slot for m in mates]),
        torch.cat([m.evidence for m in mates]),
    )
