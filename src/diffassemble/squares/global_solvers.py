"""Border solvers that place all pieces at once: linear programs (Yu) and connection graphs (Huroyan).

R. Yu, C. Russell, L. Agapito, "Solving Jigsaw Puzzles with Linear Programming", BMVC 2016 (arXiv 1511.04472): linear
programs over the places of all pieces, which reject matches until the rest agrees; several settings, of which the best
result counts.

V. Huroyan, G. Lerman, H.-T. Wu, "Solving Jigsaw Puzzles by the Graph Connection Laplacian", SIAM J. Imaging Sci. 2020:
turns from the lowest eigenvector of a graph of matches, cleaned by loops of four; places by Yu's linear programs; the
borders that then meet make the next graph, several times over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, diags_array, eye_array, hstack
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.sparse.linalg import eigsh

from diffassemble.core import Puzzle, Step
from diffassemble.core.board import SIDES
from diffassemble.squares import gallagher
from diffassemble.squares.edges import Borders, Partners
from diffassemble.squares.gallagher import QUARTERS, BorderSolver, Candidates, Forest, Placing, RatedPlacement
from diffassemble.squares.placement import touching_sides


def inconsistency(
    forest: Forest, sides: Int64[np.ndarray, "m 2"], weight: Float64[np.ndarray, "m"], budget: float = math.inf
) -> Float64[np.ndarray, "m"]:
    """How far each match is from holding (in cells) in the L1 program (section 3) in which trees are rigid.

    If side a of piece i touches side b of piece j, then p_i = p_j + R^(k_j) u_b and k_i = k_j + b + 2 − a, with places
    p, quarter turns k, R the turn by one quarter, and u_b the direction of side b; the program minimises Σ w |e|₁ of
    the errors e. For unknown turns the paper takes four copies of each piece, one a turn. Turning the whole maps
    solutions to solutions and the program is convex, so the copies may be required to be at R^k p. Then the four
    equations are one, with two unknowns a piece: e = R^(b + 2 − a) p_i − p_j − u_b.

    Trees of one piece give the paper's free variant. Infinite for all if HiGHS finds no solution in `budget` seconds.
    """
    # 1. Two equations a match in two unknowns a tree, in whose frame its pieces are fixed.
    tree = np.unique(forest.label, return_inverse=True)[1]
    first, second = (sides // SIDES).T
    turn = QUARTERS[(gallagher.turn_between(sides % SIDES) + forest.turn[second] - forest.turn[first]) % SIDES]
    side = QUARTERS[(sides[:, 1] + forest.turn[second]) % SIDES][:, :, 0]
    goal = forest.place[second] + side - (turn @ forest.place[first][:, :, None])[:, :, 0]
    goal = goal.ravel().astype(np.float64)
    row = 2 * np.arange(len(sides))[:, None, None] + np.array([[0, 0], [1, 1]])
    col = 2 * tree[first][:, None, None] + np.array([[0, 1], [0, 1]])
    own = coo_array((turn.ravel(), (row.ravel(), col.ravel())), (2 * len(sides), 2 * (tree.max() + 1)))
    fixed = 2 * tree[second][:, None] + np.arange(2)
    other = coo_array((np.ones(2 * len(sides)), (np.arange(2 * len(sides)), fixed.ravel())), own.shape)
    equations = (own - other).tocsr()
    equations.eliminate_zeros()
    # 2. The program.
    count, unknowns = equations.shape
    slack = eye_array(count)
    cost = np.repeat(weight, 2)
    solved = linprog(
        np.concatenate([np.zeros(unknowns), cost, cost]),
        A_eq=hstack([equations, -slack, slack], format="csc"),
        b_eq=goal,
        bounds=np.repeat([[-np.inf, np.inf], [0, np.inf]], [unknowns, 2 * count], axis=0),
        method="highs-ds",
        options={"time_limit": max(budget, 0.0)} if math.isfinite(budget) else {},
    )
    if not solved.success:
        return np.full(len(sides), np.inf)
    missed = equations @ solved.x[:unknowns] - goal
    return np.abs(missed).reshape(-1, 2).max(1)


@dataclass(frozen=True)
class Acceptance:
    """Which matches take part: with ratios below `clear`; of those on no cycle, which hold always, below `bridge`."""

    clear: float = 0.9
    bridge: float = 0.6
    rounds: int = 20
    tolerance: float = 1e-3
    """cells by which a match that holds may be missed; solutions are corners of the program, exact to many digits"""


def join_consistent(
    forest: Forest,
    candidates: Candidates,
    possible: Bool[np.ndarray, "sides keep"],
    acceptance: Acceptance,
    until: float = math.inf,
) -> Iterator[None]:
    """Join trees by successive linear programs (sections 3.2 to 3.4), and yield after each.

    Each takes the best `possible` match of every side that is open. Matches that do not hold are rejected for good,
    those that do join trees, which stay rigid. `until` is when to stop, by the monotonic clock.
    """
    pairs = candidates.pairs
    numbers = pairs.min(-1) * len(pairs) + pairs.max(-1)
    for _ in range(acceptance.rounds):
        free = forest.open_sides()
        label = forest.label[pairs // SIDES]
        possible = possible & free[:, None] & free[candidates.side] & (label[..., 0] != label[..., 1])
        matches = candidates.best(possible)
        matches = matches.chosen(matches.ratio < acceptance.clear)
        if not len(matches.sides) or time.monotonic() > until:
            return
        missed = inconsistency(forest, matches.sides, matches.weight, until - time.monotonic())
        holds = np.flatnonzero((missed < acceptance.tolerance) & (matches.ratio < 1))
        tree = np.unique(forest.label, return_inverse=True)[1]
        supported = gallagher.on_cycles(*tree[matches.sides[holds] // SIDES].T)
        accepted = matches.chosen(holds[supported | (matches.ratio[holds] < acceptance.bridge)])
        accepted = accepted.chosen(np.argsort(accepted.ratio, kind="stable"))
        refused = forest.join(accepted.sides)[1]
        never = np.concatenate([matches.sides[missed >= acceptance.tolerance], accepted.sides[refused]])
        possible &= ~np.isin(numbers, never.min(-1) * len(pairs) + never.max(-1))
        yield
        if refused.all():
            return


@dataclass(frozen=True)
class YuSolver(BorderSolver):
    """Linear programs over all places in several `settings`, of which the best placement counts."""

    settings: tuple[Acceptance, ...] = (
        Acceptance(clear=0.8),
        Acceptance(clear=1.0),
        Acceptance(bridge=0.0),
        Acceptance(bridge=1.0),
    )
    name: str = "yu"

    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the trees after every linear program."""
        board, candidates = puzzle.board, Candidates.of(partners, self.config)
        best: list[RatedPlacement] = []
        # Of every setting,
        for number, setting in enumerate(self.settings):
            # 1. join trees by linear programs;
            forest = Forest.of(len(puzzle), 0, board)
            for _ in join_consistent(forest, candidates, np.ones(candidates.side.shape, bool), setting, until):
                yield Step(forest.layout(board), done=(number + 0.5) / len(self.settings))
            # 2. join what these leave apart by any matches, the most probable first;
            forest.join(candidates.probable())
            # 3. trim to the frame, and keep the best.
            trimmed = gallagher.trim(forest, board, candidates, borders)
            if not best or trimmed[0].fit > best[0].fit:
                best = trimmed
            if time.monotonic() > until:
                break
        # 4. Fill the holes.
        placement = gallagher.place(best, board, candidates, borders, until)
        return placement.cells, placement.turns


