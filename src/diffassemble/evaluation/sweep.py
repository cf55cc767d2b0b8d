"""The sweep: solvers on the cases of cells, for every kind of pieces, in this or in other processes, resumable.

A cell is what a row of a table is measured on. Each kind of pieces has one (`evaluation.squares`, `outlines`,
`fragments`), which makes its cases and scores answers. A case depends on a seed and the item's index in its collection
alone, so every solver gets the same ones.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.core import InputError, Puzzle, Solver, Step
from diffassemble.core.placements import Placements
from diffassemble.core.seeds import random_stream
from diffassemble.evaluation.rows import Part, Row, Score, Scores, deviations, read_scores, summarise
from diffassemble.io.atomic import check_file
from diffassemble.io.reading import parse_json, read_bytes, reason

# What the random streams of a case are for; see `random_stream`.
CUTTING, SOLVING, LOSING = 0, 1, 2
# How every line of a journal begins.
_LINE = b'{"puzzle": {'
Identity = Mapping[str, str | int | float]


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


@dataclass(frozen=True)
class Layout:
    """How a kind of pieces is shown: what its cases are called, columns and caption of its table, figures that are
    drawn with their labels, and the figures by which answers are ranked (`-name`: less is better).

    A column is a heading and a format string over the fields of a row; `NAME_low` and `NAME_high` are the ends of the
    interval of a figure, `plain_NAME` its plain mean.
    """

    things: str
    columns: tuple[tuple[str, str], ...]
    caption: str
    drawn: Mapping[str, str]
    rank: tuple[str, ...]


class Cell(ABC):
    """What a row is measured on: a collection of items (`len` of them), of which each makes a case.

    `data` names the collection, `missing` is the share of pieces that are taken away. Items are drawn with
    `usual_seeds` seeds by default, and scored in each of the `views`. CONDITIONS are the attributes that state what was
    done to the items, each with the format in which it is shown; MEDIANS are figures of which medians are reported.
    """

    LAYOUT: ClassVar[Layout]
    CONDITIONS: ClassVar[Mapping[str, str]]
    MEDIANS: ClassVar[tuple[str, ...]] = ()
    usual_seeds: int
    views: tuple[str, ...]
    data: str
    missing: float

    @property
    def setting(self) -> Mapping[str, str | int | float]:
        """The fields of rows that state what was done to the items."""
        return {name: getattr(self, name) for name in self.CONDITIONS}

    @property
    def words(self) -> tuple[str, ...]:
        """The same as text, without what was not done."""
        return tuple(form.format(value) for name, form in self.CONDITIONS.items() if (value := getattr(self, name)))

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def check(self) -> None:
        """Refuse what no cases can be made of."""

    @abstractmethod
    def case(self, index: int, seed: int) -> Case:
        """The puzzle of an item."""

    @abstractmethod
    def identity(self, index: int, seed: int) -> Identity:
        """All that a case depends on, first the item's name."""

    @abstractmethod
    def score(self, case: Case, found: Placements, seconds: float) -> Scores:
        """An answer compared with the truth, under each of the views."""

    def parts(self, scores: Sequence[Score]) -> tuple[Part, ...]:
        """Means over parts of the scores, if the kind has any."""
        return ()


def make_rows(cell: Cell, solver: str, seed: int, draws: Sequence[Sequence[Scores]]) -> Iterator[Row]:
    """A row for each view, from the scores of every draw of the items."""
    for view in cell.views:
        seen = [[one[view] for one in draw] for draw in draws]
        scores = [score for draw in seen for score in draw]
        figures, intervals, plain = summarise(scores, cell.MEDIANS)
        sums = ("pieces", "sure", "sure_right", "false_joins", "seconds")
        pieces, sure, right, false_joins, seconds = (sum(getattr(one, name) for one in scores) for name in sums)
        yield Row(
            solver=solver,
            data=cell.data,
            setting={**cell.setting, **({"anchor": view} if view else {})},
            words=(*cell.words, *((f"anchor {view}",) if view else ())),
            puzzles=len(scores),
            items=len(draws[0]),
            pieces=pieces / len(scores),
            seed=seed,
            seeds=len(draws),
            figures=figures,
            intervals=intervals,
            plain=plain,
            deviation=deviations(seen),
            sure=sure,
            sure_right=right,
            false_joins=false_joins,
            seconds_per_puzzle=seconds / len(scores),
            peak_mb=round(peak_megabytes(), 1),
            parts=cell.parts(scores),
        )


