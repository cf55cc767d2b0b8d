"""R. Yu, C. Russell, L. Agapito, "Solving Jigsaw Puzzles with Linear Programming", BMVC 2016 (arXiv 1511.04472).

The paper's steps: the best match of every side by Mahalanobis gradient compatibility, weighed by how much worse its
rivals are (section 3.1); linear programs over the places of all pieces at once, which reject matches until
the rest agrees (sections 3.2 to 3.4); unknown turns by copies of each piece in all of them (section
3.5); trees that remain apart are assembled like Gallagher's trees, trimmed to the frame and filled in.

The authors run several settings and take the best result; so does this solver, with four settings of which matches
are accepted. Missing pieces, which the paper does not treat, leave sides without a clear match.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack

from diffassemble.core import Puzzle, Step
from diffassemble.core.board import SIDES
from diffassemble.squares.edges import Borders, Partners
from diffassemble.squares.forest import QUARTERS, Forest, FramedForest
from diffassemble.squares.gallagher import (
    BorderSolver,
    Candidates,
    Placing,
    RatedPlacement,
    lay_out,
    on_cycles,
    place,
    trim,
    turn_between,
)

# The places of the pieces at which as many matches as possible hold: a weighted L1 program (Yu 2015, section 3).
#
# If side a of piece i touches side b of piece j, then P_i = P_j + R^(k_j) u_b and k_i = k_j + b + 2 − a, with
# places P, quarter turns k, R the turn by one quarter, and u_b the direction of side b. The program is
#
#     minimise Σ w (|ex| + |ey|)   with   e = P_i − P_j − R^(k_j) u_b .
#
# For unknown turns (section 3.5) the paper takes four copies of each piece, one a turn, and every match holds four
# times. Turning the whole maps its solutions to each other, and the mean of a solution and its turned ones is as good,
# for the program is convex: one may require that the copies of a piece are at R^k p. Then all four equations are one,
#
#     e = R^(b + 2 − a) p_i − p_j − u_b ,
#
# no turn is left in it, and two unknowns a piece suffice instead of eight.


def inconsistency(
    forest: Forest, sides: Int64[np.ndarray, "m 2"], weight: Float64[np.ndarray, "m"], budget: float = math.inf
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
    if not solved.success:
        return np.full(len(sides), np.inf)
    missed = equations @ solved.x[:unknowns] - goal
    return np.abs(missed).reshape(-1, 2).max(1)


def _equations(forest: Forest, sides: Int64[np.ndarray, "m 2"]) -> tuple[csr_array, Float64[np.ndarray, "equations"]]:
    """Two equations a match in two unknowns a tree, in whose frame its pieces are fixed."""
    tree = np.unique(forest.label, return_inverse=True)[1]
    first, second = (sides // SIDES).T
    quarters = (turn_between(sides % SIDES) + forest.turn[second] - forest.turn[first]) % SIDES
    turn = QUARTERS[quarters]
    look = QUARTERS[(sides[:, 1] + forest.turn[second]) % SIDES][:, :, 0]
    goal = forest.place[second] + look - (turn @ forest.place[first][:, :, None])[:, :, 0]
    row = 2 * np.arange(len(sides))[:, None, None] + np.array([[0, 0], [1, 1]])
    col = 2 * tree[first][:, None, None] + np.array([[0, 1], [0, 1]])
    own = coo_array((turn.ravel(), (row.ravel(), col.ravel())), (2 * len(sides), 2 * (tree.max() + 1)))
    standing = 2 * tree[second][:, None] + np.arange(2)
    other = coo_array((np.ones(2 * len(sides)), (np.arange(2 * len(sides)), standing.ravel())), own.shape)
    equations = (own - other).tocsr()
    equations.eliminate_zeros()
    return equations, goal.ravel().astype(np.float64)


# Successive linear programs over matches (Yu 2015, sections 3.2 to 3.4).
#
# Each round takes the best match of every side that is still open, weighs it by how clear it is, and solves the
# program. Matches that do not hold in its solution are rejected for good, those that do join trees, which stay rigid
# from then on; in the next round, others take the place of the rejected ones. It ends when nothing more can be joined.


@dataclass(frozen=True)
class Acceptance:
    """Which matches are accepted: those whose ratio is below `clear` take part, and must hold in the solution.

    Those that close no cycle hold in any solution: they are accepted with a ratio below `bridge` only.
    """

    clear: float = 0.9
    bridge: float = 0.6
    rounds: int = 20
    tolerance: float = 1e-3
    """cells by which a match that holds may be missed: solutions are on corners of the program, so to many digits"""


def join_consistent(
    framed: FramedForest,
    candidates: Candidates,
    possible: Bool[np.ndarray, "sides keep"],
    acceptance: Acceptance,
    until: float = math.inf,
) -> Iterator[None]:
    """Join trees by one linear program after the other, and yield after each.

    `possible` are the candidates that are considered at all; `until` is when to stop, by the monotonic clock.
    """
    pairs = candidates.pairs
    numbers = pairs.min(-1) * len(pairs) + pairs.max(-1)
    for _ in range(acceptance.rounds):
        free = framed.open_sides()
        label = framed.forest.label[pairs // SIDES]
        possible = possible & free[:, None] & free[candidates.side] & (label[..., 0] != label[..., 1])
        matches = candidates.best(possible)
        matches = matches[matches.ratio < acceptance.clear]
        if not len(matches) or time.monotonic() > until:
            return
        missed = inconsistency(framed.forest, matches.sides, matches.weight, until - time.monotonic())
        holds = np.flatnonzero((missed < acceptance.tolerance) & (matches.ratio < 1))
        tree = np.unique(framed.forest.label, return_inverse=True)[1]
        supported = on_cycles(*tree[matches.sides[holds] // SIDES].T)
        accepted = matches[holds[supported | (matches.ratio[holds] < acceptance.bridge)]]
        accepted = accepted[np.argsort(accepted.ratio, kind="stable")]
        refused = framed.join(accepted.sides)
        never = np.concatenate([matches.sides[missed >= acceptance.tolerance], accepted.sides[refused]])
        possible &= ~np.isin(numbers, never.min(-1) * len(pairs) + never.max(-1))
        yield
        if refused.all():
            return


@dataclass(frozen=True)
class YuSolver(BorderSolver):
    """Finds the places of all pieces at once, in which the clearest matches of sides hold, by linear programs.

    Of the `settings` the best placement counts: few but clear matches; all mutual ones; on cycles only; also others.
    """

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
            framed = FramedForest.of(board, np.zeros(len(puzzle), np.int64))
            for _ in join_consistent(framed, candidates, np.ones(candidates.side.shape, bool), setting, until):
                yield Step(lay_out(framed.forest, board), done=(number + 0.5) / len(self.settings))
            # 2. join what these leave apart by any matches, the most probable first;
            framed.join(candidates.probable())
            # 3. trim to the frame, and keep the best.
            trimmed = trim(framed.forest, board, candidates, borders)
            if not best or trimmed[0].fit > best[0].fit:
                best = trimmed
            if time.monotonic() > until:
                break
        # 4. Fill the holes.
        placement = place(best, board, candidates, borders, until)
        return placement.cells, placement.turns