@dataclass(frozen=True)
class ConnectionConfig:
    """Numbers of the connection graph; weights are relative to those of the clearest matches, 1.

    A connection w·i^t: the first piece is turned against the second by t quarter turns, with weight w. With D the sums
    of the absolute values, the Laplacian is 1 − D^−½ A D^−½; its lowest eigenvector is D^½ i^turns up to a phase.
    """

    unsupported: float = 0.2
    """factor of matches that no loop supports"""
    diagonal: float = 0.5
    """weight of the diagonals of loops"""
    tie: float = 1e-3
    """weight of matches that only keep the graph connected"""
    below: float = -1e-3
    """shift of the factorised Laplacian, a little below its lowest eigenvalue: converges for close eigenvalues too"""
    dense: int = 4
    """pieces below which all eigenvectors are computed"""
    old: float = 0.6
    """factor of the old graph in the next one"""
    together: float = 0.4
    """weight of two pieces that touch in the placement"""
    fills_well: float = 0.6
    """weight of a piece that fills a hole with borders better than the median"""
    fills: float = 0.3
    """weight of one whose borders are worse than the median, but not twice as bad"""
    wrong: float = 1.5
    """ratio to the median cost of borders above which a piece is misplaced"""


CONNECTIONS = ConnectionConfig()


