"""One person's work: a puzzle, its answers and corrections, in a folder of its own, from which it comes back.

Pages are updated whenever a session's `version` has changed. No other user may enter the folder.
"""

from __future__ import annotations

import asyncio
import math
import pickle
import secrets
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from pathlib import Path

import torch
from jaxtyping import Bool
from torch import Tensor

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import SolverOptions
from diffassemble.assembly.layout import on_table
from diffassemble.core import InputError, Locks, Matches, Placements, Poses, Puzzle, Solver, Step
from diffassemble.core.poses import plane_rotations
from diffassemble.io.atomic import write_file
from diffassemble.rendering.flat import Sheet
from diffassemble.rendering.picture import STYLE
from diffassemble.web import CONFIG
from diffassemble.web.jobs import Cancelled, Job, Task
from diffassemble.web.stages import send_matches

MakeSolver = Callable[..., Solver]
_STATE, _PIECES = "state.pickle", "pieces.pickle"
# What of a session is in its folder.
_KEPT = ("generation", "settings", "title", "found", "now", "past", "future", "answers")


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
        locks = answer.puzzle.locks
        locked = torch.zeros(len(answer.puzzle), dtype=torch.bool) if locks is None else locks.held
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
        """Some flat pieces turned: on a board by a quarter (oblong: a half), elsewhere by 15° about their middle."""
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

    def whole_turned(self, degrees: int | None = None) -> Arrangement:
        """All flat pieces turned clockwise together, usually by a quarter, with the answer that they come from."""
        oblong = self.puzzle.lattice is not None and self.puzzle.board.oblong
        degrees = degrees or (180 if oblong else 90)
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


@dataclass
class Settings:
    """How to solve; None is the default for the pieces."""

    solver: str | None = None
    model: str | None = None
    samples: int = 8
    seed: int = 0


@dataclass
class Work:
    """What is being done: in words, since when, how far (0…1), with which poses, and how to end it."""

    words: str
    stop: Callable[[], None]
    began: float = field(default_factory=time.monotonic)
    done: float = 0.0
    poses: Poses | None = None
    found: bytes | None = None


@dataclass(frozen=True)
class Notice:
    """A message that is shown once."""

    number: int
    text: str
    wrong: bool
    picture: bytes | None = None


