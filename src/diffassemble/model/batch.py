"""Several puzzles packed into one: rows are pieces, `puzzle` says whose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.compatibility.image import image_mates
from diffassemble.geometry import Poses
from diffassemble.puzzle import Mates, Puzzle

BOARD_WIDTH = 4


@dataclass(frozen=True)
class PuzzleBatch:
    """What the network sees of b puzzles with n pieces in all; mates never cross puzzles."""

    pixels: Float[Tensor, "n 3 s s"]
    puzzle: Int[Tensor, "n"]
    board: Float[Tensor, "n 4"]
    room: Float[Tensor, "n 2"]
    """distances between the centres of the outermost cells of the piece's board, along x and y"""
    mates: Mates | None

    def to(self, device: torch.device) -> PuzzleBatch:
        """The same on another device."""
        mates = self.mates
        if mates is not None:
            relative = Poses(mates.relative.rotation.to(device), mates.relative.translation.to(device))
            pair = mates.first.to(device), mates.second.to(device)
            mates = Mates(*pair, relative, mates.slot.to(device), mates.evidence.to(device))
        pixels, puzzle, board, room = (x.to(device) for x in (self.pixels, self.puzzle, self.board, self.room))
        return PuzzleBatch(pixels, puzzle, board, room, mates)


def pack(puzzles: Sequence[Puzzle], pairwise: bool) -> PuzzleBatch:
    """Pack puzzles of equal piece size; with `pairwise`, compare all borders within each puzzle."""
    counts = torch.tensor([len(puzzle) for puzzle in puzzles])
    described = torch.tensor(
        [
            [math.log(p.board.rows) / 3, math.log(p.board.cols) / 3, p.board.pitch, len(p) / p.board.cells]
            for p in puzzles
        ]
    )
    sides = torch.tensor([(p.board.cols - 1, p.board.rows - 1) for p in puzzles])
    room = sides * described[:, 2:3]
    index = torch.arange(len(puzzles)).repeat_interleave(counts)
    mates = None
    if pairwise:
        found = [image_mates(puzzle.pixels, puzzle.board.pitch) for puzzle in puzzles]
        mates = join_mates(found, (torch.cumsum(counts, 0) - counts).tolist())
    return PuzzleBatch(torch.cat([p.pixels for p in puzzles]), index, described[index], room[index], mates)


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
