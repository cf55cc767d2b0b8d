"""Turns of pieces from matches alone: the graph connection Laplacian (Huroyan, Lerman, Wu 2020, sections 2 and 3).

Pieces are the vertices. A connection w·i^t between two pieces says that the first is turned against the second by t
quarter turns, and how much that is believed. With D the sums of the absolute values, the Laplacian is 1 − D^−½ A D^−½.
If all connections agree, its lowest eigenvalue is 0, and the eigenvector is D^½ i^turns, up to a common phase.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import coo_array, csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.sparse.linalg import eigsh

from diffassemble.compatibility.image import SIDES
from diffassemble.solvers.matches import Candidates, turn_between

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
    parts = int(part.max()) + 1
    order = coo_array((chosen + 1.0, tuple(between.T)), (parts, parts))
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
    ways, turn = _off_diagonal(linked @ linked), _off_diagonal(unit @ unit)
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


def _off_diagonal(graph: csr_array) -> csr_array:
    return _nonzero(graph - diags_array(graph.diagonal()))


def _nonzero(graph: csr_array) -> csr_array:
    """Without entries that cancelled out."""
    kept = _mapped(graph.tocsr(), lambda value: np.where(np.abs(value) > 1e-9, value, 0))
    kept.eliminate_zeros()
    return kept
