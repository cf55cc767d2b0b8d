"""Where all pieces are, which are locked, and the answer that they come from: every correction gives a new one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool
from torch import Tensor

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.layout import on_table
from diffassemble.core import Locks, Matches, Placements, Poses, Puzzle
from diffassemble.core.poses import plane_rotations
from diffassemble.rendering.flat import Sheet
from diffassemble.rendering.picture import STYLE


@dataclass(frozen=True)
class Arrangement:
    """The pieces of a puzzle at their places; `answer` is the last one of a solver, before corrections, if any."""

    puzzle: Puzzle
    poses: Poses
    locked: Bool[Tensor, "n"]
    answer: Answer | None = None

    @staticmethod
    def given(puzzle: Puzzle) -> Arrangement:
        """The pieces as they were given, side by side; locked ones at their places."""
        if puzzle.locks is None:
            return Arrangement(puzzle, laid_out(puzzle), torch.zeros(len(puzzle), dtype=torch.bool))
        return Arrangement(puzzle, puzzle.locks.applied(laid_out(puzzle)), puzzle.locks.held)

    @staticmethod
    def of(answer: Answer) -> Arrangement:
        """An answer as the solver gave it."""
        held = None if answer.puzzle.locks is None else answer.puzzle.locks.held
        locked = torch.zeros(len(answer.puzzle), dtype=torch.bool) if held is None else held
        return Arrangement(replace(answer.puzzle, locks=None), answer.poses, locked, answer)

    @property
    def locks(self) -> Locks | None:
        """The locks for a solver; none if no piece is locked."""
        return Locks(self.locked, self.poses) if bool(self.locked.any()) else None

    @property
    def moved_by_hand(self) -> list[int]:
        """The pieces that are elsewhere than the answer has them."""
        if self.answer is None:
            return []
        there = self.answer.poses
        apart = (self.poses.translation - there.translation).abs().amax(1)
        turned = (self.poses.rotation - there.rotation).abs().amax((1, 2))
        return ((apart > 1e-4) | (turned > 1e-4)).nonzero().flatten().tolist()

    def corrected(self, matches: Matches | None = None) -> Answer | None:
        """The answer with all corrections, as it is scored and downloaded; `matches` are evidence for new places."""
        if self.answer is None:
            return None
        return replace(self.answer, puzzle=self.puzzle).corrected(self.poses, self.locks, matches)

    def moved(self, numbers: Sequence[int], to: Poses) -> Arrangement:
        """Some pieces put elsewhere; on a board they snap to cells, whose pieces take the cells left free.

        Nothing changes if one of them, or of those that would have to make room, is locked, or if they do not fit.
        """
        if any(bool(self.locked[number]) for number in numbers):
            return self
        if self.puzzle.lattice is not None:
            return self._moved_on_board(numbers, to)
        rotation, place = self.poses.rotation.clone(), self.poses.translation.clone()
        rotation[list(numbers)], place[list(numbers)] = to.rotation, to.translation
        return replace(self, poses=Poses(rotation, place))

    def _moved_on_board(self, numbers: Sequence[int], to: Poses) -> Arrangement:
        board = self.puzzle.board
        cells, turns = (values.clone() for values in board.snap(self.poses))
        wanted, turned = board.snap(to)
        if len(set(wanted.tolist())) < len(numbers):
            return self
        others = [other for other in range(len(cells)) if other not in set(numbers)]
        displaced = [other for other in others if int(cells[other]) in set(wanted.tolist())]
        if any(bool(self.locked[other]) for other in displaced):
            return self
        free = [int(cells[number]) for number in numbers if int(cells[number]) not in set(wanted.tolist())]
        # Several pieces may be in one cell before they are solved; then they stay together.
        for index, other in enumerate(displaced):
            cells[other] = free[min(index, len(free) - 1)]
        cells[list(numbers)], turns[list(numbers)] = wanted, turned
        return replace(self, poses=board.poses(cells, turns))

    def turned(self, numbers: Sequence[int], back: bool = False) -> Arrangement:
        """Some pieces of a flat puzzle turned clockwise or back, on a board each in its cell, else about their middle.

        By a quarter on a board, half a turn if pieces are oblong, 15° elsewhere.
        """
        lattice = self.puzzle.lattice
        usual = 15.0 if lattice is None else 180.0 if self.puzzle.board.oblong else 90.0
        turn = plane_rotations(torch.tensor([math.radians(-usual if back else usual)]))[0]
        poses = self.poses[list(numbers)]
        middle = poses.translation if lattice is not None else poses.translation.mean(0, keepdim=True)
        places = (poses.translation - middle) @ turn.T + middle
        return self.moved(numbers, Poses(turn @ poses.rotation, places))

    def with_lock(self, numbers: Sequence[int], on: bool) -> Arrangement:
        """Some pieces locked where they are, or unlocked."""
        locked = self.locked.clone()
        locked[list(numbers)] = on
        return replace(self, locked=locked)

    def whole_turned(self, degrees: int) -> Arrangement:
        """All pieces of a flat puzzle turned clockwise together, with the answer they come from."""
        around = self.corrected() or Answer(self.puzzle, Placements(self.poses, torch.zeros(len(self.puzzle))))
        whole = replace(around, puzzle=replace(self.puzzle, locks=self.locks)).turned(degrees)
        answer = None if self.answer is None else self.answer.turned(degrees)
        return Arrangement(replace(whole.puzzle, locks=None), whole.poses, self.locked, answer)


def laid_out(puzzle: Puzzle) -> Poses:
    """Pieces in the order given, as they are, side by side: on the cells of the board, or in rows."""
    if puzzle.lattice is not None:
        order = torch.arange(len(puzzle))
        return puzzle.board.poses(order % puzzle.board.cells, torch.zeros_like(order))
    if puzzle.pieces.flat:
        return Sheet(puzzle).laid_out()
    points = puzzle.fragments.points.double().numpy()
    low, high = points.min(1), points.max(1)
    shift = on_table(low, high, STYLE.room * float((high - low).mean()))
    return Poses(Poses.identity(len(puzzle), 3).rotation, torch.from_numpy(shift).float())
