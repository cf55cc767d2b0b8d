"""Solvers with a network: `diffusion` is the paper's, from noise to poses; `hybrid` weighs it with borders in a search.

For `hybrid`, borders determine which pieces are neighbours, the network where pieces belong. Pieces joined along their
most probable borders are right for most pictures, as the margins of their energy show; all others are searched.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from diffassemble.assembly.locks import hold, settle, settle_loose
from diffassemble.core import Locks, Matches, Puzzle, Step
from diffassemble.core.board import Placement
from diffassemble.core.solver import in_content_order
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import Denoiser, PoseNetwork
from diffassemble.network.judge import SamplingConfig, alone_chances, chances_beside, denoise, sample_count
from diffassemble.squares.edges import CompareEdges, Evidence, match_finder
from diffassemble.squares.energy import (
    Energy,
    EnergyConfig,
    State,
    border_confidence,
    calibrated,
    match_sides,
    place_terms,
)
from diffassemble.squares.gallagher import Forest, GallagherSolver
from diffassemble.squares.global_solvers import YuSolver
from diffassemble.squares.placement import (
    ScoredPlacement,
    Uprighter,
    finish,
    matching,
    place,
    place_by_logits,
    realised,
)


@dataclass(frozen=True)
class DiffusionSolver:
    """Denoises several samples at once and keeps the best, by agreement with the others and by borders."""

    model: PoseNetwork
    denoising_steps: int = 20
    """reverse steps of each sample"""
    samples: int = 8
    """samples drawn; large puzzles get fewer"""
    eta: float = 0.0
    """0 is DDIM, 1 is DDPM"""
    upright: Uprighter | None = None
    """classifier of which way is up; without it, the whole stays as it was assembled"""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    clearly: float = 1.2
    """factor by which another sample's border evidence must exceed the leader's to be shown in its place"""
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the leading sample's poses after every reverse step, then the placement; independent of piece order."""
        return in_content_order(puzzle, lambda ordered: self._ordered_steps(ordered, generator))

    def _ordered_steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        # 1. Denoise.
        evidence = Evidence(puzzle.pixels)
        batch = pack([puzzle], match_finder(self.model, evidence))
        space, matches, board = self.model.space, batch.matches, puzzle.board
        count = sample_count(self.samples, len(puzzle), self.sampling)
        chain = denoise(self.model, batch, self.denoising_steps, count, generator, self.eta, puzzle.locks)
        total = len(self.model.schedule.visited(self.denoising_steps))
        poses, leader, logits = [], 0, None
        for number, (noisy, predicted) in enumerate(chain, 1):
            poses, logits = [space.to_poses(sample) for sample in predicted.vectors.unbind(1)], predicted.logits
            if matches is not None:
                fits = [float(realised(sample, matches, board.pitch, loose=True)) for sample in poses]
                best = max(range(len(fits)), key=fits.__getitem__)
                leader = best if fits[best] > self.clearly * fits[leader] else leader
            yield Step(space.to_poses(noisy[:, leader]), done=number / total)
        # 2. One piece a cell, in each sample.
        if puzzle.locks is not None:
            placements = [settle_loose(sample, board, puzzle.locks) for sample in poses]
        elif logits is None:
            placements = [place(sample, board) for sample in poses]
        else:
            chances = logits.flatten(2).log_softmax(-1).view_as(logits).unbind(1)
            placements = [place_by_logits(chance, board) for chance in chances]
        # 3. The best sample, and the share of the others that agree on each piece.
        ranks = []
        for index, one in enumerate(placements):
            others = placements[:index] + placements[index + 1 :]
            agreed = int(matching(board, one, others).sum()) / len(others) if others else 0.0
            borders = 0.0 if matches is None else float(realised(board.poses(*one), matches, board.pitch))
            ranks.append(agreed + borders)
        if ranks[leader] != max(ranks):
            leader = max(range(len(ranks)), key=ranks.__getitem__)
        placement = placements.pop(leader)
        share = matching(board, placement, placements).float().mean(0) if placements else torch.ones(len(puzzle))
        # 4. Samples of one network share its errors, so agreement alone is no confidence.
        confidence = torch.minimum(share, border_confidence(puzzle, placement, evidence))
        # Locked pieces determine which way is up.
        yield from finish(puzzle, [(placement, confidence)], None if puzzle.locks else self.upright)


Alone = Callable[[], Float[Tensor, "n c 4"]]
"""returns the log probability of every cell and turn of each piece, by its content alone"""


