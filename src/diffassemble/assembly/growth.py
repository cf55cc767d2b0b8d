"""Best-first agglomeration: pieces join groups by the proposal with most evidence, for every kind of pieces.

`grown` runs three stages. Which joins are possible, and the evidence for them, is given by a `Constraint` (occupancy of
a lattice, overlap of outlines, collision of meshes, order along a path); `GrowthPolicy` sets when growth stops, how
often pieces are taken out again and how many other beginnings are tried.

    1. attempt     required joins, then the join with most evidence, again and again, while that is at least `least`
    2. undo        pieces that their neighbours contradict are taken out, and the rest grows again; kept if better
    3. rivals      joins that the best attempt contradicts begin further attempts; the attempt with most evidence wins

Nothing is drawn at random, and ties are decided by the order of proposals, so the same input gives the same answer.

A kind writes one state (its groups, changed in place) and one subclass of `Constraint`, and reads the grown state:

    class Overlap(Constraint[Groups, int]):     # joins are numbers of matches
        def begin(self): ...                    # loose pieces; locked ones are one group
        def proposals(self, state): ...         # all matches, the most probable first
        def evidence(self, state, join): ...    # log odds of a match and of the contacts it implies; −∞: impossible
        def join(self, state, join): ...        # moves a group; returns the matches of the new group
        def total(self, state): ...
        def contradicted(self, state): ...      # for GrowthPolicy(rivals=…)

    best = grown(Overlap(matches, locks), GrowthPolicy(least=-2.5, rivals=6, until=until), required)

Must-join hints are the `required` joins; must-not-join hints and locks are joins with evidence −∞.
"""

from __future__ import annotations

import copy
import heapq
import math
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State")
Join = TypeVar("Join", bound=Hashable)


@dataclass(frozen=True)
class GrowthPolicy:
    """When growth stops and how many alternatives it tries; every kind sets its own, with the reasons."""

    least: float = 0.0
    """log odds that a join needs"""
    undo_rounds: int = 0
    """how often contradicted pieces are taken out and grown again; 0 switches stage 2 off"""
    rivals: int = 0
    """how many other beginnings are tried; 0 switches stage 3 off"""
    until: float = math.inf
    """time of `time.monotonic` after which nothing is improved any more; the first attempt is always finished"""
    gain: float = 1e-6
    """total log odds by which another assembly must be better to be kept; above rounding errors"""

    @property
    def late(self) -> bool:
        """Whether the time for improvements is over."""
        return time.monotonic() > self.until


@dataclass(frozen=True)
class Joined(Generic[Join]):
    """A join that was made, and its log odds at that moment."""

    join: Join
    odds: float


class Constraint(Generic[State, Join]):
    """What a family of pieces defines for growing; a state holds the groups and is changed in place.

    A subclass implements `begin`, `proposals`, `evidence`, `join` and `total`; the others have neutral defaults. Locked
    pieces are one group from `begin` on, and `evidence` is −∞ for joins that would move them.
    """

    def begin(self) -> State:
        """The state in which only locked pieces are joined."""
        raise NotImplementedError

    def proposals(self, state: State) -> Iterable[Join]:
        """Joins to consider, in an order that does not depend on how pieces are listed."""
        raise NotImplementedError

    def evidence(self, state: State, join: Join) -> float:
        """Log odds of a join in this state; −∞ if it is impossible or already made."""
        raise NotImplementedError

    def join(self, state: State, join: Join) -> Iterable[Join]:
        """Make a join; returns proposals that are new, or whose evidence may have changed by it."""
        raise NotImplementedError

    def total(self, state: State) -> float:
        """Log odds of the whole state, by which attempts are compared."""
        raise NotImplementedError

    def copy(self, state: State) -> State:
        """A state that can be changed without changing this one."""
        return copy.deepcopy(state)

    def undo(self, state: State) -> bool:
        """Take out pieces that their neighbours contradict; whether there were any."""
        return False

    def contradicted(self, state: State) -> Sequence[Join]:
        """Likely joins that the state contradicts, the likeliest first."""
        return ()


@dataclass
class Attempt(Generic[State, Join]):
    """A grown state, the joins that were made, in order, and the total of its log odds."""

    state: State
    joins: list[Joined[Join]] = field(default_factory=list)
    total: float = -math.inf


def best_first(
    constraint: Constraint[State, Join], state: State, least: float, proposals: Iterable[Join] | None = None
) -> Iterator[Joined[Join]]:
    """Make joins, the one with most evidence first, until none has at least `least`; yields each as it is made.

    Evidence is computed once for each proposal and again for those that `Constraint.join` returns. A proposal whose
    evidence has fallen in the meantime is put back at its new value, so each join is the best at its time.
    """
    rank: dict[Join, int] = {}
    value: dict[Join, float] = {}
    queue: list[tuple[float, int, Join]] = []

    def update(changed: Iterable[Join]) -> None:
        for one in changed:
            found = value[one] = constraint.evidence(state, one)
            order = rank.setdefault(one, len(rank))
            if found >= least and found > -math.inf:
                heapq.heappush(queue, (-found, order, one))

    update(constraint.proposals(state) if proposals is None else proposals)
    while queue:
        promised, _, one = heapq.heappop(queue)
        if value.get(one) != -promised:
            continue  # there is a newer entry
        now = constraint.evidence(state, one)
        if now < -promised - 1e-9:
            update([one])
            continue
        value.pop(one)
        changed = list(constraint.join(state, one))
        yield Joined(one, now)
        update(changed)


def grown(
    constraint: Constraint[State, Join], policy: GrowthPolicy, required: Sequence[Join] = ()
) -> Attempt[State, Join]:
    """The best attempt; `required` joins (hints) are made first wherever they are possible."""
    # 1. The first attempt; 2. contradicted pieces are taken out, and the rest grows again.
    best = _attempt(constraint, policy, required)
    # 3. Other beginnings.
    tried: set[Join] = set()
    for _ in range(policy.rivals):
        rival = next((join for join in constraint.contradicted(best.state) if join not in tried), None)
        if rival is None or policy.late:
            break
        tried.add(rival)
        other = _attempt(constraint, policy, (*required, rival))
        if other.total > best.total + policy.gain:
            best = other
    return best


def _attempt(
    constraint: Constraint[State, Join], policy: GrowthPolicy, required: Sequence[Join]
) -> Attempt[State, Join]:
    """One attempt, after rounds of taking out and growing again, as long as each gains."""
    best: Attempt[State, Join] = Attempt(constraint.begin())
    for join in required:
        if (odds := constraint.evidence(best.state, join)) > -math.inf:
            list(constraint.join(best.state, join))
            best.joins.append(Joined(join, odds))
    best.joins += best_first(constraint, best.state, policy.least)
    best.total = constraint.total(best.state)
    for _ in range(policy.undo_rounds):
        if policy.late:
            break
        other = Attempt(constraint.copy(best.state), list(best.joins))
        if not constraint.undo(other.state):
            break
        other.joins += best_first(constraint, other.state, policy.least)
        other.total = constraint.total(other.state)
        if other.total <= best.total + policy.gain:
            break
        best = other
    return best
