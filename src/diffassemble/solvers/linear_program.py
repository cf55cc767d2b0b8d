"""Where pieces stand if as many matches as possible shall hold: a weighted L1 linear program (Yu 2015, section 3).

If side a of piece i lies against side b of piece j, then P_i = P_j + R^(k_j) u_b and k_i = k_j + b + 2 − a, with places
P, quarter turns k, R the turn by one quarter, and u_b the way that side b looks. The program is

    minimise Σ w (|ex| + |ey|)   with   e = P_i − P_j − R^(k_j) u_b .

For unknown turns (section 3.5) the paper takes four copies of each piece, one a turn, and every match holds four times.
Turning the whole maps its solutions to each other, and the mean of a solution and its turned ones is as good, for the
program is convex: one may ask that the copies of a piece stand at R^k p. Then all four equations are one,

    e = R^(b + 2 − a) p_i − p_j − u_b ,

no turn is left in it, and two unknowns a piece suffice instead of eight.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64, Int64
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack

from diffassemble.compatibility.image import SIDES
from diffassemble.solvers.matches import turn_between
from diffassemble.solvers.spanning import Forest

_QUARTERS = np.array([[[1, 0], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]]])
_OPTIMAL = 0


def inconsistency(
    forest: Forest,
    sides: Int64[np.ndarray, "m 2"],
    weight: Float64[np.ndarray, "m"],
    budget: float = math.inf,
) -> Float64[np.ndarray, "m"]:
    """How far each match is from holding (in cells) in the solution of the program in which trees are rigid.

    That is the paper's constrained variant; trees of one piece give the free one. Infinite for all if HiGHS finds no
    solution within `budget` seconds.
    """
    equations, goal = _equations(forest, sides)
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
    if solved.status != _OPTIMAL:
        return np.full(len(sides), np.inf)
    missed = equations @ solved.x[:unknowns] - goal
    return np.abs(missed).reshape(-1, 2).max(1)


def _equations(forest: Forest, sides: Int64[np.ndarray, "m 2"]) -> tuple[csr_array, Float64[np.ndarray, "equations"]]:
    """Two equations a match in two unknowns a tree: those of its pieces, which stand and lie fast in its frame."""
    tree = np.unique(forest.label, return_inverse=True)[1]
    first, second = (sides // SIDES).T
    quarters = (turn_between(sides % SIDES) + forest.turn[second] - forest.turn[first]) % SIDES
    turn = _QUARTERS[quarters]
    look = _QUARTERS[(sides[:, 1] + forest.turn[second]) % SIDES][:, :, 0]
    goal = forest.place[second] + look - (turn @ forest.place[first][:, :, None])[:, :, 0]
    row = 2 * np.arange(len(sides))[:, None, None] + np.array([[0, 0], [1, 1]])
    col = 2 * tree[first][:, None, None] + np.array([[0, 1], [0, 1]])
    own = coo_array((turn.ravel(), (row.ravel(), col.ravel())), (2 * len(sides), 2 * (tree.max() + 1)))
    standing = 2 * tree[second][:, None] + np.arange(2)
    other = coo_array((np.ones(2 * len(sides)), (np.arange(2 * len(sides)), standing.ravel())), own.shape)
    equations = (own - other).tocsr()
    equations.eliminate_zeros()
    return equations, goal.ravel().astype(np.float64)
