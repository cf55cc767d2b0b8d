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

from diffassemble.core import Matches, Puzzle
from diffassemble.core.locks import hold, settle
from diffassemble.network.batch import PuzzleBatch
from diffassemble.squares.baselines.gallagher import GallagherSolver
from diffassemble.squares.critic import CriticReranker
from diffassemble.squares.diffusion import Answer, DiffusionSolver, held_place
from diffassemble.squares.edge_model import CompareEdges, find_matches
from diffassemble.squares.energy import State, Terms, network_gains, pinned
from diffassemble.squares.large import large_answers

# Partners of every side that the search knows of; all others count as unlikely.
_PARTNERS = 24
# Starts worth less than this share of the best one are not searched from.
_HOPELESS = 0.5
# How many times longer the search is where borders say nothing at all, and for how many pieces that is meant.
_LONGER, _MANY = 20.0, 100
# Pieces put down between two looks at the clock, after which the search goes on from the best so far.
_PHASE = 10_000


@dataclass(frozen=True)
class HybridSolver(DiffusionSolver):
    """Diffusion, then a search from its best samples and from what borders alone give; the most valuable answer wins.

    `trust` weighs the network's opinion against the borders' log odds; `effort` is how many pieces the search may put
    down from each of `starts` starts; `heat` how much worse a placement may at first become on the way to a better
    one. After `budget` seconds of searching the best so far is the answer. `edge_model` tells which sides
    continue each other, also across eroded borders; without it, border gradients alone do. Above `listed_above`
    pieces the search knows only likely pairs, and its arrays grow with the pieces, not with their pairs. The larger the
    puzzle, the more borders say: a few samples are enough then. With pieces missing, `reranker` decides what borders
    can't.
    """

    trust: float = 0.1
    effort: int = 70_000
    starts: int = 4
    heat: float = 6.0
    budget: float = math.inf
    edge_model: CompareEdges | None = None
    reranker: CriticReranker | None = None
    listed_above: int = 1600
    most_pairs: int = 500_000
    name: str = "hybrid"

    def _answers(
        self, puzzle: Puzzle, batch: PuzzleBatch, clean: Float[Tensor, "n k p"], leader: int
    ) -> Iterator[Answer]:
        """Ever more valuable placements, and by how much each piece prefers its place."""
        until = time.monotonic() + self.budget
        board = puzzle.board
        matches = find_matches(puzzle, self.edge_model, _PARTNERS)
        samples = [self.model.space.to_poses(sample) for sample in clean.unbind(1)]
        samples.insert(0, samples.pop(leader))
        if len(puzzle) > self.listed_above:
            yield from large_answers(puzzle, matches, samples, self.trust, self.heat, until)
            return
        terms = Terms.of(matches, pinned(self.trust * network_gains(samples, board), board, puzzle.locks), board)
        starts = self._chosen(
            [terms.state(*held_place(sample, puzzle)) for sample in samples],
            self._border_starts(puzzle, matches, terms),
            terms,
        )
        longer = 1 + (_LONGER - 1) * terms.doubt**2 * min(1.0, len(puzzle) / _MANY)
        best, phases = starts[0], max(1, self.effort // _PHASE)
        rounds = max(1, round(_PHASE * longer / len(puzzle)))
        for seed, start in enumerate(starts):
            random = np.random.default_rng(seed)
            heat = self.heat * (1 - terms.doubt * (seed % 2))  # in doubt, every other search is a cooler one
            for phase in range(phases):
                hot, cold = (heat * (1 - done / phases) for done in (phase, phase + 1))
                start = terms.improve(start, rounds, hot, cold, random)
                if time.monotonic() > until:
                    break
            if terms.worth(start) > terms.worth(best):
                best = start
                yield terms.answer(best)
        yield terms.answer(best if self.reranker is None else self.reranker(puzzle, terms, best))

    def _chosen(self, sampled: list[State], bordered: list[State], terms: Terms) -> list[State]:
        """What to search from, the most valuable first: samples, and the best that borders give.

        Where samples are hopeless, as they are for eroded pieces, the best start is searched from again instead.
        """
        best_samples = sorted(sampled, key=terms.worth, reverse=True)[: self.starts - 1]
        starts = sorted([max(bordered, key=terms.worth), *best_samples], key=terms.worth, reverse=True)
        enough = _HOPELESS * terms.worth(starts[0])
        return [start if terms.worth(start) >= enough else starts[0] for start in starts]

    def _border_starts(self, puzzle: Puzzle, matches: Matches, terms: Terms) -> list[State]:
        """What borders alone make of the puzzle, in all turns of the whole."""
        board = puzzle.board
        *_, last = GallagherSolver(self.budget).steps(puzzle, torch.Generator())
        wholes = [board.snap(last.poses)]
        if self.edge_model is not None:
            wholes.append(terms.joined(matches))
        turned = [board.turned(*whole, by)[1:] for whole in wholes for by in board.fitting_turns()]
        if puzzle.locks is not None:
            held = [hold(whole, board, puzzle.locks) for whole in wholes]
            turned = [*held, *(settle(whole, board, puzzle.locks) for whole in turned)]
        return [terms.state(*whole) for whole in turned]
