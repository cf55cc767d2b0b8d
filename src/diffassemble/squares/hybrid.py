"""The best of both: borders say who fits beside whom, the network where pieces belong, a search weighs the two.

Work is done only where there is doubt. Pieces joined along their most probable borders are right for most pictures, and
then it shows: no piece would fit nearly as well in another's place. All others go the whole way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from diffassemble.core import Matches, Puzzle, Step
from diffassemble.core.board import SIDES, Placement
from diffassemble.core.locks import hold, settle
from diffassemble.core.solver import in_content_order
from diffassemble.squares.baselines.gallagher import GallagherSolver
from diffassemble.squares.diffusion import DiffusionSolver, Samples
from diffassemble.squares.edge_model import CompareEdges, Evidence
from diffassemble.squares.energy import Energy, State, chance_terms, place_list, place_terms
from diffassemble.squares.placement import Answer, finish

# Pairs of pieces that its diffusion may compare: the larger the puzzle, the more borders say, and a few samples do.
MOST_PAIRS = 500_000
# Of training pictures whose pieces all prefer their places by so much, in log odds, 99.5 % are right.
SURE = 4.5
# Moves a piece by which a first assembly is polished before there is doubt.
_POLISH = 2
# How much samples count, beside log probabilities, of networks that tell only poses.
_POSES = 0.1
# Matches of every side that the search knows of; all others count as unlikely.
_MATCHES = 24
# Starts with less than this share of the best one's energy are not searched from.
_HOPELESS = 0.5
# How many times longer the search is where borders say nothing at all, and for how many pieces that is meant.
_LONGER, _MANY = 20.0, 100
# Pieces put down between two looks at the clock, after which the search goes on from the best so far.
_PHASE = 10_000
# On large boards the search runs in so many phases of so many moves each.
_LARGE_PHASES, _LARGE_MOVES = 8, 100


@dataclass(frozen=True)
class HybridSolver:
    """Borders first; where they leave doubt, diffusion, then a search from its best samples and from what borders give.

    A first assembly is the answer if every piece prefers its place to any rival by `sure`, in log odds. In the search,
    `trust` weighs the network's log probabilities of every place against the borders' log odds; `effort` is how many
    pieces it may put down from each of `starts` starts; `temperature` how much worse a placement may at first become on
    the way to a better one. After `budget` seconds of searching the best so far is the answer. `edge_model` tells which
    sides continue each other, also across eroded borders; without it, border gradients alone do. Above `listed_above`
    pieces the search knows only likely pairs, and its arrays grow with the pieces, not with their pairs.
    """

    diffusion: DiffusionSolver
    trust: float = 1.0
    effort: int = 70_000
    starts: int = 4
    temperature: float = 6.0
    budget: float = math.inf
    edge_model: CompareEdges | None = None
    listed_above: int = 1600
    sure: float = SURE
    name: str = "hybrid"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the first assembly if it is beyond doubt, else the steps of the diffusion, then better placements.

        The answer does not depend on the order in which the pieces are listed.
        """
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        evidence = Evidence.of(puzzle.pixels)  # held, so that the diffusion finds it there
        matches = evidence.matches(puzzle.board.pitch, _MATCHES, self.edge_model)
        upright = None if puzzle.locks else self.diffusion.upright  # what is locked says which way is up
        first = self._first(puzzle, matches)
        if first is not None:
            yield from finish(puzzle, [first], upright)
            return
        samples = yield from self.diffusion.sample(puzzle, generator)
        yield from finish(puzzle, self._answers(puzzle, matches, samples), upright)

    def _first(self, puzzle: Puzzle, matches: Matches) -> Answer | None:
        """What borders alone give, if that is beyond doubt; never where pieces are missing or locked."""
        board, count = puzzle.board, len(puzzle)
        if count < max(2, board.cells) or puzzle.locks is not None:
            return None
        if count > self.listed_above:
            energy = Energy.listed(matches, place_list([], count, board), board)
        else:
            energy = Energy.dense(matches, torch.zeros(count, SIDES, board.cells), board)
        state = energy.state(*energy.joined(matches, count))
        for rounds in (0, _POLISH * count):
            state = energy.improve(state, rounds, 1.0, 0.0, np.random.default_rng(0)) if rounds else state
            if energy.margins(state).min() >= self.sure:
                return energy.answer(state)
        return None

    def _answers(self, puzzle: Puzzle, matches: Matches, samples: Samples) -> Iterator[Answer]:
        """Placements of ever higher energy, and by how much each piece prefers its place."""
        until = time.monotonic() + self.budget
        board, locks = puzzle.board, puzzle.locks
        placements = samples.placements(puzzle)
        placements.insert(0, placements.pop(samples.leader))
        if len(puzzle) > self.listed_above:
            places = place_list(placements, len(puzzle), board, self.trust * _POSES, locks)
            energy = Energy.listed(matches, places, board)
            wholes = self._turned(puzzle, [energy.joined(matches, len(puzzle))])
            starts = [energy.state(*whole) for whole in [*placements, *wholes]]
            yield from self._large_search(energy, max(starts, key=energy), until)
            return
        if samples.chances is None:
            poses = [samples.poses[samples.leader], *(p for i, p in enumerate(samples.poses) if i != samples.leader)]
            terms = place_terms(poses, board, self.trust * _POSES, locks)
        else:
            terms = chance_terms(samples.chances, board, self.trust, locks)
        energy = Energy.dense(matches, terms, board)
        *_, last = GallagherSolver().ordered_steps(puzzle, time.monotonic() + self.budget)
        wholes = [board.snap(last.poses)]
        if self.edge_model is not None:
            wholes.append(energy.joined(matches, len(puzzle)))
        wholes = self._turned(puzzle, wholes)
        sampled, bordered = ([energy.state(*whole) for whole in some] for some in (placements, wholes))
        yield from self._search(puzzle, energy, self._chosen(sampled, bordered, energy), until)

    def _search(self, puzzle: Puzzle, energy: Energy, starts: list[State], until: float) -> Iterator[Answer]:
        longer = 1 + (_LONGER - 1) * energy.doubt**2 * min(1.0, len(puzzle) / _MANY)
        best, phases = starts[0], max(1, self.effort // _PHASE)
        rounds = max(1, round(_PHASE * longer / len(puzzle)))
        for seed, start in enumerate(starts):
            random = np.random.default_rng(seed)
            # In doubt, every other search is a cooler one.
            temperature = self.temperature * (1 - energy.doubt * (seed % 2))
            for phase in range(phases):
                hot, cold = (temperature * (1 - done / phases) for done in (phase, phase + 1))
                start = energy.improve(start, rounds, hot, cold, random)
                if time.monotonic() > until:
                    break
            if energy(start) > energy(best):
                best = start
                yield energy.answer(best)
        yield energy.answer(best)

    def _large_search(self, energy: Energy, best: State, until: float) -> Iterator[Answer]:
        random = np.random.default_rng(0)
        yield energy.answer(best)
        for phase in range(_LARGE_PHASES):
            if time.monotonic() > until:
                break
            hot, cold = (self.temperature * (1 - done / _LARGE_PHASES) for done in (phase, phase + 1))
            best = energy.improve(best, _LARGE_MOVES, hot, cold, random)
            yield energy.answer(best)

    def _chosen(self, sampled: list[State], bordered: list[State], energy: Energy) -> list[State]:
        """What to search from, the highest energy first: samples, and the best that borders give.

        Where samples are hopeless, as they are for eroded pieces, the best start is searched from again instead.
        """
        best_samples = sorted(sampled, key=energy, reverse=True)[: self.starts - 1]
        starts = sorted([max(bordered, key=energy), *best_samples], key=energy, reverse=True)
        enough = _HOPELESS * energy(starts[0])
        return [start if energy(start) >= enough else starts[0] for start in starts]

    @staticmethod
    def _turned(puzzle: Puzzle, wholes: list[Placement]) -> list[Placement]:
        """Placements in all turns of the whole; where pieces are locked, such as hold them."""
        board, locks = puzzle.board, puzzle.locks
        turned = [board.turned(*whole, by)[1:] for whole in wholes for by in board.fitting_turns()]
        if locks is None:
            return turned
        held = [hold(whole, board, locks) for whole in wholes]
        return [*held, *(settle(whole, board, locks) for whole in turned)]
