"""V. Huroyan, G. Lerman, H.-T. Wu, "Solving Jigsaw Puzzles by the Graph Connection Laplacian", SIAM J. Imaging Sci.

That is the paper of 2020. Its steps: a connection graph from the best matches of sides, cleaned by loops of four; turns
from the lowest eigenvector of its Laplacian; places of the pieces, whose turns are now known, by the linear programs of
Yu, as in the paper's own experiments; then pieces that do not fit where they lie are taken out, the holes are filled
with those that fit best, and what now lies together makes the next graph, several times over.

Matches that contradict the turns take no part in the linear programs. What these leave apart is joined by any matches,
so that a piece may be turned otherwise than its connections say: the next graph hears of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from scipy.sparse import coo_array, csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.sparse.linalg import eigsh

from diffassemble.core import Puzzle, Step
from diffassemble.core.board import SIDES
from diffassemble.squares.baselines.filling import (
    BorderSolver,
    Candidates,
    Placing,
    RatedPlacement,
    lay_out,
    parts,
    place,
    touching_sides,
    trim,
    turn_between,
)
from diffassemble.squares.baselines.yu import Caution, join_consistent
from diffassemble.squares.edges import Borders, Partners
from diffassemble.squares.forest import FramedForest

# Turns of pieces from matches alone: the graph connection Laplacian (sections 2 and 3).
# Pieces are the vertices. A connection w·i^t between two pieces says that the first is turned against the second by t
# quarter turns, and how much that is believed. With D the sums of the absolute values, the Laplacian is 1 − D^−½ A
# D^−½. If all connections agree, its lowest eigenvalue is 0, and the eigenvector is D^½ i^turns, up to a common phase.

# How much is believed: what is left of matches that no loop supports; diagonals of loops; matches that only hold the
# graph together. The clearest matches count 1.
_UNSUPPORTED = 0.2
_DIAGONAL = 0.5
_TIE = 1e-3
# The Laplacian is factorised a little below its lowest eigenvalue: that converges even where eigenvalues are close.
_BELOW = -1e-3
_DENSE = 4


def connections(sides: Int64[np.ndarray, "m 2"], weight: Float64[np.ndarray, "m"], count: int) -> csr_array:
    """The Hermitian matrix of these matches; several between the same pieces are added up."""
    first, second = (sides // SIDES).T
    value = weight * 1j ** turn_between(sides % SIDES)
    half = coo_array((value, (first, second)), (count, count)).tocsr()
    return _nonzero(half + half.conj().T)


def first_connections(candidates: Candidates, count: int) -> csr_array:
    """The best matches of all sides, weighed by how clear they are and whether they close loops (section 3.2).

    The paper asks only whether a match is mutual. Then false matches weigh as much as true ones, which is too much if
    pieces are missing.
    """
    best = candidates.best(np.ones(candidates.side.shape, bool))
    return tied_together(_weigh_loops(connections(best.sides, best.weight, count)), candidates)


def tied_together(graph: csr_array, candidates: Candidates) -> csr_array:
    """The same graph with the most probable of the faint connections that make it one."""
    part = connected_components(abs(graph), directed=False)[1]
    pairs = candidates.probable(above=-1.0)
    ends = np.sort(part[pairs // SIDES], axis=1)
    across = np.flatnonzero(ends[:, 0] != ends[:, 1])
    if not len(across):
        return graph
    between, earliest = np.unique(ends[across], axis=0, return_index=True)
    chosen = across[earliest]
    shape = (int(part.max()) + 1,) * 2
    order = coo_array((chosen + 1.0, tuple(between.T)), shape)
    tree = minimum_spanning_tree(order.tocsr()).data.astype(np.int64) - 1
    return _nonzero(graph + connections(pairs[tree], np.full(len(tree), _TIE), graph.shape[0]))


def recovered_turns(graph: csr_array) -> Int64[np.ndarray, "n"]:
    """Quarter turns from the lowest eigenvector, up to a common one; a piece without any connections keeps its turn."""
    count = graph.shape[0]
    scale = np.maximum(np.asarray(abs(graph).sum(1)), 1e-12) ** -0.5
    laplacian = eye_array(count, dtype=complex) - diags_array(scale) @ graph @ diags_array(scale)
    if count < _DENSE:
        vector = np.linalg.eigh(laplacian.toarray())[1][:, 0]
    else:
        start = np.exp(1j * np.arange(count) ** 2)  # always the same, and like no eigenvector
        vector = eigsh(laplacian.tocsc(), k=1, sigma=_BELOW, which="LM", v0=start)[1][:, 0]
    # The phase for which the fourth powers, in which quarter turns do not show, agree best.
    unit = vector / np.maximum(np.abs(vector), 1e-300)
    phase = np.angle((unit**SIDES).sum()) / SIDES
    return np.round((np.angle(unit) - phase) / (np.pi / 2)).astype(np.int64) % SIDES


def _weigh_loops(graph: csr_array) -> csr_array:
    """Connections that are on no loop of four pieces whose turns agree count less; diagonals of loops are added.

    Diagonal are two pieces with just two neighbours in common, if both ways between them say the same turn.
    """
    unit = _mapped(graph, lambda value: value / np.abs(value))
    linked = abs(unit)
    ways, turn = (_nonzero(two - diags_array(two.diagonal())) for two in (linked @ linked, unit @ unit))
    twice = _mapped(ways, lambda value: (np.round(value.real) == 2).astype(float))
    agreed = twice * _mapped(turn, lambda value: np.where(np.abs(value) > 1.9, value / 2, 0))
    support = linked * (abs(agreed) @ linked)
    support = support + support.T  # seen from either end
    supported = _mapped(support, lambda value: (value.real > 0).astype(float))
    believed = _UNSUPPORTED * graph + (1 - _UNSUPPORTED) * supported * graph
    return _nonzero(believed + _DIAGONAL * agreed)


def _mapped(graph: csr_array, change: Callable[[np.ndarray], np.ndarray]) -> csr_array:
    """A matrix with other values at the same places."""
    return csr_array((change(graph.data), graph.indices, graph.indptr), graph.shape, copy=True)


def _nonzero(graph: csr_array) -> csr_array:
    """Without entries that cancelled out."""
    kept = _mapped(graph.tocsr(), lambda value: np.where(np.abs(value) > 1e-9, value, 0))
    kept.eliminate_zeros()
    return kept


# What is left of the old graph in the next one; what pieces that lie together add; what one that fills a hole adds if
# it fits better than the median, or at least half as well.
_OLD = 0.6
_TOGETHER = 0.4
_FILLS_WELL = 0.6
_FILLS = 0.3
# A piece whose borders are on the average so much worse than the median lies wrong.
_WRONG = 1.5


@dataclass(frozen=True)
class HuroyanSolver(BorderSolver):
    """Finds the turns of all pieces at once from a graph of matches, then places, which better the graph."""

    iterations: int = 6
    name: str = "huroyan"

    def place(self, puzzle: Puzzle, borders: Borders, partners: Partners, until: float) -> Placing:
        """Yield the trees and the placement of every iteration; the best placement is the answer."""
        board, candidates = puzzle.board, Candidates.of(partners)
        graph = first_connections(candidates, len(puzzle))
        turns, found = np.zeros(0, np.int64), []
        for number in range(self.iterations):
            before, turns = turns, recovered_turns(graph)
            if board.oblong:  # known up to a common turn only, which must be an even one
                turns = (turns - np.bincount(turns % 2).argmax()) % SIDES
            if number and len(np.unique((turns - before) % SIDES)) == 1:
                break
            framed = FramedForest.of(board, turns)
            for _ in join_consistent(framed, candidates, agreeing(candidates.pairs, turns), Caution(), until):
                yield Step(lay_out(framed.forest, board), done=(number + 0.5) / self.iterations)
            framed.join(candidates.probable())
            found.append(place(trim(framed.forest, board, candidates, borders), board, candidates, borders, until))
            yield Step(board.poses(found[-1].cells, found[-1].turns), done=(number + 1) / self.iterations)
            if time.monotonic() > until:
                break
            graph = tied_together(next_connections(graph, found[-1], puzzle, candidates, borders), candidates)
        best = max(found, key=lambda placement: placement.fit)
        return best.cells, best.turns


def agreeing(pairs: Int64[np.ndarray, "*m 2"], turns: Int64[np.ndarray, "n"]) -> Bool[np.ndarray, "*m"]:
    """Which pairs of sides can lie together when the pieces are turned like that."""
    between = turns[pairs[..., 0] // SIDES] - turns[pairs[..., 1] // SIDES]
    return (between - turn_between(pairs % SIDES)) % SIDES == 0


def next_connections(
    graph: csr_array, placement: RatedPlacement, puzzle: Puzzle, candidates: Candidates, borders: Borders
) -> csr_array:
    """The old graph, fainter, with what the placement teaches: who lies together well, and who fills holes well."""
    count = len(puzzle)
    first, second = touching_sides(puzzle.board, placement.cells, placement.turns)
    there, back = (borders.predicted[a] * borders.observed[b] for a, b in ((first, second), (second, first)))
    cost = (there.sum(1).clamp(min=0) + back.sum(1).clamp(min=0)).numpy()
    sides = torch.stack([first, second], 1).numpy()
    pieces = sides // SIDES
    mean = _mean(pieces[:, 0], cost, count)
    median = float(np.median(mean))
    right = _right_core(sides, mean <= _WRONG * median, candidates)
    together = right[pieces].all(1) & (pieces[:, 0] < pieces[:, 1])
    filling = ~right[pieces[:, 0]] & right[pieces[:, 1]]
    fitting = _mean(pieces[filling, 0], cost[filling], count)
    several = np.bincount(pieces[filling, 0], minlength=count) > 1
    gain = several * np.where(fitting < median, _FILLS_WELL, np.where(fitting < 2 * median, _FILLS, 0.0))
    return (
        _OLD * graph
        + connections(sides[together], np.full(together.sum(), _TOGETHER), count)
        + connections(sides[filling], gain[pieces[filling, 0]], count)
    )


def _mean(index: Int64[np.ndarray, "m"], value: Float64[np.ndarray, "m"], count: int) -> Float64[np.ndarray, "n"]:
    """The mean of the values with each index; infinite without any."""
    number = np.bincount(index, minlength=count)
    return np.where(number > 0, np.bincount(index, value, count) / np.maximum(number, 1), np.inf)


def _right_core(
    sides: Int64[np.ndarray, "m 2"], right: Bool[np.ndarray, "n"], candidates: Candidates
) -> Bool[np.ndarray, "n"]:
    """The largest part of the pieces that lie right which hangs together by best choices of sides."""
    best = candidates.best(np.ones(candidates.side.shape, bool)).sides
    numbers = best.min(1) * len(candidates.side) + best.max(1)
    known = np.isin(sides.min(1) * len(candidates.side) + sides.max(1), numbers)
    first, second = (sides[known & right[sides // SIDES].all(1)] // SIDES).T
    part = parts(first, second, len(right))
    return part == np.bincount(part).argmax()
