"""Several puzzles packed into one: rows are pieces, `puzzle` is the number of each piece's puzzle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Board, ImagePieces, Locks, Matches, Poses, Puzzle

BOARD_WIDTH = 4


@dataclass(frozen=True)
class PuzzleBatch:
    """What the network reads of b puzzles with n pieces in all; matches never cross puzzles."""

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
    """features of the pieces by a pretrained network, if they are known already"""
    locks: Locks | None = None
    """pieces whose poses are known"""
    copies: int = 1
    """number of copies that `content` stands for, one after the other; all other fields list every copy"""

    def to(self, device: torch.device) -> PuzzleBatch:
        """The same on another device."""
        return moved(self, device)


def moved(value: Any, device: torch.device) -> Any:
    """A value with all tensors in it, and in the dataclasses that it holds, on another device."""
    if is_dataclass(value) and not isinstance(value, type | Board):
        parts = {field.name: moved(getattr(value, field.name), device) for field in fields(value)}
        return replace(value, **parts)
    return value.to(device) if isinstance(value, Tensor) else value


MatchFinder = Callable[[Puzzle], Matches]
"""Finds the pairwise evidence of a puzzle; each kind of pieces has its own."""


def pack(puzzles: Sequence[Puzzle], find_matches: MatchFinder | None = None) -> PuzzleBatch:
    """Pack puzzles of equal piece size, with the matches of each if there is a matcher."""
    counts = torch.tensor([len(puzzle) for puzzle in puzzles])
    described, room = (torch.tensor(part) for part in zip(*map(_surroundings, puzzles), strict=True))
    index = torch.arange(len(puzzles)).repeat_interleave(counts)
    content = torch.cat([puzzle.pieces.content for puzzle in puzzles])
    boards = tuple(puzzle.lattice for puzzle in puzzles)
    batch = PuzzleBatch(content, index, described[index], room[index], None, boards, None, join_locks(puzzles))
    return with_matches(batch, [*map(find_matches, puzzles)]) if find_matches else batch


def with_matches(batch: PuzzleBatch, matches: Sequence[Matches]) -> PuzzleBatch:
    """A batch with the matches of each of its puzzles."""
    counts = torch.bincount(batch.puzzle)
    starts = (torch.cumsum(counts, 0) - counts).tolist()
    joined = Matches(
        torch.cat([one.first + start for one, start in zip(matches, starts, strict=True)]),
        torch.cat([one.second + start for one, start in zip(matches, starts, strict=True)]),
        Poses(torch.cat([one.pose.rotation for one in matches]), torch.cat([one.pose.translation for one in matches])),
        torch.cat([one.slot for one in matches]),
        torch.cat([one.evidence for one in matches]),
    )
    return replace(batch, matches=joined)


def pack_copies(puzzle: Puzzle, matches: Sequence[Matches]) -> PuzzleBatch:
    """As many copies of one puzzle as there are sets of matches, each with its own."""
    one, copies = pack([puzzle]), len(matches)
    numbers = torch.arange(copies).repeat_interleave(len(puzzle))
    board, room = (part.repeat(copies, 1) for part in (one.board, one.room))
    locks = join_locks([puzzle] * copies)
    batch = PuzzleBatch(one.content, numbers, board, room, None, one.boards * copies, None, locks, copies)
    return with_matches(batch, matches)


def join_locks(puzzles: Sequence[Puzzle]) -> Locks | None:
    """What is locked in any of the puzzles."""
    if all(puzzle.locks is None for puzzle in puzzles):
        return None
    parts = []
    for puzzle in puzzles:
        unlocked = Poses.identity(len(puzzle), len(_surroundings(puzzle)[1]))
        parts.append(puzzle.locks or Locks(torch.zeros(len(puzzle), dtype=torch.bool), unlocked))
    rotation, translation = (
        torch.cat([getattr(locks.poses, name) for locks in parts]).float() for name in ("rotation", "translation")
    )
    return Locks(torch.cat([locks.held for locks in parts]), Poses(rotation, translation))


def _surroundings(puzzle: Puzzle) -> tuple[list[float], list[float]]:
    """Four numbers that describe the whole, and its room; without a lattice only the number of pieces is known."""
    board, content = puzzle.lattice, puzzle.pieces.content
    if board is None:
        assert not isinstance(puzzle.pieces, ImagePieces), "pictures have a lattice"
        return [math.log(len(puzzle)) / 3, 0.0, puzzle.pieces.typical_length, 1.0], [1.0] * content.shape[-1]
    described = [math.log(board.rows) / 3, math.log(board.cols) / 3, board.pitch, len(puzzle) / board.cells]
    return described, [(board.cols - 1) * board.pitch, (board.rows - 1) * board.pitch]