@dataclass(frozen=True)
class Draws:
    """The cases of a cell, by number; any can be made without the others.

    `limit` takes that many items, evenly spread over the collection, since neighbours in a sorted folder often come
    from one source. All are drawn with `seeds` seeds from `seed` on (by default as many as usual for the cell), and
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
        things, missing = self.cell.LAYOUT.things, self.cell.missing
        refuse(f"missing {missing} is not a share of the pieces; pass 0 or more and less than 1", not 0 <= missing < 1)
        for wanted, value, least in (
            (f"limit {self.limit} leaves no {things}; pass a limit of at least 1", self.limit, 1),
            (f"puzzles {self.puzzles} is below 1; pass the least number of {things}, such as 100", self.puzzles, 1),
            (f"seed {self.seed} is below 0; pass 0 or more", self.seed, 0),
            (f"seeds {self.seeds} is below 1; pass how often the {things} are drawn, such as 5", self.seeds, 1),
        ):
            refuse(wanted, value is not None and value < least)

    def place(self, number: int) -> tuple[int, int]:
        """Which item it is, and with which seed; the last round may be of fewer items, evenly spread again."""
        further, position = divmod(number, self.taken)
        round_size = min(self.taken, len(self) - further * self.taken)
        return (position * self.taken // round_size) * len(self.cell) // self.taken, self.seed + further

    def case(self, number: int) -> tuple[Case, torch.Generator]:
        """A case, and a generator for its solver."""
        index, seed = self.place(number)
        return self.cell.case(index, seed), random_stream(seed, index, SOLVING)

    def identity(self, number: int) -> Identity:
        """All that a case follows from."""
        return self.cell.identity(*self.place(number))


def refuse(message: str, *values: object) -> None:
    """Raise an InputError with the message if any of the values is set."""
    if any(values):
        raise InputError(message)


def answer(solver: Solver, puzzle: Puzzle, generator: torch.Generator) -> tuple[Step, float]:
    """A solver's last step, and how many seconds it took; it never sees the truth."""
    start, last = time.perf_counter(), None
    for step in solver.steps(puzzle.without_truth(), generator):
        last = step
    if last is None:
        raise RuntimeError(f"solver {solver.name} gave no answer")
    return last, time.perf_counter() - start


def solve_case(solver: Solver, draws: Draws, number: int) -> tuple[Scores, Answer]:
    """Let a solver put together one case, and score its answer."""
    case, generator = draws.case(number)
    step, seconds = answer(solver, case.given, generator)
    shown = replace(case.given, truth=case.puzzle.truth)
    return draws.cell.score(case, step.placements, seconds), Answer(shown, step.placements, (), solver.name, seconds)


Scoring = Callable[[Solver, Draws, Sequence[int]], Iterator[tuple[int, Scores, Answer | None]]]
"""Scores a solver on the cases with these numbers, in any order; answers of other processes stay there."""


def score_here(solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Scores, Answer | None]]:
    """A `Scoring` in this process, one case after the other."""
    for number in numbers:
        yield number, *solve_case(solver, draws, number)


