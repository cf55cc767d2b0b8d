"""The best of both: the network says where pieces belong, borders say who fits beside whom, a search weighs the two."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.compatibility.image import SIDES, image_mates
from diffassemble.model.batch import PuzzleBatch
from diffassemble.puzzle import Board, Mates, Puzzle
from diffassemble.solvers.diffusion import Answer, DiffusionSolver
from diffassemble.solvers.energy import border_gains, network_gains
from diffassemble.solvers.gallagher import GallagherSolver
from diffassemble.solvers.growing import margins, worth
from diffassemble.solvers.orientation import fitting_turns
from diffassemble.solvers.placement import place
from diffassemble.solvers.search import search

# Partners of every side that the search knows of; all others count as unlikely.
_PARTNERS = 24
# Matings at least this probable are tried as moves.
_WORTH_TRYING = 0.1
# Pieces put down between two looks at the clock.
_PHASE = 10_000


@dataclass(frozen=True)
class HybridSolver(DiffusionSolver):
    """Diffusion, then a search from its best samples and from what borders alone give; the most valuable answer wins.

    `trust` weighs the network's opinion against the borders' log odds; `effort` is how many pieces the search may put
    down from each of `starts` starts; `heat` how much worse a placement may at first become on the way to a better
    one. After `budget` seconds of searching the best so far is the answer.
    """

    trust: float = 0.1
    effort: int = 70_000
    starts: int = 4
    heat: float = 6.0
    budget: float = math.inf
    name: str = "hybrid"

    def _answers(
        self, puzzle: Puzzle, batch: PuzzleBatch, clean: Float[Tensor, "n k p"], leader: int
    ) -> Iterator[Answer]:
        """Ever more valuable placements, and by how much each piece prefers its place."""
        until = time.monotonic() + self.budget
        board = puzzle.board
        mates = image_mates(puzzle.pixels, board.pitch, _PARTNERS)
        samples = [self.model.space.to_poses(sample) for sample in clean.unbind(1)]
        samples.insert(0, samples.pop(leader))
        terms = Terms.of(mates, self.trust * network_gains(samples, board), board)
        starts = sorted((terms.state(*place(sample, board)) for sample in samples), key=terms.worth, reverse=True)
        starts = [*starts[: self.starts - 1], max(self._border_starts(puzzle, terms), key=terms.worth)]
        best, phases = starts[0], max(1, self.effort // _PHASE)
        for seed, start in enumerate(starts):
            random = np.random.default_rng(seed)
            for phase in range(phases):
                hot, cold = (self.heat * (1 - done / phases) for done in (phase, phase + 1))
                start = terms.improve(start, max(1, _PHASE // len(puzzle)), hot, cold, random)
                if time.monotonic() > until:
                    break
            if terms.worth(start) > terms.worth(best):
                best = start
                yield terms.answer(best)
        yield terms.answer(best)

    def _border_starts(self, puzzle: Puzzle, terms: Terms) -> list[State]:
        """What borders alone make of the puzzle, in all turns of the whole."""
        board = puzzle.board
        *_, last = GallagherSolver(self.budget).steps(puzzle, torch.Generator())
        placement = board.snap(last.poses)
        return [terms.state(*board.turned(*placement, by)[1:]) for by in fitting_turns(board)]


@dataclass(frozen=True)
class State:
    """A placement as the search sees it: the piece on each cell, and the turn and cell of each piece; −1 is none."""

    at: np.ndarray
    turn: np.ndarray
    where: np.ndarray


@dataclass(frozen=True)
class Terms:
    """All that a placement is worth, as arrays."""

    gains: np.ndarray
    unary: np.ndarray
    likely: np.ndarray
    board: Board

    @staticmethod
    def of(mates: Mates, unary: Float[Tensor, "n 4 cells"], board: Board) -> Terms:
        """From borders and the network's opinion."""
        likely = mates[mates.weight > _WORTH_TRYING]
        pairs = torch.stack(
            [SIDES * likely.first + likely.slot // SIDES, SIDES * likely.second + likely.slot % SIDES], 1
        )
        return Terms(
            border_gains(mates, len(unary)).numpy(), unary.permute(2, 0, 1).contiguous().numpy(), pairs.numpy(), board
        )

    def state(self, cells: Tensor, turns: Tensor) -> State:
        """A placement of all pieces."""
        at = np.full(self.board.cells, -1)
        at[cells.numpy()] = np.arange(len(cells))
        return State(at, turns.numpy().copy(), cells.numpy().copy())

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
