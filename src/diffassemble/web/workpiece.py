"""The puzzle on one browser's table: where its pieces stand, which one is in hand, and which are locked."""

from __future__ import annotations

import threading
from collections.abc import Callable

import viser
from jaxtyping import Float
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.puzzle import Puzzle
from diffassemble.web.correcting import Arrangement, free
from diffassemble.web.panel import Panel
from diffassemble.web.stage import Stage, laid_out, look_at

_INVITATION = "Click a piece to move, turn or lock it."


class Workpiece:
    """A puzzle that can be touched; `on_touch` is told before a piece is taken in hand."""

    def __init__(self, client: viser.ClientHandle, panel: Panel, puzzle: Puzzle, on_touch: Callable[[], bool]) -> None:
        self.puzzle, self.panel, self.on_touch = puzzle, panel, on_touch
        self.arrangement = free(laid_out(puzzle))
        self.confidence: Float[Tensor, "n"] | None = None
        self.selected: int | None = None
        self._earlier: list[Arrangement] = []
        self._handles: viser.TransformControlsHandle | None = None
        self._guard = threading.RLock()
        self.stage = Stage(client.scene, puzzle, self.pick)
        look_at(client, puzzle)
        self.arrange(self.arrangement)

    def clear(self) -> None:
        """Take everything off the table."""
        with self._guard:
            self.select(None)
            self.stage.clear()

    def arrange(self, arrangement: Arrangement, forget: bool = True) -> None:
        """Put all pieces somewhere; what was before is forgotten unless this is a correction."""
        with self._guard:
            if forget:
                self._earlier.clear()
            self.arrangement = arrangement
            self.panel.undo.disabled = not self._earlier
            self.stage.show(arrangement.poses)
            self.select(self.selected)

    def show(self, poses: Poses) -> None:
        """Show other poses for a moment."""
        with self._guard:
            self.stage.show(poses)

    def paint(self, confidence: Float[Tensor, "n"] | None) -> None:
        """Colour by confidence, or not."""
        with self._guard:
            self.confidence = confidence
            self.stage.paint(confidence, self.arrangement.locked, self.selected)

    def pick(self, number: int) -> None:
        """A piece was clicked: take it in hand, if now is the time."""
        if self.on_touch():
            self.stage.show(self.arrangement.poses)
            self.select(number)

    def select(self, number: int | None) -> None:
        """Take a piece in hand, or none."""
        with self._guard:
            self.selected = number
            if self._handles is not None:
                self._handles.remove()
                self._handles = None
            self.panel.lock.disabled = self.panel.turn.disabled = number is None
            self.panel.piece.content = _INVITATION if number is None else self._describe(number)
            if number is not None and not bool(self.arrangement.locked[number]):
                self._handles = self.stage.handles(number)
                self._handles.on_update(lambda event: self._drag(number, event.phase))
            self.paint(self.confidence)

    def turn(self) -> None:
        """Turn the piece in hand by a quarter turn."""
        if (number := self.selected) is not None:
            self._change(self.arrangement.turned(number, self.puzzle))

    def lock(self) -> None:
        """Lock the piece in hand, or let it go."""
        if (number := self.selected) is not None:
            self._change(self.arrangement.with_lock(number, not bool(self.arrangement.locked[number])))

    def undo(self) -> None:
        """Take the last correction back."""
        with self._guard:
            if self._earlier:
                self.arrange(self._earlier.pop(), forget=False)

    def _drag(self, number: int, phase: str) -> None:
        with self._guard:
            if self._handles is None or self.selected != number:
                return
            pose = self.stage.follow(number, self._handles)
            if phase == "end":
                self._change(self.arrangement.moved(number, pose, self.puzzle))

    def _change(self, corrected: Arrangement) -> None:
        with self._guard:
            self._earlier.append(self.arrangement)
            self.arrange(corrected, forget=False)

    def _describe(self, number: int) -> str:
        where = ""
        if self.puzzle.lattice is not None:
            cells, turns = self.puzzle.board.snap(self.arrangement.poses)
            row, col = divmod(int(cells[number]), self.puzzle.board.cols)
            where = f" at row {row}, column {col}, turn {int(turns[number])}"
        state = "locked" if bool(self.arrangement.locked[number]) else "free"
        return f"**{self.puzzle.names[number]}**{where}, {state}. Drag its handles, or use the buttons."
