"""Several puzzles packed into one: rows are pieces, `puzzle` says whose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Board, ImagePieces, Locks, Matches, Poses, Puzzle

BOARD_WIDTH = 4


@dataclass(frozen=True)
class PuzzleBatch:
    """What the network sees of b puzzles with n pieces in all; matches never cross puzzles."""

    content: Float[Tensor, "c *x"]
    """pixels or points"""
    puzzle: Int[Tensor, "n"]
    board: Float[Tensor, "n 4"]
    """what is known of the whole that a piece belongs to; the third number is its unit of length"""
    room: Float[Tensor, "n d"]
    """how far apart the centres of two pieces of the whole can be along each axis"""
    matches: Matches | None
    boards: tuple[Board | None, ...] = ()
    """the lattice of each puzzle"""
    frozen: Float[Tensor, "c 4 p"] | None = None
    """what a pretrained network shows of the pieces, if that is known already"""
    locks: Locks | None = None
    """pieces whose poses are known"""
    copies: int = 1
    """how often `content` is meant, one copy after the other; everything else is told of every copy"""

    def to(self, device: torch.device) -> PuzzleBatch:
        """The same on another device."""
        matches = self.matches
        if matches is not None:
            relative = Poses(matches.pose.rotation.to(device), matches.pose.translation.to(device))
            pair = matches.first.to(device), matches.second.to(device)
            matches = Matches(*pair, relative, matches.slot.to(device), matches.evidence.to(device))
        content, puzzle, board, room = (x.to(device) for x in (self.content, self.puzzle, self.board, self.room))
        frozen = None if self.frozen is None else self.frozen.to(device)
        locks = self.locks
        if locks is not None:
            poses = Poses(locks.poses.rotation.to(device), locks.poses.translation.to(device))
            locks = Locks(locks.held.to(device), poses)
        return PuzzleBatch(content, puzzle, board, room, matches, self.boards, frozen, locks, self.copies)


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
    return PuzzleBatch(content, index, described[index], room[index], matches, boards, None, join_locks(puzzles))


def with_matches(batch: PuzzleBatch, matches: Sequence[Matches]) -> PuzzleBatch:
    """A batch with the matches of each of its puzzles."""
    counts = torch.bincount(batch.puzzle)
    return replace(batch, matches=join_matches(matches, (torch.cumsum(counts, 0) - counts).tolist()))


def pack_copies(puzzle: Puzzle, heard: Sequence[Matches]) -> PuzzleBatch:
    """One puzzle as often as there are matches, each copy with its own."""
    one, copies = pack([puzzle]), len(heard)
    matches = join_matches(heard, range(0, copies * len(puzzle), len(puzzle)))
    numbers = torch.arange(copies).repeat_interleave(len(puzzle))
    board, room = (part.repeat(copies, 1) for part in (one.board, one.room))
    locks = join_locks([puzzle] * copies)
    return PuzzleBatch(one.content, numbers, board, room, matches, one.boards * copies, None, locks, copies)


def join_locks(puzzles: Sequence[Puzzle]) -> Locks | None:
    """What is locked in any of the puzzles."""
    if all(puzzle.locks is None for puzzle in puzzles):
        return None
    dimension = len(_surroundings(puzzles[0])[1])
    parts = [
        (torch.zeros(len(puzzle), dtype=torch.bool), Poses.identity(len(puzzle), dimension))
        if puzzle.locks is None
        else (puzzle.locks.held, puzzle.locks.poses)
        for puzzle in puzzles
    ]
    held, poses = zip(*parts, strict=True)
    rotation, translation = (torch.cat([getattr(one, name) for one in poses]) for name in ("rotation", "translation"))
    return Locks(torch.cat(held), Poses(rotation.float(), translation.float()))


def _surroundings(puzzle: Puzzle) -> tuple[list[float], list[float]]:
    """Four numbers that describe the whole, and its room; without a lattice only the number of pieces is known."""
    board, content = puzzle.lattice, puzzle.pieces.content
    if board is None:
        assert not isinstance(puzzle.pieces, ImagePieces), "pictures have a lattice"
        return [math.log(len(puzzle)) / 3, 0.0, puzzle.pieces.typical_length, 1.0], [1.0] * content.shape[-1]
    described = [math.log(board.rows) / 3, math.log(board.cols) / 3, board.pitch, len(puzzle) / board.cells]
    return described, [(board.cols - 1) * board.pitch, (board.rows - 1) * board.pitch]


def join_matches(matches: Sequence[Matches], starts: Sequence[int]) -> Matches:
    """Matches of several puzzles as one, each shifted to where its puzzle's rows start."""
    shifted = list(zip(matches, starts, strict=True))
    return Matches(
        torch.cat([m.first + start for m, start in shifted]),
        torch.cat([m.second + start for m, start in shifted]),
        Poses(torch.cat([m.pose.rotation for m in matches]), torch.cat([m.pose.translation for m in matches])),
        torch.cat([m.slot for m in matches]),
        torch.cat([m.evidence for m in matches]),
    )
