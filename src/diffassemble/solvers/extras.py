"""Pieces that do not belong to the picture: those that nobody wants beside them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.compatibility.image import image_mates
from diffassemble.puzzle import Puzzle

# Matings expected with the rest of the picture, below which a piece does not belong to it.
_FITS = 0.25
_ROUNDS = 30


@dataclass(frozen=True)
class SetAside:
    """A puzzle without the pieces that do not belong, and the names of those."""

    puzzle: Puzzle
    extra: tuple[str, ...]


def set_aside(puzzle: Puzzle) -> SetAside:
    """Take away the pieces for which there is no cell, and those whose borders nobody in the picture continues.

    From its heart, or from what is locked, the picture grows by the piece that fits best to all that belong already.
    """
    bonds = _bonds(puzzle)
    belongs = _heart(bonds) if puzzle.locks is None else puzzle.locks.held.clone()
    while int(belongs.sum()) < puzzle.board.cells:
        fits = bonds[:, belongs].sum(1).masked_fill(belongs, -1.0)
        # A puzzle needs two pieces, however little they fit.
        if float(fits.max()) < (_FITS if int(belongs.sum()) > 1 else 0):
            break
        belongs[fits.argmax()] = True
    names = tuple(name for name, kept in zip(puzzle.names, belongs.tolist(), strict=True) if not kept)
    return SetAside(puzzle.reordered(belongs.nonzero().flatten()), names)


def _bonds(puzzle: Puzzle) -> Float[Tensor, "n n"]:
    """How probably two pieces are neighbours, on whatever side."""
    mates = image_mates(puzzle.pixels, puzzle.board.pitch)
    bonds = torch.zeros(len(puzzle), len(puzzle))
    bonds.index_put_((mates.first, mates.second), mates.weight, accumulate=True)
    return ((bonds + bonds.T) / 2).clamp(max=1).fill_diagonal_(0)


def _heart(bonds: Float[Tensor, "n n"]) -> Bool[Tensor, "n"]:
    """The piece amid most bonds, those of its neighbours counted too, and so on."""
    central = torch.ones(len(bonds))
    for _ in range(_ROUNDS):
        central = bonds @ central + 1e-6
        central = central / central.max()
    return torch.arange(len(bonds)) == central.argmax()
