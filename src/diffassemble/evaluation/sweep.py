"""Solvers on cells: the one sweep for every kind of pieces, whoever solves the cases, and how a killed one goes on.

A cell is what a row of a table is measured on. Each kind of pieces has one (`evaluation.squares`,
`evaluation.fragments`), which makes its cases, scores answers and turns scores into rows; nothing here knows more.
A case follows from a seed and the item's index in its collection alone, so every solver gets the same ones.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import InputError, Puzzle, Solver, Step
from diffassemble.core.seeds import random_stream
from diffassemble.io.atomic import check_file
from diffassemble.io.reading import parse_json, read_bytes, reason

# What the random streams of a case are for; see `random_stream`.
CUTTING, SOLVING, LOSING = 0, 1, 2
# How every line of a journal begins.
_LINE = b'{"puzzle": {'
Identity = Mapping[str, str | int | float]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Case:
    """One puzzle of a benchmark: `given` to the solver, scored on the clean `puzzle`, which has the truth.

    `whole` counts the pieces before some went missing; `share` is how much of the whole each piece is.
    """

    name: str
    category: str
    puzzle: Puzzle
    given: Puzzle
    whole: int
    share: Float[Tensor, "n"]


Score = Any
"""How good an answer to one case is: a dataclass of what JSON can hold."""


@dataclass(frozen=True)
class Measured:
    """A row with the 95 % intervals of some of its fields.

    A row is a dataclass with the fields of `evaluate --json`; for people it has HEADINGS and a CAPTION, `cells` under
    them, `describe` for what it was measured on, and `groups`: figures of parts of that, by kind and name of the part.
    """

    row: Any
    intervals: Mapping[str, Interval]

    def reach(self, name: str) -> Interval:
        """How far below and above a field may be: to the ends of its interval, or by its deviation over seeds."""
        value, deviation = getattr(self.row, name), getattr(self.row, "deviation", None)
        if name in self.intervals:
            low, high = self.intervals[name]
            return max(0.0, value - low), max(0.0, high - value)
        spread = 0.0 if deviation is None else getattr(deviation, name)
        return spread, spread


@runtime_checkable
class Cell(Protocol):
    """What a row is measured on: a collection of items (`len` of them), of which each makes a case.

    `data` names the collection, THINGS the cases; FIGURES are the fields of rows that are drawn, and their labels.
    Items are drawn with `usual_seeds` seeds, if nobody says otherwise. `check` refuses what no cases can be made of;
    `small` is a cell to warm up on. `identity` holds all that a case follows from, first the item's name. `read_score`
    reads a score back from JSON, with a TypeError or KeyError if it is none. `rows` are those of a solver, given its
    scores for every draw of the items. `rank` tells better scores (higher) from worse, `words` tells one to people.
    """

    THINGS: ClassVar[str]
    FIGURES: ClassVar[Mapping[str, str]]

    @property
    def data(self) -> str: ...
    @property
    def missing(self) -> float: ...
    @property
    def usual_seeds(self) -> int: ...
    def __len__(self) -> int: ...
    def check(self) -> None: ...
    def small(self) -> Cell: ...
    def case(self, index: int, seed: int) -> Case: ...
    def identity(self, index: int, seed: int) -> Identity: ...
    def score(self, case: Case, step: Step, seconds: float) -> Score: ...
    def read_score(self, entry: dict[str, Any]) -> Score: ...
    def rows(self, solver: str, seed: int, draws: Sequence[Sequence[Score]]) -> list[Measured]: ...
    def rank(self, score: Score) -> tuple[float, ...]: ...
    def words(self, score: Score) -> str: ...


@dataclass(frozen=True)
class Draws:
    """The cases of a cell, by number; any can be made without the others.

    `limit` takes that many items, evenly spread over the collection, since neighbours in a sorted folder often come
    from one source. All are drawn with `seeds` seeds from `seed` on (as many as usual if nobody says otherwise), and
    with further ones until there are `puzzles` cases.
    """

    cell: Cell
    limit: int | None = None
    puzzles: int | None = None
    seed: int = 0
    seeds: int | None = None

    def __len__(self) -> int:
        seeds = self.cell.usual_seeds if self.seeds is None else self.seeds
        return max(self.taken * seeds, self.puzzles or 0)

    @property
    def taken(self) -> int:
        """How many of the items are drawn."""
        return min(self.limit or len(self.cell), len(self.cell))

    def check(self) -> None:
        """Refuse what no cases can be made of."""
        self.cell.check()
        things, missing, limit, least = self.cell.THINGS, self.cell.missing, self.limit, self.puzzles
        refuse(f"limit {limit} leaves no {things}; pass a limit of at least 1", limit is not None and limit < 1)
        few = f"puzzles {least} is below 1; pass how many {things} there must be at least, such as 100"
        refuse(few, least is not None and least < 1)
        refuse(f"missing {missing} is not a share of the pieces; pass 0 or more and less than 1", not 0 <= missing < 1)
        refuse(f"seed {self.seed} is below 0; pass 0 or more", self.seed < 0)
        few = f"seeds {self.seeds} is below 1; pass how often the {things} are drawn, such as 5"
        refuse(few, self.seeds is not None and self.seeds < 1)

    def place(self, number: int) -> tuple[int, int]:
        """Which item it is, and with which seed; the last round may be of fewer items, evenly spread again."""
        further, position = divmod(number, self.taken)
        round_size = min(self.taken, len(self) - further * self.taken)
        return (position * self.taken // round_size) * len(self.cell) // self.taken, self.seed + further

    def case(self, number: int) -> tuple[Case, torch.Generator]:
        """A case, and a generator for whoever solves it."""
        index, seed = self.place(number)
        return self.cell.case(index, seed), random_stream(seed, index, SOLVING)

    def identity(self, number: int) -> Identity:
        """All that a case follows from."""
        return self.cell.identity(*self.place(number))


def refuse(message: str, *wishes: object) -> None:
    """Tell a wish that can't be granted, if there is one."""
    if any(wishes):
        raise InputError(message)