class Journal:
    """Scores as they come, one line of JSON each, by solver, its settings and case; a sweep that was killed goes on.

    `settings` are by solver. A line that was being written when the program died is dropped.
    """

    def __init__(self, path: Path, settings: Mapping[str, Identity]) -> None:
        self.path, self.settings = path, settings
        self.known = {json.dumps(entry, sort_keys=True): scores for entry, scores in self._read()}

    def look_up(self, solver: str, case: Identity) -> Scores | None:
        """The score of this case, if it was solved with the same settings before."""
        return self.known.get(self._key(solver, case))

    def note(self, solver: str, case: Identity, scores: Scores) -> None:
        """Add a line, which is on the disk when this returns."""
        key = self._key(solver, case)
        self.known[key] = scores
        line = json.dumps({**json.loads(key), "score": {view: asdict(one) for view, one in scores.items()}}) + "\n"
        try:
            with self.path.open("a") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({reason(error)}); the scores so far are kept") from error

    def _key(self, solver: str, case: Identity) -> str:
        # An endless budget is no number of JSON's.
        given = {name: "endless" if value == float("inf") else value for name, value in self.settings[solver].items()}
        return json.dumps({"solver": solver, "settings": given, "puzzle": dict(case)}, sort_keys=True)

    def _read(self) -> Iterator[tuple[dict[str, Any], Scores]]:
        """Solver, settings and case of every whole line, and its scores."""
        check_file(self.path, lambda content: True, overwrite=True)
        text = read_bytes(self.path, "file of scores") if self.path.exists() and self.path.stat().st_size else b""
        whole = text[: text.rfind(b"\n") + 1]
        rest = text[len(whole) :]
        if rest[: len(_LINE)] != _LINE[: len(rest)]:
            raise InputError(f"{self.path}: its last line is no score; pass another --scores file")
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = parse_json(line, "", "")
                scores = read_scores(entry.pop("score"))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{self.path}, line {number}: is no score; pass another --scores file") from error
            yield entry, scores
        if whole != text:
            os.truncate(self.path, len(whole))


@dataclass(frozen=True)
class Sweep:
    """Every solver on the cases of every cell.

    `scoring` solves them, if not this process; what is in the `journal` is not solved again.
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
    scores: Scores
    assembly: Answer | None

    @property
    def score(self) -> Score:
        """The score under the last view of the cell."""
        return self.scores[self.cell.views[-1]]


def run_sweep(sweep: Sweep, report: Callable[[Solved], None] = lambda solved: None) -> Iterator[Row]:
    """Measure cell by cell, the solvers side by side on each; `report` is called with every case.

    All draws are checked before the first case is solved.
    """
    for draws in sweep.draws:
        draws.check()
    for draws, solver in product(sweep.draws, sweep.solvers):
        found = dict[int, Scores]()
        for number, scores, assembly in _scores(solver, draws, sweep.scoring or score_here, sweep.journal):
            found[number] = scores
            report(Solved(draws.cell, solver.name, scores, assembly))
        every = [found[number] for number in range(len(draws))]
        by_seed = [every[start : start + draws.taken] for start in range(0, len(every), draws.taken)]
        yield from make_rows(draws.cell, solver.name, draws.seed, by_seed)


def warm_up(sweep: Sweep) -> None:
    """Let every solver answer the first case, so that what it compiles or loads at first is not measured."""
    for solver in sweep.solvers:
        solve_case(solver, sweep.draws[0], 0)


def _scores(
    solver: Solver, draws: Draws, scoring: Scoring, journal: Journal | None
) -> Iterator[tuple[int, Scores, Answer | None]]:
    """The scores of all cases, each with its number: first those in the journal."""
    todo = []
    for number in range(len(draws)):
        known = None if journal is None else journal.look_up(solver.name, draws.identity(number))
        if known is None:
            todo.append(number)
        else:
            yield number, known, None
    for number, scores, assembly in scoring(solver, draws, todo):
        if journal is not None:
            journal.note(solver.name, draws.identity(number), scores)
        yield number, scores, assembly


def peak_megabytes(usage: resource.struct_rusage | None = None) -> float:
    """Highest resident memory of this process so far, or by the usage of another, in MB (10⁶ bytes)."""
    resident = (usage or resource.getrusage(resource.RUSAGE_SELF)).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return resident / 1e6 if sys.platform == "darwin" else resident * 1024 / 1e6
