"""Answers: final poses with their confidences, and the loop that drains a solver's steps into one."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.assembly.locks import hold, moved_to_locks
from diffassemble.core.poses import Poses, turn_matrix
from diffassemble.core.puzzle import Puzzle
from diffassemble.core.seeds import check_seed
from diffassemble.core.solver import Solver, Step
from diffassemble.core.thresholds import LIKELY, SURE

GROUPS = ("sure", "likely", "guessed", "left out")


@dataclass(frozen=True)
class Answer:
    """A solved puzzle: final poses on the board, how sure each is (0…1), and how they got there.

    `extra` names pieces that were given but do not belong to the puzzle; the fields after it are as in `Step`.
    """

    puzzle: Puzzle
    poses: Poses
    confidence: Float[Tensor, "n"]
    history: tuple[Poses, ...]
    solver: str
    seconds: float
    extra: tuple[str, ...] = ()
    objects: tuple[int, ...] | None = None
    upright: float | None = None
    notes: tuple[str, ...] | None = None
    cells: Int[Tensor, "n 2"] | None = None
    drawn_by: ClassVar[Callable[[Answer], bytes] | None] = None

    def __repr__(self) -> str:
        """A line; the numbers are in the fields."""
        sure = int((self.confidence >= SURE).sum())
        return f"Answer({len(self.puzzle)} {self.puzzle.pieces.called} by {self.solver!r}, {sure} sure)"

    def _repr_png_(self) -> bytes | None:
        """What was assembled, which notebooks show, if somebody who can draw it is at hand."""
        return None if Answer.drawn_by is None else Answer.drawn_by(self)

    def _repr_html_(self) -> str | None:
        """The same, and below it how many pieces are sure, likely, guessed or left out."""
        if (picture := self._repr_png_()) is None:
            return None
        groups = self.groups or [group_of(max(sure, 1e-9), 0) for sure in self.confidence.tolist()]
        told = ", ".join(f"{groups.count(group)} {group}" for group in GROUPS if group in groups)
        words = escape(f"{len(self.puzzle)} {self.puzzle.pieces.called} by {self.solver}, {self.seconds:.1f} s: {told}")
        shown = f'<img src="data:image/png;base64,{b64encode(picture).decode()}" alt="{words}">'
        return f"<figure>{shown}<figcaption>{words}</figcaption></figure>"

    @property
    def groups(self) -> tuple[str, ...] | None:
        """Whether each piece is "sure", "likely", "guessed" or "left out", where solvers may leave some out."""
        if self.objects is None:
            return None
        return tuple(group_of(sure, own) for sure, own in zip(self.confidence.tolist(), self.objects, strict=True))

    @property
    def grids(self) -> dict[int, tuple[int, int]]:
        """Rows and columns of the lattices that were found, by the number of the object."""
        if self.cells is None or self.objects is None:
            return {}
        return {
            number: (int(inside[:, 0].max()) + 1, int(inside[:, 1].max()) + 1)
            for number in sorted(set(self.objects))
            if len(inside := self.cells[(torch.tensor(self.objects) == number) & (self.cells[:, 0] >= 0)])
        }

    def turned(self, degrees: int) -> Answer:
        """The whole turned clockwise, with what is locked and the way there; flat pieces, by quarters.

        On a board that changes its shape the truth, which belongs to the other one, is left out. Whoever turns a whole
        has looked at it, so nothing is told any more of which way is up.
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
        poses = moved(self.poses)
        own = torch.tensor(self.objects or [0] * len(puzzle))
        cells = None if self.cells is None else turned_cells(self.cells, own, by)
        return replace(self, puzzle=puzzle, poses=poses, cells=cells, history=history, upright=None)


def turned_cells(cells: Int[Tensor, "n 2"], objects: Int[Tensor, "n"], turns: int) -> Int[Tensor, "n 2"]:
    """Rows and columns of pieces once all wholes were turned clockwise by so many quarters; −1 stays."""
    found = cells.clone()
    for number in objects.unique().tolist():
        inside = (objects == number) & (cells[:, 0] >= 0)
        for _ in range(turns % 4 if bool(inside.any()) else 0):
            rows, cols = found[inside].unbind(1)
            found[inside] = torch.stack([cols, rows.max() - rows], 1)
    return found


def group_of(confidence: float, own: int) -> str:
    """In which group a piece is, by its confidence and its object; a place beside all objects is at best guessed."""
    if confidence <= 0:
        return "left out"
    if own < 0 or confidence < LIKELY:
        return "guessed"
    return "sure" if confidence >= SURE else "likely"


def held_steps(puzzle: Puzzle, steps: Iterator[Step]) -> Iterator[Step]:
    """The same steps with the locked pieces in their places; in the last one no two pieces share a cell."""
    locks, lattice, last = puzzle.locks, None if puzzle.lattice is None else puzzle.board, None
    if locks is None:
        yield from steps
        return
    for last in steps:
        yield replace(last, poses=locks.applied(last.poses))
    if last is not None and lattice is None:
        yield replace(last, poses=locks.applied(moved_to_locks(last.poses, locks)))
    elif last is not None and lattice is not None:
        yield replace(last, poses=lattice.poses(*hold(lattice.snap(last.poses), lattice, locks)))


def assemble(puzzle: Puzzle, solver: Solver, seed: int = 0, on_step: Callable[[Step], None] | None = None) -> Answer:
    """Run a solver to its end; `on_step` sees every step as it comes. The solver never sees the truth.

    Locked pieces stand where they are locked, whatever the solver makes of them.
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
    sure = torch.zeros(len(puzzle)) if step.confidence is None else step.confidence
    seconds = time.monotonic() - began
    objects = None if step.objects is None else tuple(step.objects.tolist())
    told = (objects, step.upright, step.notes, step.cells)
    return Answer(puzzle, step.poses, sure, tuple(history), solver.name, seconds, (), *told)
