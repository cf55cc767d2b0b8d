"""From loose poses to one piece a cell."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from diffassemble.geometry import Poses, nearest_turn
from diffassemble.puzzle import Board, Mates


def place(poses: Poses, board: Board) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
    """Cells and quarter turns: the one-to-one placement with the smallest sum of squared distances."""
    distance = torch.cdist(poses.translation.double(), board.centres().double()).square()
    pieces, cells = linear_sum_assignment(distance.numpy())
    return torch.from_numpy(cells[pieces.argsort()]).long(), nearest_turn(poses.rotation)


def fit(placed: Poses, mates: Mates, pitch: float) -> Float[Tensor, ""]:
    """How much evidence the placement agrees with: the weights of all matings that it realises, added up."""
    wanted = placed[mates.second] @ mates.relative
    apart = (wanted.translation - placed.translation[mates.first]).norm(dim=-1)
    twist = (wanted.rotation - placed.rotation[mates.first]).flatten(1).norm(dim=-1)
    return mates.weight[(apart < pitch / 4) & (twist < 0.5)].sum()


def agreement(board: Board, chosen: tuple[Tensor, Tensor], others: list[tuple[Tensor, Tensor]]) -> Float[Tensor, "n"]:
    """Per piece, the share of other placements that put it in the same place, each turned as a whole to agree best."""
    cells, turns = chosen
    if not others:
        return torch.ones(len(cells))
    votes = torch.zeros(len(cells))
    for other_cells, other_turns in others:
        candidates = []
        for by in range(4):
            shape, turned_cells, turned_turns = board.turned(other_cells, other_turns, by)
            if shape == board:
                candidates.append((turned_cells == cells) & (turned_turns == turns))
        votes += max(candidates, key=lambda same: int(same.sum()))
    return votes / len(others)
