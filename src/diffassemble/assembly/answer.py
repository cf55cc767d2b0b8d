"""Answers: final poses with their confidences, and the loop that drains a solver's steps into one."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.assembly.corrections import CORRECTION, CorrectionConfig, JoinEvidence, corrected_placements
from diffassemble.assembly.locks import hold, moved_to_locks
from diffassemble.core.matches import Matches
from diffassemble.core.placements import STATUSES, Placements
from diffassemble.core.poses import Poses, turn_matrix
from diffassemble.core.puzzle import Locks, Puzzle
from diffassemble.core.seeds import check_seed
from diffassemble.core.solver import Solver, Step
from diffassemble.core.thresholds import SURE


@dataclass(frozen=True)
class Answer:
    """A solved puzzle.

    Arguments:
        puzzle: what was solved, with what is locked in it.
        placements: pose, confidence, object, cell and reason of every piece.
        joins: evidence for what a person placed: the matches that it realises, where the matches are known.
        history: poses of all steps of the solver.
        solver: its name.
        seconds: how long it took.
        extra: names of pieces that were given but do not belong to the puzzle.
    """

    puzzle: Puzzle
    placements: Placements
    history: tuple[Poses, ...] = ()
    solver: str = "by hand"
    seconds: float = 0.0
    extra: tuple[str, ...] = ()
    joins: tuple[JoinEvidence, ...] = ()
    drawn_by: ClassVar[Callable[[Answer], bytes] | None] = None

    def __repr__(self) -> str:
        """A line; the numbers are in the fields."""
        sure = int((self.confidence >= SURE).sum())
        return f"Answer({len(self.puzzle)} {self.puzzle.pieces.called} by {self.solver!r}, {sure} sure)"

    def _repr_png_(self) -> bytes | None:
        """A picture of the assembly for notebooks; none unless `diffassemble.rendering` is loaded."""
        return None if Answer.drawn_by is None else Answer.drawn_by(self)

    def _repr_html_(self) -> str | None:
        """The same, and below it how many pieces are sure, likely, guessed or unplaced."""
        if (picture := self._repr_png_()) is None:
            return None
        found = self.status
        counts = ", ".join(f"{found.count(status)} {status}" for status in STATUSES if status in found)
        words = escape(
            f"{len(self.puzzle)} {self.puzzle.pieces.called} by {self.solver}, {self.seconds:.1f} s: {counts}"
        )
        shown = f'<img src="data:image/png;base64,{b64encode(picture).decode()}" alt="{words}">'
        return f"<figure>{shown}<figcaption>{words}</figcaption></figure>"

    @property
    def poses(self) -> Poses:
        """Where the pieces are."""
        return self.placements.poses

    @property
    def confidence(self) -> Float[Tensor, "n"]:
        """How sure the place of each piece is, 0…1."""
        return self.placements.confidence

    @property
    def objects(self) -> Int[Tensor, "n"] | None:
        """The object of each piece, −1 for unplaced ones, where the solver may find several."""
        return self.placements.objects

    @property
    def notes(self) -> tuple[str, ...] | None:
        """Why each piece is not surer, or is unplaced."""
        return self.placements.notes

    @property
    def cells(self) -> Int[Tensor, "n 2"] | None:
        """Row and column of each piece in the lattice of its object, −1 for those in none."""
        return self.placements.cells

    @property
    def upright(self) -> float | None:
        """Probability that the whole is the right way up."""
        return self.placements.upright

    @property
    def status(self) -> tuple[str, ...]:
        """The status of each piece: sure, likely, guessed, unplaced or placed by a person."""
        return self.placements.status

    def with_placements(self, **changes: Any) -> Answer:
        """The same answer with some fields of its placements replaced."""
        return replace(self, placements=replace(self.placements, **changes))

    @property
    def grids(self) -> dict[int, tuple[int, int]]:
        """Rows and columns of the lattices that were found, by the number of the object."""
        cells, numbers = self.placements.cells, self.placements.numbers
        if cells is None:
            return {}
        return {
            number: (int(inside[:, 0].max()) + 1, int(inside[:, 1].max()) + 1)
            for number in numbers.unique().tolist()
            if len(inside := cells[(numbers == number) & (cells[:, 0] >= 0)])
        }

    def corrected(
        self,
        moves: Poses | None = None,
        locks: Locks | None = None,
        matches: Matches | None = None,
        config: CorrectionConfig = CORRECTION,
    ) -> Answer:
        """The answer with a person's corrections: what is moved or locked counts as placed by that person.

        Arguments:
            moves: poses of all pieces; those that differ from the answer's were moved.
            locks: pieces that the person locked, which the new answer's puzzle locks.
            matches: candidate matches of the puzzle; those that the corrected pieces realise become `joins`.
            config: how near pieces must be to belong together.
        """
        placements, joins = corrected_placements(self.puzzle, self.placements, moves, locks, matches, config)
        return replace(self, puzzle=replace(self.puzzle, locks=locks), placements=placements, joins=joins)

    def turned(self, degrees: int) -> Answer:
        """The whole turned clockwise, with what is locked and the way there; flat pieces, by quarters.

        On a board that changes its shape the truth, which belongs to the other one, is left out, and so is the
        probability of being upright: a person has decided that.
        """
        self.puzzle.check_turn(degrees)
        puzzle, by, lattice = self.puzzle, degrees // 90, self.puzzle.lattice
        if lattice is not None and by % 2:
            lattice = replace(lattice, rows=lattice.cols, cols=lattice.rows)
        turn = turn_matrix(torch.tensor(by))

        def moved(poses: Poses) -> Poses:
            return Poses(turn @ poses.rotation, poses.translation @ turn.T)

        locks = None if puzzle.locks is None else replace(puzzle.locks, poses=moved(puzzle.locks.poses))
        truth = puzzle.truth if lattice == puzzle.lattice else None
        puzzle = replace(puzzle, lattice=lattice, locks=locks, truth=truth)
        history = tuple(moved(poses) for poses in self.history)
        own = self.placements
        cells = None if own.cells is None else turned_cells(own.cells, own.numbers, by)
        placements = replace(own, poses=moved(own.poses), cells=cells, upright=None)
        return replace(self, puzzle=puzzle, placements=placements, history=history)


def turned_cells(cells: Int[Tensor, "n 2"], objects: Int[Tensor, "n"], turns: int) -> Int[Tensor, "n 2"]:
    """Rows and columns of pieces once all wholes were turned clockwise by so many quarters; −1 stays."""
    found = cells.clone()
    for number in objects.unique().tolist():
        inside = (objects == number) & (cells[:, 0] >= 0)
        for _ in range(turns % 4 if bool(inside.any()) else 0):
            rows, cols = found[inside].unbind(1)
            found[inside] = torch.stack([cols, rows.max() - rows], 1)
    return found


def held_steps(puzzle: Puzzle, steps: Iterator[Step]) -> Iterator[Step]:
    """The same steps with the locked pieces in their places; in the last one no two pieces share a cell."""
    locks, lattice, last = puzzle.locks, None if puzzle.lattice is None else puzzle.board, None
    if locks is None:
        yield from steps
        return
    for last in steps:
        yield last.with_poses(locks.applied(last.poses))
    if last is not None and lattice is None:
        yield last.with_poses(locks.applied(moved_to_locks(last.poses, locks)))
    elif last is not None and lattice is not None:
        yield last.with_poses(lattice.poses(*hold(lattice.snap(last.poses), lattice, locks)))


def assemble(puzzle: Puzzle, solver: Solver, seed: int = 0, on_step: Callable[[Step], None] | None = None) -> Answer:
    """Run a solver to its end; `on_step` sees every step as it comes. The solver never sees the truth.

    Locked pieces keep their places, whatever the solver answers.
    """
    check_seed(seed)
    began = time.monotonic()
    history = []
    step = None
    for step in held_steps(puzzle, solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(seed))):
        history.append(step.poses)
        if on_step is not None:
            on_step(step)
    assert step is not None, f"{solver.name} yielded no step"
    answer = Answer(puzzle, step.placements, tuple(history), solver.name, time.monotonic() - began)
    return answer if puzzle.locks is None else answer.corrected(locks=puzzle.locks)
