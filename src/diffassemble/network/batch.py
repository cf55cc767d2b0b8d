"""Several puzzles packed into one: rows are pieces, `puzzle` says whose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Board, Matches, Poses, Puzzle

BOARD_WIDTH = 4


@dataclass(frozen=True)
class PuzzleBatch:
    """What the network sees of b puzzles with n pieces in all; matches never cross puzzles."""

    content: Float[Tensor, "n *x"]
    """pixels or points"""
    puzzle: Int[Tensor, "n"]
    board: Float[Tensor, "n 4"]
    """what is known of the whole that a piece belongs to; the third number is its unit of length"""
    room: Float[Tensor, "n d"]
    """how far apart the centres of two pieces of the whole can be along each axis"""
    matches: Matches | None
    boards: tuple[Board | None, ...] = ()
    """the lattice of each puzzle"""
    frozen: Float[Tensor, "n 4 p"] | None = None
    """what a pretrained network shows of the pieces, if that is known already"""

    def to(self, device: torch.device) -> PuzzleBatch:
        """The same on another device."""
        matches = self.matches
        if matches is not None:
            relative = Poses(matches.relative.rotation.to(device), matches.relative.translation.to(device))
            pair = matches.first.to(device), matches.second.to(device)
            matches = Matches(*pair, relative, matches.slot.to(device), matches.evidence.to(device))
        content, puzzle, board, room = (x.to(device) for x in (self.content, self.puzzle, self.board, self.room))
        frozen = None if self.frozen is None else self.frozen.to(device)
        return PuzzleBatch(content, puzzle, board, room, matches, self.boards, frozen)


MatchFinder = Callable[[Puzzle], Matches]
"""Finds the pairwise evidence of a puzzle; each kind of pieces has its own."""


def pack(puzzles: Sequence[Puzzle], find_matches: MatchFinder | None = None) -> PuzzleBatch:
    """Pack puzzles of equal piece size, with the matches of each, if somebody finds them."""
    counts = torch.tensor([len(puzzle) for puzzle in puzzles])
    described, room = (torch.tensor(part) for part in zip(*map(_surroundings, puzzles), strict=True))
    index = torch.arange(len(puzzles)).repeat_interleave(counts)
    starts = (torch.cumsum(counts, 0) - counts).tolist()
    matches = join_matches([*map(find_matches, puzzles)], starts) if find_matches else None
    content = torch.cat([puzzle.pieces.content for puzzle in puzzles])
    boards = tuple(puzzle.lattice for puzzle in puzzles)
    return PuzzleBatch(content, index, described[index], room[index], matches, boards)


def _surroundings(puzzle: Puzzle) -> tuple[list[float], list[float]]:
    """Four numbers that describe the whole, and its room; without a lattice only the number of pieces is known."""
    board = puzzle.lattice
    if board is None:
        return [math.log(len(puzzle)) / 3, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0]
    described = [math.log(board.rows) / 3, math.log(board.cols) / 3, board.pitch, len(puzzle) / board.cells]
    return described, [(board.cols - 1) * board.pitch, (board.rows - 1) * board.pitch]


def join_matches(matches: Sequence[Matches], starts: Sequence[int]) -> Matches:
    """Matches of several puzzles as one, each shifted to where its puzzle's rows start."""
    shifted = list(zip(matches, starts, strict=True))
    return Matches(
        torch.cat([m.first + start for m, start in shifted]),
        torch.cat([m.second + start for m, start in shifted]),
        Poses(torch.cat([m.relative.rotation for m in matches]), torch.cat([m.relative.translation for m in matches])),
        torch.cat([m.slot for m in matches]),
        torch.cat([m.evidence for m in matches]),
    )
