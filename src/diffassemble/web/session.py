"""One browser's session: its puzzle, its answers, its work in progress. No other browser sees them."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import viser
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import Assembly, Board, InputError, Locks, Pieces, Poses, Puzzle, Solver, Step
from diffassemble.files.archives import pack
from diffassemble.files.assemblies import write_assembly
from diffassemble.rendering.report import report_html
from diffassemble.web.inspection import time_left, verdict
from diffassemble.web.jobs import Job
from diffassemble.web.panel import NONE_YET, Panel, pile_text
from diffassemble.web.scene import Stage, laid_out, look_at
from diffassemble.web.uploads import Upload, bring, open_folder

# ----------------------------------------------------------------------------------------------------------------------
# Moving a piece by hand: where it goes, and who makes room.


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


# ----------------------------------------------------------------------------------------------------------------------
# The puzzle on one browser's table: where its pieces stand, which one is in hand, and which are locked.


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


# ----------------------------------------------------------------------------------------------------------------------
# What people take home.


def result_files(assembly: Assembly, folder: Path) -> list[tuple[str, bytes]]:
    """The names and contents of all files of an assembly; `folder` lends room for making them."""
    with TemporaryDirectory(dir=folder) as home:
        target = Path(home) / "result"
        write_assembly(assembly, target, report=report_html(assembly))
        files = sorted(path for path in target.rglob("*") if path.is_file())
        return [(path.relative_to(target).as_posix(), path.read_bytes()) for path in files]


def result_zip(assembly: Assembly, folder: Path) -> bytes:
    """All of it in one zip file."""
    return pack(result_files(assembly, folder))


# ----------------------------------------------------------------------------------------------------------------------
# One browser's visit: its puzzle, its answers, its work in progress. No other browser sees them.


# Seconds for which every step of a solver is shown at least, and every moment while playing; and the rest at its end.
_BLINK, _MOMENT, _REST = 0.05, 0.12, 1.5


class Visit:
    """What one browser does and sees; its folder vanishes with it."""

    def __init__(self, client: viser.ClientHandle, panel: Panel) -> None:
        self.client, self.panel = client, panel
        self._home = TemporaryDirectory(prefix="diffassemble-", ignore_cleanup_errors=True)
        self.folder = Path(self._home.name)
        self.sent = self.folder / "sent"
        self.sent.mkdir()
        self.work: Workpiece | None = None
        self.answers: list[Assembly] = []
        self.shown: Assembly | None = None
        self.job: Job | None = None
        self.playing, self.closed = False, False
        self._starting = threading.Lock()
        threading.Thread(target=self._play, daemon=True).start()

    def receive(self, upload: Upload, kind: str, board: Board | None) -> None:
        """A file came in."""
        self.say(f"reading {upload.name} …")
        puzzle = bring(upload, kind, board, self.seed, self.sent)
        if puzzle is not None:
            self.open(puzzle)
            return
        self._count_sent()
        self.say(f"{upload.name} is there; send the next, or press **Use the pieces sent so far**")

    def use_sent(self, board: Board | None) -> None:
        """All single pieces that were sent become the puzzle."""
        self.open(open_folder(self.sent, board, self.seed))
        self.forget_sent()

    def forget_sent(self) -> None:
        """Begin a new collection of single pieces."""
        for file in self.sent.iterdir():
            file.unlink()
        self._count_sent()

    def _count_sent(self) -> None:
        """Tell which single pieces are there."""
        names = sorted(file.name for file in self.sent.iterdir())
        self.panel.collected.visible = self.panel.restart.visible = bool(names)
        self.panel.pile.content = pile_text(names)

    @property
    def seed(self) -> int:
        return int(self.panel.seed.value)

    def open(self, puzzle: Puzzle) -> None:
        """Put a puzzle on the table."""
        self.playing = False
        before, self.work, self.answers, self.shown = self.work, None, [], None
        self.stop()
        if before is not None:
            before.clear()
        self.panel.answer.options = (NONE_YET,)
        self.panel.answer.value = NONE_YET
        self.work = Workpiece(self.client, self.panel, puzzle, self._touch)
        grid = "" if puzzle.lattice is None else f", grid {puzzle.board.rows}x{puzzle.board.cols}"
        self.say(f"{len(puzzle)} pieces{grid}; press **Solve**")

    def solve(self, make: Callable[[Pieces], Solver], name: str) -> None:
        """Solve in a process of its own, and show every step as it comes."""
        work = self.work
        if work is None:
            raise InputError("there is nothing to solve yet; upload something")
        given = replace(work.puzzle, locks=work.arrangement.locks)
        with self._starting:
            if self.job is not None:
                raise InputError("a solver is at work already; wait for it or cancel it")
            self.job = job = Job(given, make, self.seed)
        self.playing = False
        work.select(None)
        self.panel.cancel.visible, self.panel.solve.disabled = True, True
        began, history, last = time.monotonic(), [], None
        try:
            for last in job.steps():
                history.append(last.poses)
                self._watch(work, last, time.monotonic() - began)
        finally:
            self.stop()
            self._rest(work)
        if work is not self.work:
            return
        if last is None or not job.finished:
            self.say("cancelled")
            return
        sure = torch.ones(len(given)) if last.confidence is None else last.confidence
        self.keep(Assembly(given, last.poses, sure, tuple(history), name, time.monotonic() - began))

    def _watch(self, work: Workpiece, step: Step, seconds: float) -> None:
        if not self.closed and work is self.work:
            work.show(step.poses)
            self.panel.progress.value = 100 * step.done
            self.say(f"solving: {100 * step.done:.0f} %, {time_left(step.done, seconds)}")
            time.sleep(_BLINK)

    def _rest(self, work: Workpiece) -> None:
        if not self.closed:
            if work is self.work:
                work.show(work.arrangement.poses)
            self.panel.cancel.visible, self.panel.solve.disabled, self.panel.progress.value = False, False, 0.0

    def stop(self) -> None:
        """End the work in progress, if there is any."""
        if (job := self.job) is not None:
            job.stop()
            self.job = None

    def keep(self, answer: Assembly) -> None:
        """Add an answer to those that can be compared, and show it."""
        self.answers.append(answer)
        names = tuple(f"{number}: {kept.solver}" for number, kept in enumerate(self.answers, 1))
        self.panel.answer.options = names
        self.panel.answer.value = names[-1]
        self.choose(len(self.answers) - 1)

    def choose(self, number: int) -> None:
        """Show one of the answers."""
        if self.work is None or not 0 <= number < len(self.answers):
            return
        self.shown = answer = self.answers[number]
        locks = answer.puzzle.locks
        arrangement = free(answer.poses)
        self.work.arrange(arrangement if locks is None else replace(arrangement, locked=locks.held))
        self.panel.moment.max = max(1, len(answer.history))
        self.panel.moment.value = len(answer.history)
        self.paint()
        self.say(f"{answer.solver}: {verdict(answer)}; {answer.seconds:.1f} s")

    def look(self, moment: int) -> None:
        """Show one moment of the history; the last one is the answer with its corrections."""
        if self.shown is None or self.work is None or self.job is not None:
            return
        history = self.shown.history
        self.work.show(history[moment] if moment < len(history) else self.work.arrangement.poses)

    def paint(self) -> None:
        """Colours as they are asked for."""
        if self.work is not None:
            wanted = self.panel.confidence.value and self.shown is not None
            self.work.paint(self.shown.confidence if wanted and self.shown is not None else None)

    def corrected(self) -> Assembly:
        """The answer that is shown, with its corrections."""
        if self.shown is None or self.work is None:
            raise InputError("there is no answer yet; press Solve first")
        puzzle = replace(self.shown.puzzle, locks=self.work.arrangement.locks)
        return replace(self.shown, puzzle=puzzle, poses=self.work.arrangement.poses)

    def send(self, names: tuple[str, ...]) -> None:
        """Send the first of these files that there is; none named: all of them in one zip."""
        assembly = self.corrected()
        self.say("packing …")
        if names:
            files = dict(result_files(assembly, self.folder))
            name = next(name for name in names if name in files)
            content = files[name]
        else:
            name, content = "assembly.zip", result_zip(assembly, self.folder)
        self.client.send_file_download(name, content, save_immediately=True)
        self.say(f"{assembly.solver}: {verdict(assembly)}")

    def _touch(self) -> bool:
        """Whether a piece may be taken in hand now; if so, the play ends."""
        self.playing = False
        return self.job is None

    def _play(self) -> None:
        """While playing, go from moment to moment, rest at the end, and begin anew."""
        while not self.closed:
            time.sleep(_MOMENT)
            if not self.playing or self.shown is None or self.job is not None:
                continue
            last = len(self.shown.history)
            now = int(self.panel.moment.value)
            self.panel.moment.value = moment = 0 if now >= last else now + 1
            self.look(moment)
            if moment >= last:
                time.sleep(_REST)

    def say(self, text: str) -> None:
        """Write into the status line."""
        if not self.closed:
            self.panel.status.content = text

    def guarded(self, action: Callable[[], None]) -> None:
        """Do something; what goes wrong is said on the page, and the page lives on."""
        try:
            action()
        except InputError as error:
            self.complain(str(error))
        # The page must survive whatever happens.
        except Exception as error:
            traceback.print_exc()
            self.complain(f"something went wrong: {type(error).__name__}: {error}")

    def complain(self, text: str) -> None:
        """Say what is wrong, where nobody overlooks it."""
        shown = text.replace(f"{self.sent}/", "").replace(f"{self.folder}/", "")
        self.say(f"⚠ {shown}")
        if not self.closed:
            self.client.add_notification("That did not work", shown, auto_close_seconds=15, color="red")

    def close(self) -> None:
        """The browser has gone: end its work and take its folder away."""
        self.closed = True
        self.stop()
        self._home.cleanup()
