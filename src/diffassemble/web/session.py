"""One person's work: a puzzle, its answers and corrections, in a folder of its own, from which it comes back.

Nothing here knows the page, which is updated whenever a session's `version` has changed. The folder holds what was
uploaded and the state as pickles, which only this program writes; no other user may enter it.
"""

from __future__ import annotations

import asyncio
import pickle
import secrets
import shutil
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import SolverOptions
from diffassemble.core import InputError, Matches, Poses, Puzzle, Solver, Step
from diffassemble.io.atomic import write_file
from diffassemble.web import CONFIG
from diffassemble.web.arrangement import Arrangement
from diffassemble.web.jobs import Cancelled, Job, Task
from diffassemble.web.stages import send_matches

MakeSolver = Callable[..., Solver]
_STATE, _PIECES = "state.pickle", "pieces.pickle"


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
    """What one person has and does, however many pages show it.

    `now` is the current arrangement, `past` and `future` are what undo and redo go through, across all solving;
    `made` is the file that was last made to be downloaded.
    """

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
            state = (self.generation, self.settings, self.title, self.found, self.now, self.past, self.future)
            content = BytesIO()
            pickler = _Pickler(content)
            pickler.pieces = self.now.puzzle.pieces
            pickler.dump((*state, self.answers))
            with suppress(InputError):  # a full disk costs the way back, not the work
                write_file(self.folder / _STATE, content.getvalue())

    def restore(self) -> bool:
        """Load the state from the folder; whether there was one."""
        try:
            generation, pieces = pickle.loads((self.folder / _PIECES).read_bytes())
            with (self.folder / _STATE).open("rb") as file:
                unpickler = _Unpickler(file)
                unpickler.pieces = pieces
                state = unpickler.load()
            if state[0] != generation:
                return False
            self.generation, self.settings, self.title, self.found = state[:4]
            self.now, self.past, self.future, self.answers = state[4:]
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


class _Pickler(pickle.Pickler):
    """Writes a reference in place of the pieces."""

    pieces: object = None

    def persistent_id(self, value: Any) -> str | None:
        """What is written for the pieces."""
        return "pieces" if value is self.pieces else None


class _Unpickler(pickle.Unpickler):
    """Replaces references by the pieces."""

    pieces: object = None

    def persistent_load(self, _: Any) -> object:
        """The pieces."""
        return self.pieces


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
