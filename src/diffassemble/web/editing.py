"""Moving, turning and locking pieces by hand: an arrangement of all pieces, and the editor that changes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import viser
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import Locks, Poses, Puzzle
from diffassemble.web.panel import SELECT_HINT, Panel
from diffassemble.web.scene import PuzzleScene, laid_out, look_at


@dataclass(frozen=True)
class Arrangement:
    """Where all pieces stand, and which of them are locked there."""

    poses: Poses
    locked: Bool[Tensor, "n"]

    @staticmethod
    def unlocked(poses: Poses) -> Arrangement:
        """Pieces of which none is locked."""
        return Arrangement(poses, torch.zeros(len(poses), dtype=torch.bool))

    def moved(self, number: int, to: Poses, puzzle: Puzzle) -> Arrangement:
        """One piece put elsewhere; on a board it snaps to a cell, and the piece there takes its former cell.

        Nothing changes if the piece itself or the one in that cell is locked.
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

    def turned(self, number: int, puzzle: Puzzle) -> Arrangement:
        """One piece turned by a clockwise quarter turn; in space about the vertical."""
        turn = torch.eye(self.poses.rotation.shape[-1])
        turn[:2, :2] = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
        rotation = turn @ self.poses.rotation[number]
        return self.moved(number, Poses(rotation[None], self.poses.translation[number][None]), puzzle)

    def with_lock(self, number: int, on: bool) -> Arrangement:
        """One piece locked where it stands, or unlocked."""
        locked = self.locked.clone()
        locked[number] = on
        return replace(self, locked=locked)

    @property
    def locks(self) -> Locks | None:
        """The locks for a solver; none if no piece is locked."""
        return Locks(self.locked, self.poses) if bool(self.locked.any()) else None


class Editor:
    """One browser's puzzle: shows its arrangement, and changes it by clicks, handles and buttons.

    `ready` tells whether a click may select a piece now. Callbacks come from several threads, hence the lock.
    """

    def __init__(self, client: viser.ClientHandle, panel: Panel, puzzle: Puzzle, ready: Callable[[], bool]) -> None:
        self.puzzle, self.panel, self._ready = puzzle, panel, ready
        self.arrangement = Arrangement.unlocked(laid_out(puzzle))
        self.confidence: Float[Tensor, "n"] | None = None
        self.selected: int | None = None
        self._earlier: list[Arrangement] = []
        self._handles: viser.TransformControlsHandle | None = None
        self._lock = threading.RLock()
        self.scene = PuzzleScene(client.scene, puzzle, self.click)
        look_at(client, puzzle)
        self.arrange(self.arrangement)

    def clear(self) -> None:
        """Remove everything from the scene."""
        with self._lock:
            self.select(None)
            self.scene.clear()

    def arrange(self, arrangement: Arrangement, keep_history: bool = False) -> None:
        """Put all pieces somewhere; only corrections keep the history that `undo` goes back in."""
        with self._lock:
            if not keep_history:
                self._earlier.clear()
            self.arrangement = arrangement
            self.panel.undo.disabled = not self._earlier
            self.scene.show(arrangement.poses)
            self.select(self.selected)

    def show(self, poses: Poses) -> None:
        """Show other poses, without changing the arrangement."""
        with self._lock:
            self.scene.show(poses)

    def colour(self, confidence: Float[Tensor, "n"] | None) -> None:
        """Colour pieces by confidence, or show them as they are."""
        with self._lock:
            self.confidence = confidence
            self.scene.colour(confidence, self.arrangement.locked, self.selected)

    def click(self, number: int) -> None:
        """A piece was clicked."""
        if self._ready():
            self.scene.show(self.arrangement.poses)
            self.select(number)

    def select(self, number: int | None) -> None:
        """Select a piece, which gets handles unless it is locked, or none."""
        with self._lock:
            self.selected = number
            if self._handles is not None:
                self._handles.remove()
                self._handles = None
            self.panel.lock.disabled = self.panel.turn.disabled = number is None
            self.panel.piece.content = SELECT_HINT if number is None else self._describe(number)
            if number is not None and not bool(self.arrangement.locked[number]):
                self._handles = self.scene.handles(number)
                self._handles.on_update(lambda event: self._drag(number, event.phase))
            self.colour(self.confidence)

    def turn(self) -> None:
        """Turn the selected piece by a quarter turn."""
        if (number := self.selected) is not None:
            self._change(self.arrangement.turned(number, self.puzzle))

    def lock(self) -> None:
        """Lock or unlock the selected piece."""
        if (number := self.selected) is not None:
            self._change(self.arrangement.with_lock(number, not bool(self.arrangement.locked[number])))

    def undo(self) -> None:
        """Take the last correction back."""
        with self._lock:
            if self._earlier:
                self.arrange(self._earlier.pop(), keep_history=True)

    def _drag(self, number: int, phase: str) -> None:
        with self._lock:
            if self._handles is None or self.selected != number:
                return
            pose = self.scene.follow(number, self._handles)
            if phase == "end":
                self._change(self.arrangement.moved(number, pose, self.puzzle))

    def _change(self, corrected: Arrangement) -> None:
        with self._lock:
            self._earlier.append(self.arrangement)
            self.arrange(corrected, keep_history=True)

    def _describe(self, number: int) -> str:
        where = ""
        if self.puzzle.lattice is not None:
            cells, turns = self.puzzle.board.snap(self.arrangement.poses)
            row, col = divmod(int(cells[number]), self.puzzle.board.cols)
            where = f" at row {row}, column {col}, turn {int(turns[number])}"
        state = "locked" if bool(self.arrangement.locked[number]) else "free"
        return f"**{self.puzzle.names[number]}**{where}, {state}. Drag its handles, or use the buttons."