@dataclass(frozen=True)
class HybridConfig:
    """Numbers of the solver; weights and margins are log odds unless stated otherwise."""

    # First assembly
    sure: float = 9.0
    """least margin of any piece at which the first assembly is the answer; benchmarks/calibrate_doubt.py"""
    polish: int = 2
    """moves a piece by which a first assembly with smaller margins is improved"""
    polish_pieces: int = 100_000
    """pieces that all of these moves may put down, on boards where that is less"""
    # Weights
    trust: float = 0.7
    """of the log probabilities that content gives to every place, against borders"""
    together_trust: float = 0.35
    """of those that it gives beside the largest group in its place"""
    turn_trust: float = 0.1
    """of those of a whole in its turns, against an uncertain `upright`"""
    # Search
    effort: int = 70_000
    """pieces put down from each start, more in doubt"""
    phase: int = 10_000
    """pieces put down between two checks of the budget"""
    starts: int = 4
    """placements that are searched from"""
    hopeless: float = 0.5
    """starts below this share of the best one's energy are dropped"""
    temperature: float = 6.0
    """by how much a placement may at first become worse on the way to a better one"""
    longest: float = 60.0
    """how many times longer the search is where borders determine nothing, for counts of pieces in `hard`"""
    hard: tuple[int, int] = (100, 200)
    """pieces between which that holds; fewer need less, and of more the time would grow without end"""
    # Network beside the largest group
    together: int = 200
    """most pieces for which the network is used again, with the largest group in place; it learned on such boards"""
    samples: int = 4
    """samples drawn from it"""
    steps: int = 6
    """reverse steps of each"""
    again: int = 2
    """searches from each placement with what it adds"""
    stay: float = 1.5
    """bonus of the largest group in its place, which the samples assume"""
    # Large boards (listed terms)
    large_phases: int = 8
    """checks of the budget"""
    large_moves: int = 100
    """moves between them"""
    energy: EnergyConfig = field(default_factory=EnergyConfig)


