"""The best of both: borders say who fits beside whom, the network where pieces belong, a search weighs the two.

Work is done only where there is doubt. Pieces joined along their most probable borders are right for most pictures, and
then it shows: no piece would fit nearly as well in another's place. All others go the whole way.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from diffassemble.assembly.locks import hold, settle
from diffassemble.core import Locks, Matches, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.sampling import shown_alone, shown_together
from diffassemble.squares.baselines.gallagher import GallagherSolver, trim
from diffassemble.squares.baselines.yu import YuSolver
from diffassemble.squares.edge_model import CompareEdges, Evidence, match_finder
from diffassemble.squares.energy import LISTED_ABOVE, MATCHES, Energy, State, chances, match_sides, place_terms
from diffassemble.squares.forest import Forest
from diffassemble.squares.placement import Answer, finish, place_by_logits
from diffassemble.squares.upright import Uprighter

# Pieces that prefer their places by so much, in log odds, leave no doubt (benchmarks/calibrate_doubt.py).
SURE = 9.0
# Moves a piece by which a first assembly is polished before there is doubt, and pieces that all of them may look at.
_POLISH, _LOOKED_AT = 2, 100_000
# Starts with less than this share of the best one's energy are not searched from.
_HOPELESS = 0.5
# How many times longer the search is where borders say nothing at all, and from how many pieces to how many that is
# meant: fewer need less, and of more the time would grow without end.
_LONGER, _MANY, _TOO_MANY = 60.0, 100, 200
# Where the largest part lies, the network places the others: in so many samples and steps, searched from so often. What
# it is asked for holds only there, so that part counts this much more in its place.
_SAMPLES, _STEPS, _AGAIN, _STAY = 4, 6, 2, 1.5
# Boards beyond those it learnt on are left to the borders.
_TOGETHER = 200
# Pieces put down between two looks at the clock, after which the search goes on from the best so far.
_PHASE = 10_000
# On large boards the search runs in so many phases of so many moves each.
_LARGE_PHASES, _LARGE_MOVES = 8, 100

Alone = Callable[[], Float[Tensor, "n c 4"]]
"""tells the log probability of every cell and turn, from what each piece shows by itself"""


@dataclass(frozen=True)
class HybridSolver:
    """Borders first; where they leave doubt, a search that weighs them with what each piece shows by itself.

    A first assembly is the answer if it holds together and every piece prefers its place to any rival by `sure`, in log
    odds. In the search,
    `trust` weighs the log probabilities that `content` tells of every place against the borders' log odds,
    `together_trust` those that it tells when it sees what holds together in place (and
    `turn_trust` against `upright`, where that is unsure which way is up); `effort` is how many pieces it may put down
    from each of `starts` starts; `temperature` how much worse a placement may at first become on the way to a better
    one. After `budget` seconds of searching the best so far is the answer. `edge_model` tells which sides continue each
    other, also across eroded borders; without it, border gradients alone do. Above `listed_above` pieces the search
    knows only likely pairs, and its arrays grow with the pieces, not with their pairs.
    """

    content: Denoiser | None = None
    upright: Uprighter | None = None
    edge_model: CompareEdges | None = None
    trust: float = 0.7
    together_trust: float = 0.35
    turn_trust: float = 0.1
    effort: int = 70_000
    starts: int = 4
    temperature: float = 6.0
    budget: float = math.inf
    listed_above: int = LISTED_ABOVE
    sure: float = SURE
    name: str = "hybrid"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield better and better placements, the first one alone if it is beyond doubt.

        The answer does not depend on the order in which the pieces are listed.
        """
        return in_content_order(puzzle, self._ordered_steps)

    def _ordered_steps(self, puzzle: Puzzle) -> Iterator[Step]:
        upright = None if puzzle.locks else self.upright  # what is locked says which way is up
        known = None if self.content is None or len(puzzle) > self.listed_above else self.content
        alone = None if known is None else cache(partial(shown_alone, known, puzzle))
        yield from finish(puzzle, self._answers(puzzle, alone), upright, partial(self._shown, puzzle, alone))

    def _shown(self, puzzle: Puzzle, alone: Alone | None, placements: list[Placement]) -> list[float]:
        """How much what the pieces show speaks for each of these placements, in log odds."""
        if alone is None:
            return [0.0] * len(placements)
        terms, every = place_terms(alone(), len(puzzle), puzzle.board), torch.arange(len(puzzle))
        return [self.turn_trust * float(terms[every, turns, cells].sum()) for cells, turns in placements]

    def _answers(self, puzzle: Puzzle, alone: Alone | None) -> Iterator[Answer]:
        """Placements of ever higher energy, and how sure each piece is of its place."""
        board, locks, count = puzzle.board, puzzle.locks, len(puzzle)
        until = time.monotonic() + self.budget
        matches = Evidence.of(puzzle.pixels).matches(board.pitch, MATCHES, self.edge_model)
        energy = Energy.of_borders(matches, count, board, locks, count > self.listed_above)
        joined, first = self.first_assembly(energy, matches, count)
        if count == board.cells and locks is None and energy.certainty(first) >= self.sure:
            yield first.placement, chances(energy.margins(first))
            return
        yield energy.answer(first)
        if count > self.listed_above:
            starts = [energy.state(*whole) for whole in self._turned(puzzle, [joined])]
            yield from self._large_search(energy, max([first, *starts] if locks is None else starts, key=energy), until)
            return
        wholes = [GallagherSolver().placed(puzzle, until), joined, first.placement]
        if count > _TOGETHER:  # loops of pieces that agree find more than a search does where there are many
            wholes.append(YuSolver().placed(puzzle, until))
        shown = None if alone is None else alone()
        terms = place_terms(shown, count, board, locks, self.trust)
        if shown is not None:
            wholes.append(place_by_logits(shown, board))
        energy = Energy.dense(matches, terms, board)
        best = yield from self._search(puzzle, energy, self._chosen(energy, self._turned(puzzle, wholes)), until)
        groups = energy.groups(best)
        if self.content is not None and count <= _TOGETHER and time.monotonic() < until and (groups != groups[0]).any():
            beside = Energy.dense(matches, terms + self._together(puzzle, self.content, best, groups), board)
            best = yield from self._search(puzzle, beside, [best] * _AGAIN, until)
        # What was asked for one place of the largest part says nothing of how sure that is.
        yield energy.answer(best)

    def _together(
        self, puzzle: Puzzle, content: Denoiser, state: State, groups: Int64[np.ndarray, "n"]
    ) -> Float[Tensor, "n 4 c"]:
        """What the network adds once the largest part lies where it does: where all others belong beside it."""
        board = puzzle.board
        held = torch.from_numpy(groups == np.bincount(groups).argmax())
        if puzzle.locks is not None:
            held = held | puzzle.locks.held
        batch, locks = pack([puzzle], match_finder(content)), Locks(held, board.poses(*state.placement))
        shown = shown_together(content, batch, locks, _SAMPLES, _STEPS, torch.Generator().manual_seed(0))
        terms = place_terms(shown, len(puzzle), board, None, self.together_trust)
        cells, turns = (part[held] for part in state.placement)
        terms[held] = 0.0
        terms[held.nonzero().flatten(), turns, cells] = _STAY
        return terms

    def first_assembly(self, energy: Energy, matches: Matches, count: int) -> tuple[Placement, State]:
        """Pieces joined along their most probable borders and trimmed to the board; and polished, if there is doubt."""
        forest = Forest.of(count)
        forest.grow(match_sides(matches[matches.probability.argsort(descending=True, stable=True)]), 0, count)
        joined = energy.filled(energy.state(*trim(forest, energy.board))).placement
        first = energy.state(*joined)
        if energy.certainty(first) < self.sure:
            moves = min(_POLISH * count, _LOOKED_AT // count)
            first = energy.improve(first, moves, 1.0, 0.0, np.random.default_rng(0))
        return joined, first

    def _search(
        self, puzzle: Puzzle, energy: Energy, starts: list[State], until: float
    ) -> Generator[Answer, None, State]:
        """Yield what is better than all before, return the best."""
        count = len(puzzle)
        longer = 1 + (_LONGER - 1) * energy.doubt**2 * min(1.0, count / _MANY, (_TOO_MANY / count) ** 2)
        best, phases = starts[0], max(1, self.effort // _PHASE)
        rounds = max(1, round(_PHASE * longer / count))
        for seed, start in enumerate(starts):
            random = np.random.default_rng(seed)
            # In doubt, every other search is a cooler one, and the others are hotter.
            temperature = self.temperature * (1 - energy.doubt if seed % 2 else 1 + 2 * energy.doubt)
            for phase in range(phases):
                hot, cold = (temperature * (1 - done / phases) for done in (phase, phase + 1))
                start = energy.improve(start, rounds, hot, cold, random)
                if time.monotonic() > until:
                    break
            if energy(start) > energy(best):
                best = start
                yield energy.answer(best)
        return best

    def _large_search(self, energy: Energy, best: State, until: float) -> Iterator[Answer]:
        random = np.random.default_rng(0)
        yield energy.answer(best)
        for phase in range(_LARGE_PHASES):
            if time.monotonic() > until:
                break
            hot, cold = (self.temperature * (1 - done / _LARGE_PHASES) for done in (phase, phase + 1))
            best = energy.improve(best, _LARGE_MOVES, hot, cold, random)
            yield energy.answer(best)

    def _chosen(self, energy: Energy, wholes: list[Placement]) -> list[State]:
        """What to search from: different placements, the highest energy first, hopeless ones never.

        Where there are too few, the best one is searched from again.
        """
        states = sorted((energy.state(*whole) for whole in wholes), key=energy, reverse=True)
        different = {(state.where.tobytes(), state.turn.tobytes()): state for state in states}.values()
        hopeful = [state for state in different if energy(state) >= _HOPELESS * energy(states[0])][: self.starts]
        return [*hopeful, *states[:1] * (self.starts - len(hopeful))]

    @staticmethod
    def _turned(puzzle: Puzzle, wholes: list[Placement]) -> list[Placement]:
        """Placements in all turns of the whole; where pieces are locked, such as hold them."""
        board, locks = puzzle.board, puzzle.locks
        turned = [board.turned(*whole, by)[1:] for whole in wholes for by in board.fitting_turns()]
        if locks is None:
            return turned
        held = [hold(whole, board, locks) for whole in wholes]
        return [*held, *(settle(whole, board, locks) for whole in turned)]
