"""What a placement is worth: how well borders continue each other, and what the network thinks of every place."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.compatibility.image import SIDES
from diffassemble.geometry import Poses, turn_matrix
from diffassemble.puzzle import Board, Locks, Mates
from diffassemble.solvers.orientation import fitting_turns

Placement = tuple[Int[Tensor, "n"], Int[Tensor, "n"]]
# No pair of sides counts for more or less than this; in log odds.
STRONGEST = 6.0
# What no sum of other terms outweighs.
PINNED = 1e4
# Share of belief that the network's samples leave to all other places, and how wide each sample is, in cells.
_ELSEWHERE = 0.02
_WIDTH = 0.5


def border_gains(mates: Mates, count: int) -> Float[Tensor, "sides sides"]:
    """Log odds, for and against, that two sides are neighbours in the picture; against, for those not listed."""
    gains = torch.full((SIDES * count, SIDES * count), -STRONGEST)
    own, other = SIDES * mates.first + mates.slot // SIDES, SIDES * mates.second + mates.slot % SIDES
    gains[own, other] = torch.logit(mates.weight).clamp(-STRONGEST, STRONGEST)
    return torch.maximum(gains, gains.T)


def network_gains(samples: list[Poses], board: Board) -> Float[Tensor, "n 4 cells"]:
    """How much more the samples believe in each piece's turn and place than in any, in log odds.

    Samples may be assembled in other turns of the whole; all are turned to agree with the first.
    """
    belief = torch.zeros(len(samples[0]), SIDES, board.cells)
    reference = _belief(samples[0], board)
    for sample in samples:
        seen = [_belief(turned, board) for turned in _all_turns(sample, board)]
        belief += max(seen, key=lambda other: float((reference * other).sum()))
    return torch.log(belief / len(samples) + _ELSEWHERE) - torch.log(torch.tensor(_ELSEWHERE))


def pinned(unary: Float[Tensor, "n 4 cells"], board: Board, locks: Locks | None) -> Float[Tensor, "n 4 cells"]:
    """The same opinion, but locked pieces gain more where they are locked than all else could outweigh."""
    if locks is None:
        return unary
    (cells, turns), held = board.snap(locks.poses), locks.held.nonzero().flatten()
    fixed = unary.clone()
    fixed[held, turns[held], cells[held]] = PINNED
    return fixed


def _belief(poses: Poses, board: Board) -> Float[Tensor, "n 4 cells"]:
    """Which turn and cell one sample speaks for."""
    apart = torch.cdist(poses.translation, board.centres()) / board.pitch
    _, turns = board.snap(poses)
    return torch.nn.functional.one_hot(turns, SIDES)[:, :, None] * torch.exp(-apart.square() / (2 * _WIDTH**2))[:, None]


def _all_turns(poses: Poses, board: Board) -> list[Poses]:
    """The whole in every turn in which it fits the board."""
    allowed = fitting_turns(board)
    wholes = [Poses(turn_matrix(torch.tensor([by])), torch.zeros(1, 2)) for by in allowed]
    return [whole[[0] * len(poses)] @ poses for whole in wholes]
