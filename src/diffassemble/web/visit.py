"""One browser's state: its puzzle, its answers, its corrections, its work in progress. No other browser sees it."""

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

from diffassemble.files.archives import is_zip
from diffassemble.geometry import Poses
from diffassemble.puzzle import Assembly, Board, InputError, Pieces, Puzzle, Solver, Step
from diffassemble.web.bringing import Upload, bring, open_folder
from diffassemble.web.correcting import Arrangement, free
from diffassemble.web.jobs import Job
from diffassemble.web.judging import time_left, verdict
from diffassemble.web.panel import USUAL, Panel
from diffassemble.web.stage import Stage, laid_out, look_at
from diffassemble.web.takeaway import result_files, result_zip

MakeSolver = Callable[..., Solver]
# Seconds between two pictures while solving, and between two moments while playing.
_BLINK, _MOMENT, _REST = 0.05, 0.12, 1.5


class Visit:
    """What one browser does and sees; its folder vanishes with it."""

    def __init__(self, client: viser.ClientHandle, panel: Panel, make: MakeSolver) -> None:
        self.client, self.panel, self.make = client, panel, make
        self._home = TemporaryDirectory(prefix="diffassemble-", ignore_cleanup_errors=True)
        self.folder = Path(self._home.name)
        (self.folder / "sent").mkdir()
        self.answers: list[Assembly] = []
        self.shown: Assembly | None = None
        self.stage: Stage | None = None
        self.puzzle: Puzzle | None = None
        self.arrangement: Arrangement | None = None
        self.earlier: list[Arrangement] = []
        self.selected: int | None = None
        self.handles: viser.TransformControlsHandle | None = None
        self.job: Job | None = None
        self.playing, self.closed = False, False
        self._guard = threading.RLock()
        threading.Thread(target=self._play, daemon=True).start()

    # Bring

    def receive(self, upload: Upload, kind: str, board: Board | None) -> None:
        """A file came in."""
        self.say(f"reading {upload.name} …")
        puzzle = bring(upload, kind, board, int(self.panel.seed.value), self.folder / "sent")
        if puzzle is not None:
            self.open(puzzle)
            return
        count = len(list((self.folder / "sent").iterdir()))
        self.panel.collected.visible = True
        self.say(f"{count} pieces so far; send the next, or press **Use the pieces sent so far**")

    def use_collected(self, board: Board | None) -> None:
        """All single pieces that were sent become the puzzle."""
        self.open(open_folder(self.folder / "sent", board, int(self.panel.seed.value)))
        for file in (self.folder / "sent").iterdir():
            file.unlink()
        self.panel.collected.visible = False

    def open(self, puzzle: Puzzle, answer: Assembly | None = None) -> None:
        """Show a puzzle, with an answer if there is one already."""
        self.stop()
        with self._guard:
            self._select(None)
            if self.stage is not None:
                self.stage.clear()
            self.puzzle, self.answers, self.shown = puzzle, [], None
            self.stage = Stage(self.client.scene, puzzle, self.pick)
            self._arrange(free(laid_out(puzzle)))
            look_at(self.client, puzzle)
        grid = "" if puzzle.lattice is None else f", grid {puzzle.board.rows}x{puzzle.board.cols}"
        self.say(f"{len(puzzle)} pieces{grid}; press **Solve**")
        if answer is not None:
            self.keep(answer)

    # Solve and watch

    def solve(self, settings: Callable[[Pieces], Solver], name: str, seed: int) -> None:
        """Solve in a process of its own, and show every step as it comes."""
        puzzle, arrangement = self.puzzle, self.arrangement
        if puzzle is None or arrangement is None:
            raise InputError("there is nothing to solve yet; upload something")
        if self.job is not None:
            raise InputError("a solver is at work already; wait for it or cancel it")
        self.playing = False
        self._select(None)
        given = replace(puzzle, locks=arrangement.locks)
        self.job = job = Job(given, settings, seed)
        self.panel.cancel.visible, self.panel.solve.disabled = True, True
        began, history = time.monotonic(), []
        try:
            last = None
            for last in job.steps():
                history.append(last.poses)
                self._watch(last, time.monotonic() - began)
            if job.stopped or last is None:
                self.say("cancelled")
                self._arrange(arrangement)
                return
            sure = torch.ones(len(puzzle)) if last.confidence is None else last.confidence
            self.keep(Assembly(given, last.poses, sure, tuple(history), name, time.monotonic() - began))
        finally:
            self.stop()
            if not self.closed:
                self.panel.cancel.visible, self.panel.solve.disabled, self.panel.progress.value = False, False, 0.0

    def _watch(self, step: Step, seconds: float) -> None:
        if self.closed or self.stage is None:
            return
        self.stage.show(step.poses)
        self.panel.progress.value = 100 * step.done
        self.say(f"solving: {100 * step.done:.0f} %, {time_left(step.done, seconds)}")
        time.sleep(_BLINK)

    def stop(self) -> None:
        """End the work in progress, if there is any."""
        if (job := self.job) is not None:
            job.stop()
            self.job = None

    def keep(self, answer: Assembly) -> None:
        """Add an answer to those that can be compared, and show it."""
        with self._guard:
            self.answers.append(answer)
            names = tuple(f"{number}: {kept.solver}" for number, kept in enumerate(self.answers, 1))
            self.panel.answer.options = names
            self.panel.answer.value = names[-1]
        self.choose(len(self.answers) - 1)

    def choose(self, number: int) -> None:
        """Show one of the answers."""
        with self._guard:
            self.shown = answer = self.answers[number]
            self.earlier.clear()
            locks = answer.puzzle.locks
            arrangement = free(answer.poses)
            self._arrange(arrangement if locks is None else replace(arrangement, locked=locks.held))
            self.panel.moment.max = max(1, len(answer.history))
            self.panel.moment.value = len(answer.history)
        self.say(f"{answer.solver}: {verdict(answer)}; {answer.seconds:.1f} s")

    def look(self, moment: int) -> None:
        """Show one moment of the history; the last one is the answer with its corrections."""
        if self.shown is None or self.stage is None or self.arrangement is None or self.job is not None:
            return
        history = self.shown.history
        self.stage.show(history[moment] if moment < len(history) else self.arrangement.poses)

    def _play(self) -> None:
        """While playing, go from moment to moment, rest at the end, and begin anew."""
        while not self.closed:
            time.sleep(_MOMENT)
            if not self.playing or self.shown is None or self.job is not None:
                continue
            last = len(self.shown.history)
            moment = int(self.panel.moment.value)
            moment = 0 if moment >= last else moment + 1
            self.panel.moment.value = moment
            self.look(moment)
            if moment >= last:
                time.sleep(_REST)

    # Correct

    def pick(self, number: int) -> None:
        """A piece was clicked."""
        if self.job is None and self.shown is not None:
            self.playing = False
            self.look(len(self.shown.history))
        if self.job is None:
            self._select(number)

    def _select(self, number: int | None) -> None:
        with self._guard:
            self.selected = number
            if self.handles is not None:
                self.handles.remove()
                self.handles = None
            for button in (self.panel.lock, self.panel.turn):
                button.disabled = number is None
            if number is None or self.stage is None or self.arrangement is None or self.puzzle is None:
                self.panel.piece.content = "Click a piece to move, turn or lock it."
            else:
                self._offer_handles(number)
            self.paint()

    def _offer_handles(self, number: int) -> None:
        assert self.stage is not None and self.arrangement is not None and self.puzzle is not None
        state = "locked" if bool(self.arrangement.locked[number]) else "free"
        self.panel.piece.content = f"**{self.puzzle.names[number]}**, {state}. Drag its handles, or use the buttons."
        if not bool(self.arrangement.locked[number]):
            self.handles = self.stage.handles(number)
            self.handles.on_update(lambda event: self._dragged(number, event.phase))

    def _dragged(self, number: int, phase: str) -> None:
        if self.stage is None or self.handles is None or self.puzzle is None or self.arrangement is None:
            return
        pose = self.stage.follow(number, self.handles)
        if phase == "end":
            self.change(lambda now: now.moved(number, pose, self.puzzle))

    def change(self, how: Callable[[Arrangement], Arrangement]) -> None:
        """Correct something; it can be undone."""
        with self._guard:
            if self.arrangement is None:
                return
            self.earlier.append(self.arrangement)
            selected = self.selected
            self._arrange(how(self.arrangement))
            self._select(selected)

    def undo(self) -> None:
        """Take the last correction back."""
        with self._guard:
            if self.earlier:
                self._arrange(self.earlier.pop())
                self._select(self.selected)

    def turn_selected(self) -> None:
        if (number := self.selected) is not None and self.puzzle is not None:
            self.change(lambda now: now.turned(number, self.puzzle))

    def lock_selected(self) -> None:
        if (number := self.selected) is not None:
            self.change(lambda now: now.with_lock(number, not bool(now.locked[number])))

    def _arrange(self, arrangement: Arrangement) -> None:
        self.arrangement = arrangement
        self.panel.undo.disabled = not self.earlier
        if self.stage is not None:
            self.stage.show(arrangement.poses)
            self.paint()

    def paint(self) -> None:
        """Colours as they are asked for."""
        if self.stage is None or self.arrangement is None:
            return
        wanted = self.panel.confidence.value and self.shown is not None
        sure = self.shown.confidence if wanted and self.shown is not None else None
        self.stage.paint(sure, self.arrangement.locked, self.selected)

    # Take home

    def corrected(self) -> Assembly:
        """The answer that is shown, with its corrections."""
        if self.shown is None or self.arrangement is None:
            raise InputError("there is no answer yet; press Solve first")
        puzzle = replace(self.shown.puzzle, locks=self.arrangement.locks)
        return replace(self.shown, puzzle=puzzle, poses=self.arrangement.poses)

    def send(self, names: tuple[str, ...]) -> None:
        """Send the first of these files that there is; none named: all of them in one zip."""
        assembly = self.corrected()
        self.say("packing …")
        if not names:
            self.client.send_file_download("assembly.zip", result_zip(assembly, self.folder), save_immediately=True)
        else:
            files = dict(result_files(assembly, self.folder))
            name = next(name for name in names if name in files)
            self.client.send_file_download(name, files[name], save_immediately=True)
        self.say(verdict(assembly))

    # Talk

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
        shown = text.replace(str(self.folder) + "/", "").replace("sent/", "")
        self.say(f"⚠ {shown}")
        if not self.closed:
            self.client.add_notification("That did not work", shown, auto_close_seconds=15, color="red")

    def close(self) -> None:
        """The browser has gone: end its work and take its folder away."""
        self.closed = True
        self.stop()
        self._home.cleanup()
