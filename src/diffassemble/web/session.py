"""One browser's session: its puzzle, its answers, its work in progress. No other browser sees them."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import viser

from diffassemble.core import Assembly, Board, InputError, Puzzle, Solver, Step
from diffassemble.core.kind import SolverOptions
from diffassemble.core.solver import assemble
from diffassemble.files.documents import parse_grid
from diffassemble.files.puzzles import open_input
from diffassemble.kinds import kind_of
from diffassemble.rendering.report import account
from diffassemble.web.editing import Arrangement, Editor
from diffassemble.web.jobs import Cancelled, Job
from diffassemble.web.panel import DEFAULT, NO_ANSWER, Panel, collected_text
from diffassemble.web.scene import look_at
from diffassemble.web.transfers import download, read_upload

MakeSolver = Callable[..., Solver]
# Seconds for which each step is shown at least while solving and while playing, and the pause at the end of playing.
_SOLVING_STEP, _PLAYING_STEP, _PAUSE = 0.05, 0.12, 1.5


class Session:
    """What one browser does and sees; its temporary folder goes with it.

    `collected` holds single pieces that were uploaded and are no puzzle yet; `shown` is the answer in the scene, and
    `editor` has its corrections.
    """

    def __init__(self, client: viser.ClientHandle, panel: Panel, make: MakeSolver) -> None:
        self.client, self.panel, self._make = client, panel, make
        self._home = TemporaryDirectory(prefix="diffassemble-", ignore_cleanup_errors=True)
        self.folder = Path(self._home.name)
        self.collected = self.folder / "collected"
        self.collected.mkdir()
        self.editor: Editor | None = None
        self.answers: list[Assembly] = []
        self.shown: Assembly | None = None
        self.job: Job | None = None
        self.playing, self.closed = False, False
        self._starting = threading.Lock()
        threading.Thread(target=self._play, daemon=True).start()

    @property
    def seed(self) -> int:
        return int(self.panel.seed.value)

    @property
    def board(self) -> Board | None:
        text = str(self.panel.grid.value).strip()
        return parse_grid(text) if text else None

    def begin(self, first: Puzzle | Assembly) -> None:
        """Show what there is at the beginning; an answer plays."""
        self.open(first if isinstance(first, Puzzle) else first.puzzle)
        if isinstance(first, Assembly):
            self.keep(first)
            self.playing = True

    def receive(self) -> None:
        """Open the puzzle that was uploaded, or keep the piece that was uploaded for later."""
        upload = self.panel.upload.value
        self.set_status(f"reading {upload.name} …")
        puzzle = read_upload(upload, str(self.panel.kind.value), self.board, self.seed, self.collected)
        if puzzle is not None:
            self.open(puzzle)
            return
        self._list_collected()
        self.set_status(f"{upload.name} is there; send the next, or press **Use the pieces sent so far**")

    def use_collected(self) -> None:
        """Open all collected pieces as a puzzle."""
        self.open(open_input(self.collected, self.board, seed=self.seed))
        self.discard_collected()

    def discard_collected(self) -> None:
        """Begin a new collection of single pieces."""
        for file in self.collected.iterdir():
            file.unlink()
        self._list_collected()

    def _list_collected(self) -> None:
        names = sorted(file.name for file in self.collected.iterdir())
        self.panel.use_collected.visible = self.panel.discard_collected.visible = bool(names)
        self.panel.collected.content = collected_text(names)

    def open(self, puzzle: Puzzle) -> None:
        """Show a puzzle instead of the one before."""
        self.playing = False
        before, self.editor, self.answers, self.shown = self.editor, None, [], None
        self.stop()
        if before is not None:
            before.clear()
        self.panel.answer.options = (NO_ANSWER,)
        self.panel.answer.value = NO_ANSWER
        self.editor = Editor(self.client, self.panel, puzzle, self._may_select)
        grid = "" if puzzle.lattice is None else f", grid {puzzle.board.rows}x{puzzle.board.cols}"
        self.set_status(f"{len(puzzle)} pieces{grid}; press **Solve**")

    def solve(self) -> None:
        """Solve in a process of its own, and show every step as it comes."""
        editor = self.editor
        if editor is None:
            raise InputError("there is nothing to solve yet; upload something")
        puzzle = replace(editor.puzzle, locks=editor.arrangement.locks)
        with self._starting:
            if self.job is not None:
                raise InputError("a solver is at work already; wait for it or cancel it")
            panel = self.panel
            name, model = (None if one.value == DEFAULT else str(one.value) for one in (panel.solver, panel.model))
            wishes = SolverOptions(model or "", int(panel.samples.value))
            self.job = job = Job(partial(self._make, name=name, options=wishes))
        self.playing = False
        editor.select(None)
        panel.cancel.visible, panel.solve.disabled = True, True
        began, answer = time.monotonic(), None
        try:
            answer = assemble(puzzle, job, self.seed, lambda step: self._watch(editor, step, began))
        except Cancelled:
            self.set_status("cancelled")
        finally:
            self.stop()
            if not self.closed:
                if editor is self.editor:
                    editor.show(editor.arrangement.poses)
                panel.cancel.visible, panel.solve.disabled, panel.progress.value = False, False, 0.0
        if answer is not None and editor is self.editor:
            self.keep(answer)

    def _watch(self, editor: Editor, step: Step, began: float) -> None:
        if not self.closed and editor is self.editor:
            editor.show(step.poses)
            self.panel.progress.value = 100 * step.done
            left = time_left(step.done, time.monotonic() - began)
            self.set_status(f"solving: {100 * step.done:.0f} %, {left}")
            time.sleep(_SOLVING_STEP)

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
        self.choose()

    def choose(self) -> None:
        """Show the answer that the panel names."""
        if self.editor is None or not self.answers:
            return
        self.shown = answer = self.answers[int(str(self.panel.answer.value).split(":")[0]) - 1]
        locks = answer.puzzle.locks
        arrangement = Arrangement.unlocked(answer.poses)
        self.editor.arrange(arrangement if locks is None else replace(arrangement, locked=locks.held))
        self.panel.step.max = max(1, len(answer.history))
        self.panel.step.value = len(answer.history)
        self.colour()
        self.set_status(f"{answer.solver}: {summary(answer)}; {answer.seconds:.1f} s")

    def scrub(self) -> None:
        """Show the step of the history that the panel names."""
        self.playing = False
        self.show_step(int(self.panel.step.value))

    def toggle_playing(self) -> None:
        """Play the history, or pause."""
        self.playing = not self.playing

    def look_straight(self) -> None:
        """Put the camera in front of the puzzle."""
        if self.editor is not None:
            look_at(self.client, self.editor.puzzle)

    def correct(self, correction: Callable[[Editor], None]) -> None:
        """Lock, turn or undo, unless a solver is at work."""
        if self.editor is None or self.job is not None:
            raise InputError("wait until the solver is done, or cancel it")
        correction(self.editor)

    def show_step(self, number: int) -> None:
        """Show one step of the history; the last one is the answer with its corrections."""
        if self.shown is None or self.editor is None or self.job is not None:
            return
        history = self.shown.history
        self.editor.show(history[number] if number < len(history) else self.editor.arrangement.poses)

    def colour(self) -> None:
        """Colour pieces by confidence, if that is asked for."""
        if self.editor is not None:
            wanted = self.shown if self.panel.confidence.value else None
            self.editor.colour(None if wanted is None else wanted.confidence)

    def download(self, wanted: str) -> None:
        """Send a file of the answer that is shown, with its corrections, to the browser."""
        if self.shown is None or self.editor is None:
            raise InputError("there is no answer yet; press Solve first")
        arrangement = self.editor.arrangement
        puzzle = replace(self.shown.puzzle, locks=arrangement.locks)
        # What was told of the whole was told of it as it lay.
        same = torch.equal(arrangement.poses.translation, self.shown.poses.translation)
        same = same and torch.equal(arrangement.poses.rotation, self.shown.poses.rotation)
        upright = self.shown.upright if same else None
        assembly = replace(self.shown, puzzle=puzzle, poses=arrangement.poses, upright=upright)
        self.set_status("packing …")
        name, content = download(assembly, wanted, self.folder)
        self.client.send_file_download(name, content, save_immediately=True)
        self.set_status(f"{assembly.solver}: {summary(assembly)}")

    def _may_select(self) -> bool:
        """Whether a piece may be selected now, which ends playing."""
        self.playing = False
        return self.job is None

    def _play(self) -> None:
        """While playing, go from step to step, pause at the end, and begin again."""
        while not self.closed:
            time.sleep(_PLAYING_STEP)
            if not self.playing or self.shown is None or self.job is not None:
                continue
            last = len(self.shown.history)
            now = int(self.panel.step.value)
            self.panel.step.value = number = 0 if now >= last else now + 1
            self.show_step(number)
            if number >= last:
                time.sleep(_PAUSE)

    def set_status(self, text: str) -> None:
        """Write into the status line."""
        if not self.closed:
            self.panel.status.content = text

    def run(self, action: Callable[[], None]) -> None:
        """Do something; what goes wrong is told on the page, and the session goes on."""
        try:
            action()
        except InputError as error:
            self.tell_error(str(error))
        # The page must survive whatever happens.
        except Exception as error:
            traceback.print_exc()
            self.tell_error(f"something went wrong: {type(error).__name__}: {error}")

    def tell_error(self, text: str) -> None:
        """Tell what is wrong, in the status line and in a notification."""
        shown = text.replace(f"{self.collected}/", "").replace(f"{self.folder}/", "")
        self.set_status(f"⚠ {shown}")
        if not self.closed:
            self.client.add_notification("That did not work", shown, auto_close_seconds=15, color="red")

    def close(self) -> None:
        """End the session's work and delete its folder."""
        self.closed = True
        self.stop()
        self._home.cleanup()


def summary(assembly: Assembly) -> str:
    """How many pieces are right, if the truth is known, else how many are sure."""
    puzzle, count = assembly.puzzle, len(assembly.puzzle)
    sure = int((assembly.confidence >= 0.5).sum())
    doubt = f"{sure} of {count} pieces with a confidence of one half or more"
    doubt = "; ".join([doubt, *(f"{heading}: {words}" for heading, words in account(assembly) if heading == "upright")])
    if puzzle.truth is None:
        return doubt
    kind = kind_of(puzzle)
    right, free = kind.count_right(assembly, puzzle.truth)
    turned = f" ({free} {kind.free})" if free > right else ""
    return f"**{right} of {count} pieces right**{turned}; {doubt}"


def time_left(done: float, seconds: float) -> str:
    """How long it may still take, in words."""
    if done <= 0.02:
        return "working"
    left = seconds / done * (1 - done)
    return f"about {left:.0f} s left" if left < 100 else f"about {left / 60:.0f} min left"