class Session:
    """What one person has and does: the arrangement `now`, those of undo and redo, answers, and work in progress."""

    def __init__(self, folder: Path, make: MakeSolver) -> None:
        self.folder, self.make = folder, make
        self.settings = Settings()
        self.title = ""
        self.now: Arrangement | None = None
        self.past: list[Arrangement] = []
        self.future: list[Arrangement] = []
        self.answers: list[Answer] = []
        self.found: bytes | None = None
        self.generation = ""
        self.work: Work | None = None
        self.notice: Notice | None = None
        self.made: tuple[str, bytes] | None = None
        self.matches: Matches | None = None
        self._matching: Task | None = None
        self.version = 0
        self.pages = 0
        self.seen = time.monotonic()
        self.lock, self.receiving = threading.RLock(), asyncio.Lock()
        self._notices = 0
        self._corrected: tuple[Arrangement | None, Matches | None, Answer | None] | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def uploads(self) -> Path:
        """Where uploaded files lie that are no puzzle yet."""
        return self.folder / "uploads"

    @property
    def puzzle(self) -> Puzzle | None:
        return None if self.now is None else self.now.puzzle

    @property
    def assembly(self) -> Answer | None:
        """The shown answer with all corrections, if there is one."""
        now, matches = self.now, self.matches
        if self._corrected is None or self._corrected[0] is not now or self._corrected[1] is not matches:
            self._corrected = now, matches, None if now is None else now.corrected(matches)
        return self._corrected[2]

    def changed(self) -> None:
        """Let pages update."""
        self.version += 1

    def notify(self, text: str, wrong: bool = False, picture: bytes | None = None) -> None:
        """Show a message once, on every page, with or without a picture (PNG)."""
        self._notices += 1
        shown = text.replace(f"{self.uploads}/", "").replace(str(self.uploads), "what was sent")
        # Names of files stay as they are.
        shown = shown[:1].upper() + shown[1:] if shown.split(" ")[0].isalpha() else shown
        self.notice = Notice(self._notices, shown, wrong, picture)
        self.changed()

    # What there is to put together.

    def open(self, puzzle: Puzzle, title: str, found: bytes | None = None) -> None:
        """Begin with a puzzle instead of the one before."""
        with self.lock:
            self._stop_matching()
            self.title, self.found, self.answers = title, found, []
            self.now, self.past, self.future = Arrangement.given(puzzle), [], []
            self.generation = secrets.token_hex(4)
            self.make_folder()
            write_file(self.folder / _PIECES, pickle.dumps((self.generation, puzzle.pieces)))
            self.save()

    def begin(self, answer: Answer, title: str) -> None:
        """Begin with a puzzle and its answer."""
        self.open(replace(answer.puzzle, locks=None), title)
        self._keep(answer)

    # Corrections.

    def change(self, arrangement: Arrangement | None) -> None:
        """Put the pieces somewhere else; undo takes it back."""
        with self.lock:
            if arrangement is None or self.now is None or arrangement is self.now:
                self.changed()
                return
            self.past = [*self.past, self.now][-CONFIG.undo :]
            self.now, self.future = arrangement, []
            self.save()

    def correct(self, correction: Callable[[Arrangement], Arrangement]) -> None:
        """Correct the arrangement, unless a solver is at work."""
        if self.work is not None:
            self.notify("Wait until the work is done, or cancel it", wrong=True)
        elif self.now is not None:
            self.change(correction(self.now))

    def undo(self) -> None:
        """Take the last change back, also if it was an answer."""
        self._step_back(self.past, self.future)

    def redo(self) -> None:
        """Make the change again that was taken back last."""
        self._step_back(self.future, self.past)

    def _step_back(self, source: list[Arrangement], target: list[Arrangement]) -> None:
        with self.lock:
            if source and self.now is not None and self.work is None:
                target.append(self.now)
                self.now = source.pop()
                self.save()

    # Work that takes time, each in a thread of the caller.

    def _run(self, words: str, stop: Callable[[], None], action: Callable[[Work], None]) -> None:
        """Do one piece of work at a time; errors become messages, and the session goes on."""
        with self.lock:
            if self.work is not None:
                self.notify("something is being done already; wait for it, or cancel it", wrong=True)
                return
            self.work = work = Work(words, stop)
        self.changed()
        try:
            action(work)
        except Cancelled:
            self.notify("cancelled")
        except InputError as error:
            self.notify(str(error), True, work.found)
        # The page must survive whatever happens.
        except Exception as error:
            traceback.print_exc()
            self.notify(f"something went wrong: {type(error).__name__}: {error}", wrong=True)
        finally:
            self.work = None
            self.changed()

    def read(self, title: str, task: Task) -> None:
        """Open the puzzle that a task reads; what it found in photographs is shown, also if that is refused."""

        def action(work: Work) -> None:
            for name, value in task.messages():
                if name == "found":
                    work.found = value
                elif name == "say":
                    work.words = value
                elif name == "puzzle":
                    self.open(value, title, work.found)
                self.changed()

        self._run(f"Reading {title}", task.stop, action)

    def solve(self) -> None:
        """Solve in a process of its own, and show every step as it comes. One clock runs, from here to the answer."""
        now, wishes = self.now, self.settings
        if now is None:
            self.notify("there is nothing to solve yet; drop files or click a sample", wrong=True)
            return
        options = SolverOptions(wishes.model or "", wishes.samples)
        job = Job(partial(self.make, name=wishes.solver, options=options))

        def action(work: Work) -> None:
            def watch(step: Step) -> None:
                work.poses, work.done = step.poses, step.done
                self.changed()

            try:
                answer = assemble(replace(now.puzzle, locks=now.locks), job, wishes.seed, watch)
            finally:
                job.stop()
            self._keep(replace(answer, seconds=time.monotonic() - work.began))

        self._run("Solving", job.stop, action)

    def find_matches(self) -> None:
        """Find, once, which flat pieces likely touch and how, so that the board can draw them together."""
        with self.lock:
            puzzle = self.puzzle
            if self._matching is not None or puzzle is None or puzzle.lattice is not None or not puzzle.pieces.flat:
                return
            self._matching = task = Task(send_matches, puzzle.without_truth())
        # Without them pieces are only not drawn to each other.
        with suppress(Cancelled, InputError):
            for _, value in task.messages():
                if task is self._matching:
                    self.matches = value
                    self.changed()

    def _stop_matching(self) -> None:
        if self._matching is not None:
            self._matching.stop()
        self._matching, self.matches = None, None

    def stop(self) -> None:
        """End the work in progress, if there is any."""
        self._stop_matching()
        if (work := self.work) is not None:
            work.stop()

    def _keep(self, answer: Answer) -> None:
        with self.lock:
            self.answers.append(answer)
            self.change(Arrangement.of(answer))

    # The folder.

    def make_folder(self) -> None:
        """A session has a folder as soon as there is something to keep."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.uploads.mkdir(exist_ok=True, mode=0o700)

    def save(self) -> None:
        """Write the state; the pieces, which stay the same, lie in a file of their own."""
        with self.lock:
            self.changed()
            if self.now is None:
                return
            content, pieces = BytesIO(), self.now.puzzle.pieces
            pickler = pickle.Pickler(content)
            pickler.persistent_id = lambda value: "pieces" if value is pieces else None  # type: ignore[method-assign]
            pickler.dump({name: getattr(self, name) for name in _KEPT})
            with suppress(InputError):  # a full disk costs the way back, not the work
                write_file(self.folder / _STATE, content.getvalue())

    def restore(self) -> bool:
        """Load the state from the folder; whether there was one."""
        try:
            generation, pieces = pickle.loads((self.folder / _PIECES).read_bytes())
            with (self.folder / _STATE).open("rb") as file:
                unpickler = pickle.Unpickler(file)
                unpickler.persistent_load = lambda _: pieces  # type: ignore[method-assign]
                state = unpickler.load()
            if state["generation"] != generation:
                return False
            vars(self).update(state)
        # Another version may have written it, or it was being written when the machine went down.
        except Exception:
            return False
        return True

    def forget(self) -> None:
        """Remove everything."""
        self.stop()
        with self.lock:
            self.now, self.past, self.future, self.answers, self.found = None, [], [], [], None
            self.title = ""
            shutil.rmtree(self.folder, ignore_errors=True)
            self.changed()


class Sessions:
    """All sessions, in one folder that is the user's own; unused ones are removed after a day."""

    def __init__(self, home: Path, make: MakeSolver) -> None:
        self.home, self.make = home, make
        self.open: dict[str, Session] = {}
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        home.chmod(0o700)
        # Of what was on its way when the last server ended nothing more comes.
        for part in home.glob("*/uploads/*.part"):
            part.unlink(missing_ok=True)
        self.sweep()

    def new(self) -> Session:
        """A session that has no folder yet: that comes with the first thing in it."""
        session = Session(self.home / secrets.token_urlsafe(12), self.make)
        self.open[session.name] = session
        return session

    def find(self, name: str) -> Session | None:
        """The session of that name, from its folder if it is not in memory."""
        if name in self.open:
            return self.open[name]
        # Names are ours: nothing else reaches the file system.
        if not name.replace("-", "").replace("_", "").isalnum() or not (self.home / name).is_dir():
            return None
        session = Session(self.home / name, self.make)
        session.restore()
        self.open[name] = session
        return session

    def retire(self, patience: float) -> None:
        """End the work of sessions that no page showed for so many seconds, and keep them on disk only."""
        for name, session in list(self.open.items()):
            if session.pages == 0 and time.monotonic() - session.seen > patience:
                session.stop()
                self.open.pop(name, None)

    def forget(self, session: Session) -> None:
        """Remove a session and all that it has."""
        session.forget()
        self.open.pop(session.name, None)

    def sweep(self) -> None:
        """Remove the folders that nothing was written to for a day, and those without anything in them."""
        for folder in self.home.iterdir():
            with suppress(OSError):
                if folder.is_dir() and folder.name not in self.open:
                    newest = max((path.stat().st_mtime for path in folder.rglob("*")), default=0.0)
                    if time.time() - newest > CONFIG.keep:
                        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """End all work; the folders stay."""
        for session in self.open.values():
            session.stop()