def answer(solver: Solver, puzzle: Puzzle, generator: torch.Generator) -> tuple[Step, float]:
    """A solver's last step, and how many seconds it took; it never sees the truth."""
    start, last = time.perf_counter(), None
    for step in solver.steps(puzzle.without_truth(), generator):
        last = step
    if last is None:
        raise RuntimeError(f"solver {solver.name} gave no answer")
    return last, time.perf_counter() - start


def solve_case(solver: Solver, draws: Draws, number: int) -> tuple[Score, Answer]:
    """Let a solver put together one case, and score its answer."""
    case, generator = draws.case(number)
    step, seconds = answer(solver, case.given, generator)
    shown = replace(case.given, truth=case.puzzle.truth)
    return draws.cell.score(case, step, seconds), Answer(shown, step.placements, (), solver.name, seconds)


Scoring = Callable[[Solver, Draws, Sequence[int]], Iterator[tuple[int, Score, Answer | None]]]
"""Scores a solver on the cases with these numbers, in any order; answers of other processes stay there."""


def score_here(solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Score, Answer | None]]:
    """A `Scoring` in this process, one case after the other."""
    for number in numbers:
        yield number, *solve_case(solver, draws, number)


class Journal:
    """Scores as they come, one line of JSON each, by solver, its settings and case; a sweep that was killed goes on.

    `settings` are by solver; `read` is the cells' `read_score`. A line that was being written when the program died is
    dropped.
    """

    def __init__(self, path: Path, settings: Mapping[str, Identity], read: Callable[[dict[str, Any]], Score]) -> None:
        self.path, self.settings = path, settings
        self.known = {json.dumps(entry, sort_keys=True): score for entry, score in self._read(read)}

    def look_up(self, solver: str, case: Identity) -> Score | None:
        """The score of this case, if it was solved with the same settings before."""
        return self.known.get(self._key(solver, case))

    def note(self, solver: str, case: Identity, score: Any) -> None:
        """Add a line, which is on the disk when this returns."""
        key = self._key(solver, case)
        self.known[key] = score
        line = json.dumps({**json.loads(key), "score": asdict(score)}) + "\n"
        try:
            with self.path.open("a") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({reason(error)}); the scores so far are kept") from error

    def _key(self, solver: str, case: Identity) -> str:
        # An endless budget is no number of JSON's.
        told = {name: "endless" if value == float("inf") else value for name, value in self.settings[solver].items()}
        return json.dumps({"solver": solver, "settings": told, "puzzle": dict(case)}, sort_keys=True)

    def _read(self, read: Callable[[dict[str, Any]], Score]) -> Iterator[tuple[dict[str, Any], Score]]:
        """Solver, settings and case of every whole line, and its score."""
        check_file(self.path, lambda content: True, overwrite=True)
        text = read_bytes(self.path, "file of scores") if self.path.exists() and self.path.stat().st_size else b""
        whole = text[: text.rfind(b"\n") + 1]
        rest = text[len(whole) :]
        if rest[: len(_LINE)] != _LINE[: len(rest)]:
            raise InputError(f"{self.path}: its last line is no score; pass another --scores file")
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = parse_json(line, "", "")
                score = read(entry.pop("score"))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{self.path}, line {number}: is no score; pass another --scores file") from error
            yield entry, score
        if whole != text:
            os.truncate(self.path, len(whole))


