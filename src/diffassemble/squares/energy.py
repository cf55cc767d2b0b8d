"""What a placement is worth: how well borders continue each other, and what the network thinks of every place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import Board, Locks, Matches, Poses, turn_matrix
from diffassemble.core.board import SIDES, Placement
from diffassemble.squares.baselines.gallagher import trim
from diffassemble.squares.diffusion import Answer
from diffassemble.squares.forest import Forest
from diffassemble.squares.search import margins, search, worth

# ----------------------------------------------------------------------------------------------------------------------
# What a placement is worth: how well borders continue each other, and what the network thinks of every place.


# No pair of sides counts for more or less than this; in log odds.
STRONGEST = 6.0
# What no sum of other terms outweighs.
PINNED = 1e4
# Share of belief that the network's samples leave to all other places, and how wide each sample is, in cells.
_ELSEWHERE = 0.02
_WIDTH = 0.5


def border_gains(matches: Matches, count: int) -> Float[Tensor, "sides sides"]:
    """Log odds, for and against, that two sides are neighbours in the picture; against, for those not listed."""
    gains = torch.full((SIDES * count, SIDES * count), -STRONGEST)
    own, other = SIDES * matches.first + matches.slot // SIDES, SIDES * matches.second + matches.slot % SIDES
    gains[own, other] = torch.logit(matches.weight).clamp(-STRONGEST, STRONGEST)
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
    allowed = board.fitting_turns()
    wholes = [Poses(turn_matrix(torch.tensor([by])), torch.zeros(1, 2)) for by in allowed]
    return [whole[[0] * len(poses)] @ poses for whole in wholes]


# ----------------------------------------------------------------------------------------------------------------------
# What a placement is worth, as the arrays that the search works on.


# Matings at least this probable are tried as moves.
_WORTH_TRYING = 0.1
# Where borders are unsure, every pair that touches gains up to this much more, so that cells with many neighbours are
# filled first. On a whole board as many pairs touch in any placement, so it changes the search and not what is best.
_PULL = 6.0


@dataclass(frozen=True)
class State:
    """A placement as the search sees it: the piece on each cell, and the turn and cell of each piece; −1 is none."""

    at: np.ndarray
    turn: np.ndarray
    where: np.ndarray


@dataclass(frozen=True)
class Terms:
    """All that a placement is worth, as arrays; `doubt` is how little borders say, from 0 to 1.

    With pieces missing, doubt is 0: most sides have no mate then, and that says nothing.
    """

    gains: np.ndarray
    unary: np.ndarray
    likely: np.ndarray
    board: Board
    doubt: float = 0.0

    @staticmethod
    def of(matches: Matches, unary: Float[Tensor, "n 4 cells"], board: Board) -> Terms:
        """From borders and the network's opinion."""
        likely, count = _sides(matches[matches.weight > _WORTH_TRYING]), len(unary)
        doubt = _doubt(matches, board) if count == board.cells else 0.0
        gains = border_gains(matches, count) + _PULL * doubt
        return Terms(gains.numpy(), unary.permute(2, 0, 1).contiguous().numpy(), likely, board, doubt)

    def state(self, cells: Tensor, turns: Tensor) -> State:
        """A placement of the pieces that have a cell."""
        at, placed = np.full(self.board.cells, -1), np.flatnonzero(cells.numpy() >= 0)
        at[cells.numpy()[placed]] = placed
        return State(at, turns.numpy().copy(), cells.numpy().copy())

    def joined(self, matches: Matches) -> Placement:
        """Pieces joined along the most probable matings and trimmed to the board; the others put down by value."""
        count = len(self.gains) // SIDES
        forest = Forest.of(count)
        forest.grow(_sides(matches[matches.weight.argsort(descending=True, stable=True)]), 0, count)
        whole = self.improve(self.state(*trim(forest, self.board)), 0, 0.0, 0.0, np.random.default_rng(0))
        return torch.from_numpy(whole.where), torch.from_numpy(whole.turn)

    def worth(self, state: State) -> float:
        return float(worth(state.at, state.turn, self.gains, self.unary, self.board.cols))

    def improve(self, state: State, rounds: int, hot: float, cold: float, random: np.random.Generator) -> State:
        """The best placement that the search finds from this one."""
        found = State(state.at.copy(), state.turn.copy(), state.where.copy())
        arrays = (found.at, found.turn, found.where, self.gains, self.unary, self.likely)
        search(*arrays, self.board.cols, rounds, hot, cold, random)
        return found

    def answer(self, state: State) -> Answer:
        """The placement, with the chance of each piece's place against the best other use of its cell."""
        margin = margins(state.at, state.turn, state.where, self.gains, self.unary, self.board.cols)
        placement = torch.from_numpy(state.where), torch.from_numpy(state.turn)
        return placement, torch.from_numpy(margin).float().sigmoid()


def _doubt(matches: Matches, board: Board) -> float:
    """How improbable the best mating of a side is, on the average over as many sides as have one on a full board."""
    own = SIDES * matches.first + matches.slot // SIDES
    best = torch.zeros(SIDES * board.cells).scatter_reduce(0, own, matches.weight, "amax")
    mated = SIDES * board.cells - 2 * (board.rows + board.cols)
    return max(0.0, 1 - float(best.sum()) / max(1, mated))


def _sides(matches: Matches) -> np.ndarray:
    """The two sides of each mating."""
    return torch.stack(
        [SIDES * matches.first + matches.slot // SIDES, SIDES * matches.second + matches.slot % SIDES], 1
    ).numpy()