def connections(sides: Int64[np.ndarray, "m 2"], weight: Float64[np.ndarray, "m"], count: int) -> csr_array:
    """The Hermitian matrix of these matches; several between the same pieces are added up."""
    first, second = (sides // SIDES).T
    value = weight * 1j ** gallagher.turn_between(sides % SIDES)
    half = coo_array((value, (first, second)), (count, count)).tocsr()
    return _nonzero(half + half.conj().T)


def first_connections(candidates: Candidates, count: int, config: ConnectionConfig = CONNECTIONS) -> csr_array:
    """The best matches of all sides, weighted by their clearness and by whether they close loops (section 3.2)."""
    best = candidates.best(np.ones(candidates.side.shape, bool))
    return tied_together(_weigh_loops(connections(best.sides, best.weight, count), config), candidates, config)


def tied_together(graph: csr_array, candidates: Candidates, config: ConnectionConfig = CONNECTIONS) -> csr_array:
    """The same graph with the most probable of the faint connections that make it one."""
    part = connected_components(abs(graph), directed=False)[1]
    pairs = candidates.probable(least=0.0)
    ends = np.sort(part[pairs // SIDES], axis=1)
    across = np.flatnonzero(ends[:, 0] != ends[:, 1])
    if not len(across):
        return graph
    between, earliest = np.unique(ends[across], axis=0, return_index=True)
    chosen = across[earliest]
    shape = (int(part.max()) + 1,) * 2
    order = coo_array((chosen + 1.0, tuple(between.T)), shape)
    tree = minimum_spanning_tree(order.tocsr()).data.astype(np.int64) - 1
    return _nonzero(graph + connections(pairs[tree], np.full(len(tree), config.tie), graph.shape[0]))


def recovered_turns(graph: csr_array, config: ConnectionConfig = CONNECTIONS) -> Int64[np.ndarray, "n"]:
    """Quarter turns from the lowest eigenvector, up to a common one; a piece without any connections keeps its turn."""
    count = graph.shape[0]
    scale = np.maximum(np.asarray(abs(graph).sum(1)), 1e-12) ** -0.5
    laplacian = eye_array(count, dtype=complex) - diags_array(scale) @ graph @ diags_array(scale)
    if count < config.dense:
        vector = np.linalg.eigh(laplacian.toarray())[1][:, 0]
    else:
        start = np.exp(1j * np.arange(count) ** 2)  # always the same, and like no eigenvector
        vector = eigsh(laplacian.tocsc(), k=1, sigma=config.below, which="LM", v0=start)[1][:, 0]
    # The phase for which the fourth powers, in which quarter turns do not show, agree best.
    unit = vector / np.maximum(np.abs(vector), 1e-300)
    phase = np.angle((unit**SIDES).sum()) / SIDES
    return np.round((np.angle(unit) - phase) / (np.pi / 2)).astype(np.int64) % SIDES


def _weigh_loops(graph: csr_array, config: ConnectionConfig) -> csr_array:
    """Connections that are on no loop of four pieces whose turns agree count less; diagonals of loops are added."""
    unit = _mapped(graph, lambda value: value / np.abs(value))
    linked = abs(unit)
    ways, turn = (_nonzero(two - diags_array(two.diagonal())) for two in (linked @ linked, unit @ unit))
    twice = _mapped(ways, lambda value: (np.round(value.real) == 2).astype(float))
    agreed = twice * _mapped(turn, lambda value: np.where(np.abs(value) > 1.9, value / 2, 0))
    support = linked * (abs(agreed) @ linked)
    support = support + support.T  # seen from either end
    supported = _mapped(support, lambda value: (value.real > 0).astype(float))
    weighted = config.unsupported * graph + (1 - config.unsupported) * supported * graph
    return _nonzero(weighted + config.diagonal * agreed)


def _mapped(graph: csr_array, change: Callable[[np.ndarray], np.ndarray]) -> csr_array:
    """A matrix with other values at the same places."""
    return csr_array((change(graph.data), graph.indices, graph.indptr), graph.shape, copy=True)


def _nonzero(graph: csr_array) -> csr_array:
    """Without entries that cancelled out."""
    kept = _mapped(graph.tocsr(), lambda value: np.where(np.abs(value) > 1e-9, value, 0))
    kept.eliminate_zeros()
    return kept


@dataclass(frozen=True)
class HuroyanSolver(BorderSolver):
    """Finds the turns of all pieces at once from a graph of matches, then places, which improve the graph."""

    iterations: int = 6
    connection: ConnectionConfig = CONNECTIONS
    name: str = "huroyan"

    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the trees and the placement of every iteration; the best placement is the answer."""
        board, candidates = puzzle.board, Candidates.of(partners, self.config)
        graph = first_connections(candidates, len(puzzle), self.connection)
        turns, found = np.zeros(0, np.int64), []
        for number in range(self.iterations):
            # 1. Turns from the graph; the end, if none has changed.
            before, turns = turns, recovered_turns(graph, self.connection)
            if board.oblong:  # known up to a common turn only, which must be an even one
                turns = (turns - np.bincount(turns % 2).argmax()) % SIDES
            if number and len(np.unique((turns - before) % SIDES)) == 1:
                break
            # 2. Places from linear programs over the matches that agree with the turns, then from any matches.
            forest, pairs = Forest.of(len(turns), turns, board), candidates.pairs
            between = turns[pairs[..., 0] // SIDES] - turns[pairs[..., 1] // SIDES]
            agreeing = (between - gallagher.turn_between(pairs % SIDES)) % SIDES == 0
            for _ in join_consistent(forest, candidates, agreeing, Acceptance(), until):
                yield Step(forest.layout(board), done=(number + 0.5) / self.iterations)
            forest.join(candidates.probable())
            trimmed = gallagher.trim(forest, board, candidates, borders)
            found.append(gallagher.place(trimmed, board, candidates, borders, until))
            yield Step(board.poses(found[-1].cells, found[-1].turns), done=(number + 1) / self.iterations)
            if time.monotonic() > until:
                break
            # 3. The next graph from what fits in this placement.
            graph = next_connections(graph, found[-1], puzzle, candidates, borders, self.connection)
            graph = tied_together(graph, candidates, self.connection)
        best = max(found, key=lambda placement: placement.fit)
        return best.cells, best.turns


def next_connections(
    graph: csr_array,
    placement: RatedPlacement,
    puzzle: Puzzle,
    candidates: Candidates,
    borders: Borders,
    config: ConnectionConfig = CONNECTIONS,
) -> csr_array:
    """The old graph, weaker, plus the pieces that touch well in the placement and those that fill holes well."""
    count = len(puzzle)
    first, second = touching_sides(puzzle.board, placement.cells, placement.turns)
    there, back = (borders.predicted[a] * borders.observed[b] for a, b in ((first, second), (second, first)))
    cost = (there.sum(1).clamp(min=0) + back.sum(1).clamp(min=0)).numpy()
    sides = torch.stack([first, second], 1).numpy()
    pieces = sides // SIDES
    mean = _mean(pieces[:, 0], cost, count)
    median = float(np.median(mean))
    right = _right_core(sides, mean <= config.wrong * median, candidates)
    together = right[pieces].all(1) & (pieces[:, 0] < pieces[:, 1])
    filling = ~right[pieces[:, 0]] & right[pieces[:, 1]]
    fitting = _mean(pieces[filling, 0], cost[filling], count)
    several = np.bincount(pieces[filling, 0], minlength=count) > 1
    gain = several * np.where(fitting < median, config.fills_well, np.where(fitting < 2 * median, config.fills, 0.0))
    return (
        config.old * graph
        + connections(sides[together], np.full(together.sum(), config.together), count)
        + connections(sides[filling], gain[pieces[filling, 0]], count)
    )


def _mean(index: Int64[np.ndarray, "m"], value: Float64[np.ndarray, "m"], count: int) -> Float64[np.ndarray, "n"]:
    """The mean of the values with each index; infinite without any."""
    number = np.bincount(index, minlength=count)
    return np.where(number > 0, np.bincount(index, value, count) / np.maximum(number, 1), np.inf)


def _right_core(
    sides: Int64[np.ndarray, "m 2"], right: Bool[np.ndarray, "n"], candidates: Candidates
) -> Bool[np.ndarray, "n"]:
    """The largest component of the well placed pieces that is connected by best matches of sides."""
    best = candidates.best(np.ones(candidates.side.shape, bool)).sides
    numbers = best.min(1) * len(candidates.side) + best.max(1)
    known = np.isin(sides.min(1) * len(candidates.side) + sides.max(1), numbers)
    first, second = (sides[known & right[sides // SIDES].all(1)] // SIDES).T
    part = gallagher.parts(first, second, len(right))
    return part == np.bincount(part).argmax()