@dataclass(frozen=True)
class HybridSolver:
    """Borders first; where they leave doubt, a search that weighs them with the content of each piece."""

    content: Denoiser | None = None
    """network with the head "cells"; without it borders alone count"""
    upright: Uprighter | None = None
    """classifier of which way is up; without it wholes stay as they were found"""
    edge_model: CompareEdges | None = None
    """learned compatibility of sides, also across eroded borders; without it border gradients alone"""
    budget: float = math.inf
    """seconds of searching, after which the best placement so far is the answer"""
    config: HybridConfig = field(default_factory=HybridConfig)
    name: str = "hybrid"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield better and better placements, the first one alone if it is beyond doubt; independent of piece order."""
        return in_content_order(puzzle, self._ordered_steps)

    def _ordered_steps(self, puzzle: Puzzle) -> Iterator[Step]:
        upright = None if puzzle.locks else self.upright  # locked pieces determine which way is up
        small = len(puzzle) <= self.config.energy.listed_above
        alone = cache(partial(alone_chances, self.content, puzzle)) if self.content is not None and small else None
        yield from finish(puzzle, self._answers(puzzle, alone), upright, partial(self._content_of, puzzle, alone))

    def _answers(self, puzzle: Puzzle, alone: Alone | None) -> Iterator[ScoredPlacement]:
        """Placements of ever higher energy, with the confidence of each piece."""
        config, board, locks, count = self.config, puzzle.board, puzzle.locks, len(puzzle)
        until = time.monotonic() + self.budget
        # 1. Compare borders.
        evidence = Evidence(puzzle.pixels)
        matches = evidence.matches(board.pitch, config.energy.matches, self.edge_model)
        listed = count > config.energy.listed_above
        energy = Energy.of_borders(matches, puzzle, listed, config.energy)
        # 2. Join pieces along the most probable ones: the answer, if no piece has a rival.
        joined, first = self.first_assembly(energy, matches, count)
        if count == board.cells and locks is None and energy.certainty(first) >= config.sure:
            yield first.placement, calibrated(energy.margins(first))
            return
        yield energy.answer(first)
        # 3. On large boards, search with the terms of likely pairs alone.
        if listed:
            starts = [energy.state(*whole) for whole in self._turned(puzzle, [joined])]
            yield from self._large_search(energy, max([first, *starts] if locks is None else starts, key=energy), until)
            return
        # 4. Collect starts: Gallagher's assembly, Yu's (loops of matches help where pieces are many), the network's.
        wholes = [GallagherSolver().placed(puzzle, evidence, until), joined, first.placement]
        if count > config.together:
            wholes.append(YuSolver().placed(puzzle, evidence, until))
        logits = None if alone is None else alone()
        if logits is not None:
            wholes.append(place_by_logits(logits, board))
        # 5. Search from the best of them with borders and content.
        terms = place_terms(logits, count, board, locks, config.trust, config.energy)
        energy = Energy.dense(matches, terms, board, config.energy)
        best = yield from self._search(puzzle, energy, self._chosen(energy, self._turned(puzzle, wholes)), until)
        # 6. Search again with what the network adds for the pieces beside the largest group.
        groups = energy.groups(best)
        if self.content is not None and count <= config.together and time.monotonic() < until and len(set(groups)) > 1:
            terms = terms + self._beside(puzzle, self.content, evidence, best, groups)
            beside = Energy.dense(matches, terms, board, config.energy)
            best = yield from self._search(puzzle, beside, [best] * config.again, until)
        # 7. The confidence is that without stage 6, which assumed the place of the largest group.
        yield energy.answer(best)

    def first_assembly(self, energy: Energy, matches: Matches, count: int) -> tuple[Placement, State]:
        """Pieces joined along their most probable borders and trimmed to the board; and polished, if there is doubt."""
        forest = Forest.of(count)
        forest.join(match_sides(matches[matches.probability.argsort(descending=True, stable=True)]), count)
        joined = energy.improve(energy.state(*forest.trimmed(energy.board))).placement
        first = energy.state(*joined)
        if energy.certainty(first) < self.config.sure:
            moves = min(self.config.polish * count, self.config.polish_pieces // count)
            first = energy.improve(first, moves, 1.0)
        return joined, first

    def _content_of(self, puzzle: Puzzle, alone: Alone | None, placements: list[Placement]) -> list[float]:
        """The weighed log odds that content gives to each of these placements as a whole."""
        if alone is None:
            return [0.0] * len(placements)
        terms = place_terms(alone(), len(puzzle), puzzle.board, config=self.config.energy)
        every = torch.arange(len(puzzle))
        return [self.config.turn_trust * float(terms[every, turns, cells].sum()) for cells, turns in placements]

    def _beside(
        self, puzzle: Puzzle, content: Denoiser, evidence: Evidence, state: State, groups: Int64[np.ndarray, "n"]
    ) -> Float[Tensor, "n 4 c"]:
        """The terms of every place that the network gives to the other pieces, with the largest group in its place."""
        config, board = self.config, puzzle.board
        held = torch.from_numpy(groups == np.bincount(groups).argmax())
        if puzzle.locks is not None:
            held = held | puzzle.locks.held
        batch = pack([puzzle], match_finder(content, evidence))
        locks = Locks(held, board.poses(*state.placement))
        generator = torch.Generator().manual_seed(0)
        logits = chances_beside(content, batch, locks, config.samples, config.steps, generator)
        terms = place_terms(logits, len(puzzle), board, None, config.together_trust, config.energy)
        cells, turns = (part[held] for part in state.placement)
        terms[held] = 0.0
        terms[held.nonzero().flatten(), turns, cells] = config.stay
        return terms

    def _search(
        self, puzzle: Puzzle, energy: Energy, starts: list[State], until: float
    ) -> Generator[ScoredPlacement, None, State]:
        """Yield what is better than all before, return the best."""
        config, count = self.config, len(puzzle)
        hard = min(1.0, count / config.hard[0], (config.hard[1] / count) ** 2)
        longer = 1 + (config.longest - 1) * energy.doubt**2 * hard
        best, phases = starts[0], max(1, config.effort // config.phase)
        rounds = max(1, round(config.phase * longer / count))
        for seed, start in enumerate(starts):
            random = np.random.default_rng(seed)
            # In doubt, every other search is a cooler one, and the others are hotter.
            temperature = config.temperature * (1 - energy.doubt if seed % 2 else 1 + 2 * energy.doubt)
            for phase in range(phases):
                hot, cold = (temperature * (1 - done / phases) for done in (phase, phase + 1))
                start = energy.improve(start, rounds, hot, cold, random)
                if time.monotonic() > until:
                    break
            if energy(start) > energy(best):
                best = start
                yield energy.answer(best)
        return best

    def _large_search(self, energy: Energy, best: State, until: float) -> Iterator[ScoredPlacement]:
        random, phases = np.random.default_rng(0), self.config.large_phases
        yield energy.answer(best)
        for phase in range(phases):
            if time.monotonic() > until:
                break
            hot, cold = (self.config.temperature * (1 - done / phases) for done in (phase, phase + 1))
            best = energy.improve(best, self.config.large_moves, hot, cold, random)
            yield energy.answer(best)

    def _chosen(self, energy: Energy, wholes: list[Placement]) -> list[State]:
        """Different placements to search from, the highest energy first; the best one again where there are few."""
        states = sorted((energy.state(*whole) for whole in wholes), key=energy, reverse=True)
        different = {(state.where.tobytes(), state.turn.tobytes()): state for state in states}.values()
        least, starts = self.config.hopeless * energy(states[0]), self.config.starts
        hopeful = [state for state in different if energy(state) >= least][:starts]
        return [*hopeful, *states[:1] * (starts - len(hopeful))]

    @staticmethod
    def _turned(puzzle: Puzzle, wholes: list[Placement]) -> list[Placement]:
        """Placements in all turns of the whole; where pieces are locked, those that keep them in place."""
        board, locks = puzzle.board, puzzle.locks
        turned = [board.turned(*whole, by)[1:] for whole in wholes for by in board.fitting_turns()]
        if locks is None:
            return turned
        held = [hold(whole, board, locks) for whole in wholes]
        return [*held, *(settle(whole, board, locks) for whole in turned)]