@dataclass(frozen=True)
class Sweep:
    """Every solver on the cases of every cell.

    `scoring` is who solves them, if not this process; what the `journal` knows already is not solved again.
    """

    solvers: Sequence[Solver]
    draws: Sequence[Draws]
    scoring: Scoring | None = None
    journal: Journal | None = None

    @property
    def total(self) -> int:
        """How many cases will be solved in all."""
        return len(self.solvers) * sum(map(len, self.draws))


@dataclass(frozen=True)
class Solved:
    """A case that a solver answered; the answer itself only if it was given by this process in this run."""

    cell: Cell
    solver: str
    score: Score
    assembly: Answer | None


def run_sweep(sweep: Sweep, report: Callable[[Solved], None] = lambda solved: None) -> Iterator[Measured]:
    """Measure cell by cell, the solvers side by side on each; `report` hears of every case.

    All wishes are checked before the first case is solved.
    """
    for draws in sweep.draws:
        draws.check()
    for draws, solver in product(sweep.draws, sweep.solvers):
        found = dict[int, Score]()
        for number, score, assembly in _scores(solver, draws, sweep.scoring or score_here, sweep.journal):
            found[number] = score
            report(Solved(draws.cell, solver.name, score, assembly))
        scores = [found[number] for number in range(len(draws))]
        by_seed = [scores[start : start + draws.taken] for start in range(0, len(scores), draws.taken)]
        yield from draws.cell.rows(solver.name, draws.seed, by_seed)


def warm_up(sweep: Sweep) -> None:
    """Let every solver answer a small case, so that what it compiles or loads at first is not measured."""
    for solver in sweep.solvers:
        solve_case(solver, Draws(sweep.draws[0].cell.small()), 0)


def _scores(
    solver: Solver, draws: Draws, scoring: Scoring, journal: Journal | None
) -> Iterator[tuple[int, Score, Answer | None]]:
    """The scores of all cases, each with its number: first those that the journal knows."""
    todo = []
    for number in range(len(draws)):
        known = None if journal is None else journal.look_up(solver.name, draws.identity(number))
        if known is None:
            todo.append(number)
        else:
            yield number, known, None
    for number, score, assembly in scoring(solver, draws, todo):
        if journal is not None:
            journal.note(solver.name, draws.identity(number), score)
        yield number, score, assembly


def peak_megabytes(usage: resource.struct_rusage | None = None) -> float:
    """Highest resident memory of this process so far, or by what is known of another, in MB (10⁶ bytes)."""
    resident = (usage or resource.getrusage(resource.RUSAGE_SELF)).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return resident / 1e6 if sys.platform == "darwin" else resident * 1024 / 1e6
