"""Moving a piece by hand: where it goes, and who makes room."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import Locks, Puzzle


@dataclass(frozen=True)
class Arrangement:
    """Where all pieces stand, and which of them are locked there."""

    poses: Poses
    locked: Bool[Tensor, "n"]

    def moved(self, number: int, to: Poses, puzzle: Puzzle) -> Arrangement:
        """One piece put elsewhere; on a board it snaps, and whoever lies there takes its former cell.

        A place that belongs to a locked piece, or a locked piece itself, changes nothing.
        """
        if bool(self.locked[number]):
            return self
        if puzzle.lattice is None:
            rotation, place = self.poses.rotation.clone(), self.poses.translation.clone()
            rotation[number], place[number] = to.rotation[0], to.translation[0]
            return replace(self, poses=Poses(rotation, place))
        cells, turns = (values.clone() for values in puzzle.board.snap(self.poses))
        (cell,), (turn,) = puzzle.board.snap(to)
        there = (cells == cell).nonzero().flatten().tolist()
        if any(bool(self.locked[other]) for other in there):
            return self
        for other in there:
            cells[other] = cells[number]
        cells[number], turns[number] = cell, turn
        return replace(self, poses=puzzle.board.poses(cells, turns))

    def turned(self, number: int, puzzle: Puzzle, by: int = 1) -> Arrangement:
        """One piece turned by clockwise quarter turns; in space about the vertical."""
        turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]]).matrix_power(by % 4)
        own = torch.eye(self.poses.rotation.shape[-1])
        own[:2, :2] = turn
        rotation = own @ self.poses.rotation[number]
        return self.moved(number, Poses(rotation[None], self.poses.translation[number][None]), puzzle)

    def with_lock(self, number: int, on: bool) -> Arrangement:
        """One piece locked where it stands, or let go."""
        locked = self.locked.clone()
        locked[number] = on
        return replace(self, locked=locked)

    @property
    def locks(self) -> Locks | None:
        """For a solver; none if nothing is locked."""
        return Locks(self.locked, self.poses) if bool(self.locked.any()) else None


def free(poses: Poses) -> Arrangement:
    """Pieces of which none is locked."""
    return Arrangement(poses, torch.zeros(len(poses), dtype=torch.bool))
