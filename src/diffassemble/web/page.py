"""The page of one session: board, tools, status and panels."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import torch
from nicegui import context, ui
from nicegui.events import GenericEventArguments

from diffassemble.assembly.answer import Answer
from diffassemble.core import Poses
from diffassemble.rendering.animation import on_the_way
from diffassemble.web import CONFIG, panels, stages, transfers
from diffassemble.web.panels import advice, evidence, labelled
from diffassemble.web.session import Arrangement, Session, Sessions, laid_out

# Opacity of the colour of a confidence over a flat piece, as browsers write it.
_TINT = "99"
_KEYS = (
    ("Drag", "move a piece, or several that are selected"),
    ("Ring, two fingers", "turn"),
    ("Double click, L", "lock or unlock"),
    ("Shift and drag, or Select", "select by a box"),
    ("Drag beside, wheel, pinch", "move and zoom the view; 0 fits it"),
    ("Arrow keys", "move the selected piece"),
    ("R", "turn the selected piece"),
    (", and .", "select the piece before or after"),
    ("Ctrl Z, Ctrl Y", "undo, redo"),
)


def _add_style() -> None:
    ui.add_css((files("diffassemble.web") / "page.css").read_text())


def show_missing() -> None:
    """What is shown for work that is no longer there."""
    _add_style()
    with ui.element("div").classes("da-missing"):
        ui.label("This work is no longer here").classes("da-headline")
        ui.label("It was removed by you, or not used for a day.")
        ui.link("Start again", "/")


class View:
    """One page that shows a session; what only concerns its display is kept here."""

    def __init__(self, session: Session, sessions: Sessions, before: str) -> None:
        self.session, self.sessions, self.before = session, sessions, before
        self.selected: list[int] = []
        self.hidden: set[int] = set()
        self.step: int | None = None
        self.playing = self.ready = False
        self.stage: stages.Stage | None = None
        self.start: panels.StartPanel | None = None
        self._generation: str | None = None
        self._version = self._notice = -1
        self._answer: Any = None
        self._choosing = False
        self._matches: Any = None
        self._stand: Poses | None = None
        self._sent: dict[str, Any] = {}

    def build(self) -> None:
        """Make all elements; their content comes with the first update."""
        _add_style()
        self.dark = ui.dark_mode(None)
        self._build_header()
        with ui.element("div").classes("da-main"):
            with ui.element("section").classes("da-work").props('aria-label="Pieces"'):
                self.place = ui.element("div").classes("da-stage")
                self._build_tools()
            with ui.element("section").classes("da-side").props('aria-label="What to do"'):
                self._build_status()
                self.panels = (panels.SettingsPanel(self), panels.PiecesPanel(self), panels.DownloadPanel(self))
                self.plan = panels.PlanPanel(self)
                self.plan.element.move(target_index=2)
                self.private = ui.label(panels.PRIVATE).classes("da-quiet")
        notice = self.session.notice
        self._notice = 0 if notice is None else notice.number
        self.session.pages += 1
        context.client.on_delete(self._leave)
        ui.timer(CONFIG.update, self.update)
        ui.timer(CONFIG.frame, self._play)

    def _build_header(self) -> None:
        with ui.element("header").classes("da-header"):
            ui.label("DiffAssemble").classes("da-logo").props('role="heading" aria-level="1"')
            self.title = ui.label().classes("da-title")
            _tool("add", "New puzzle", lambda: ui.navigate.to("/"))
            _tool("help_outline", "Help", self._help)
            _tool("dark_mode", "Light or dark", lambda: self.dark.set_value(not self.dark.value))
            _tool("delete_outline", "Forget my work", self._ask_to_forget)

    def _build_status(self) -> None:
        with ui.card().classes("da-card"):
            with ui.element("div").props('role="status" aria-live="polite"').classes("da-wide da-status"):
                self.headline = ui.label().classes("da-headline")
                self.next = ui.label().classes("da-next")
                self.piece = ui.label().classes("da-quiet")
            self.progress = ui.linear_progress(0.0, show_value=False).props('aria-label="Progress"')
            with ui.row().classes("da-line"):
                self.solve = ui.button("Solve", icon="play_arrow", on_click=self._solve).props("unelevated no-caps")
                self.cancel = ui.button("Cancel", icon="close", on_click=self.session.stop)
                self.cancel.props("outline no-caps color=negative")
            self.answer = ui.select({}, label="Answer", on_change=self._choose_answer).classes("da-wide")

    def _build_tools(self) -> None:
        session = self.session
        with ui.element("div").classes("da-tools").props('role="toolbar" aria-label="Tools"') as self.tools:
            self.undo = _tool("undo", "Undo", session.undo)
            self.redo = _tool("redo", "Redo", session.redo)
            self.turn = _tool("rotate_right", "Turn the selected piece", lambda: self.act("turn"))
            self.lock = _tool("lock", "Lock or unlock the selected piece", lambda: self.act("lock"))
            self.whole = ui.button("Turn the whole", icon="crop_rotate", color=None, on_click=self._turn_whole)
            self.whole.props("flat no-caps").classes("da-tool")
            self.turning = self._switch("3d_rotation", "Drag to turn", "setTurning")
            self.measuring = self._switch("straighten", "Measure", "setMeasuring")
            self.boxing = self._switch("highlight_alt", "Select several by a box", "setBoxing")
            _tool("zoom_in", "Zoom in", lambda: self._call("zoom", 1.3))
            _tool("zoom_out", "Zoom out", lambda: self._call("zoom", 0.77))
            _tool("fit_screen", "Fit to the window", lambda: self._call("fit"))
        with ui.element("div").classes("da-looks") as self.looks:
            self.colours = ui.switch("Confidence", on_change=self.refresh)
            self.legend = _legend("doubtful", "sure", "")
            self.gaps = ui.switch("Gaps", on_change=self.refresh)
            self.gap_legend = _legend("touching", "wide", "da-gaps")
            self.palette = ui.switch("Own colours", value=True, on_change=self.refresh)
            self.ghosts = ui.switch("Ghost of the answer", on_change=self.refresh)
            self.photo = ui.switch("Photo", on_change=self.refresh)
            self.apart = self._slider("Explode", 2.0)
            self.cut = self._slider("Section", 0.95)
            self.compare = self._slider("Before / after", 1.0)
            with ui.element("div").classes("da-slider") as self.player:
                self.play = _tool("play_arrow", "Play the steps", self._toggle_playing)
                self.steps = labelled(ui.slider(min=0, max=1, step=1, value=0, on_change=self._scrub), "Step")
                self.counted = ui.label().classes("da-quiet da-count")

    def _slider(self, words: str, most: float) -> ui.slider:
        with ui.element("div").classes("da-slider"):
            ui.label(words)
            return labelled(ui.slider(min=0, max=most, step=0.01, value=0, on_change=self.refresh), words)

    def _switch(self, icon: str, words: str, method: str) -> ui.button:
        """A tool that is on or off."""
        button = _tool(icon, words, lambda: None)
        button.props["aria-pressed"] = "false"

        def toggle() -> None:
            on = button.props["aria-pressed"] == "false"
            button.props["aria-pressed"] = "true" if on else "false"
            button.classes(toggle="da-on")
            self._call(method, on)

        button.on_click(toggle)
        return button

    async def update(self) -> None:
        """Show what has changed in the session."""
        session = self.session
        session.seen = time.monotonic()
        working = session.work is not None
        if session.version == self._version and not working:
            return
        self._version = session.version
        self._show_stage()
        self._show_words()
        self._show_tools()
        self._push()
        for panel in self.panels:
            panel.refresh()
        await self.plan.refresh()

    def refresh(self) -> None:
        """Update, though the session has not changed."""
        self._version = -1

    def _show_stage(self) -> None:
        session = self.session
        shown = session.generation if session.now is not None else ""
        if shown == self._generation:
            if self.start is not None:
                self.start.refresh()
            return
        self._generation, self.ready, self._sent, self._answer = shown, False, {}, None
        self._matches, self._stand = None, None
        ui.run_javascript("scrollTo(0, 0)")
        self.selected, self.hidden, self.step, self.playing = [], set(), None, False
        for control in (self.colours, self.ghosts, self.gaps, self.apart, self.cut, self.compare):
            control.value = False if isinstance(control, ui.switch) else 0
        self.photo.value = session.found is not None and not session.answers
        self.place.clear()
        self.stage = self.start = None
        with self.place:
            if session.puzzle is None:
                self.start = panels.StartPanel(session, self.before)
                return
            address = f"/work/{session.name}/pieces/{session.generation}"
            self.stage = (stages.FlatBoard if session.puzzle.pieces.flat else stages.ObjectScene)(address)
            self.found = ui.image().classes("da-found").props('alt="The photo with what was found" fit=contain')
        self.stage.on("ready", self._is_ready)
        self.stage.on("select", self._on_select)
        self.stage.on("move", self._on_move)
        self.stage.on("lock", lambda event: self.toggle_locks(self._pieces(event)))
        self.stage.on("act", lambda event: self.act(str(event.args.get("name"))))
        if session.found is not None:
            self.found.set_source(f"/work/{session.name}/found.png?{session.generation}")

    def _show_words(self) -> None:
        session, now = self.session, self.session.now
        shown = advice(session, len(transfers.listed(session.uploads)) if now is None else 0)
        self.headline.text, self.next.text, self.title.text = shown.headline, shown.next, session.title
        self.piece.text = self._about_selected()
        self.piece.set_visibility(bool(self.piece.text))
        work = session.work
        self.progress.set_visibility(work is not None)
        self.progress.value = 0 if work is None else work.done
        self.progress.props["indeterminate"] = work is not None and not work.done
        self.solve.set_visibility(work is None and now is not None)
        self.solve.text = "Solve again" if session.answers else "Solve"
        self.cancel.set_visibility(work is not None)
        names = {number: f"{number + 1}: {answer.solver}" for number, answer in enumerate(session.answers)}
        self.answer.set_visibility(len(names) > 1 and work is None)
        chosen = next((n for n, answer in enumerate(session.answers) if now and answer is now.answer), None)
        if self.answer.options != names or self.answer.value != chosen:
            self._choosing = True
            self.answer.set_options(names, value=chosen)
            self._choosing = False
        notice = session.notice
        if notice is not None and notice.number != self._notice:
            self._notice = notice.number
            if notice.picture is not None:
                self._show_refused(notice.text, notice.picture)
            else:
                ui.notify(notice.text, type="negative" if notice.wrong else "info", multi_line=True, timeout=8000)

    def _show_tools(self) -> None:
        session, now, answer = self.session, self.session.now, self._shown_answer
        there, idle, solved = now is not None, session.work is None, answer is not None
        flat = now is not None and now.puzzle.pieces.flat
        free = now is not None and bool(self.selected) and not any(bool(now.locked[one]) for one in self.selected)
        coloured = (
            now is not None and not flat and any(mesh.colours is not None for mesh in now.puzzle.fragments.meshes)
        )
        count = 0 if answer is None else len(answer.history)
        for element, usable in (
            (self.undo, bool(session.past)),
            (self.redo, bool(session.future)),
            (self.turn, free),
            (self.lock, bool(self.selected)),
            (self.whole, True),
        ):
            element.set_enabled(usable and idle)
        for shown, visible in (
            *((one, there) for one in (self.tools, self.looks, self.private)),
            *((one, flat) for one in (self.whole, self.boxing)),
            *((one, not flat) for one in (self.turning, self.measuring, _parent(self.apart), _parent(self.cut))),
            *((one, solved) for one in (_parent(self.compare), self.colours)),
            (self.legend, solved and self.colours.value),
            (self.ghosts, solved and flat),
            (self.gaps, solved and not flat),
            (self.gap_legend, solved and not flat and self.gaps.value),
            (self.palette, coloured),
            (self.photo, session.found is not None),
            (self.player, count > 1 and idle),
        ):
            shown.set_visibility(bool(visible))
        if self.stage is not None:
            self.found.set_visibility(session.found is not None and bool(self.photo.value) and idle)
        if answer is not self._answer:
            self._answer, self.step = answer, None
            self.steps.props(f"max={max(1, count)}")
            self.steps.value = count
            if session.answers:
                self.photo.value = False
            if answer is not None:
                self._prepare_corrections(answer)

    @property
    def _shown_answer(self) -> Answer | None:
        """The solver's answer that is shown, before corrections."""
        return None if self.session.now is None else self.session.now.answer

    def _about_selected(self) -> str:
        now = self.session.now
        if now is None or not self.selected:
            return ""
        if len(self.selected) > 1:
            held = sum(bool(now.locked[number]) for number in self.selected)
            return f"{len(self.selected)} pieces selected" + (f", {held} of them locked" if held else "")
        number = self.selected[0]
        parts = [now.puzzle.names[number]]
        if now.puzzle.lattice is not None:
            cells, turns = now.puzzle.board.snap(now.poses)
            row, col = divmod(int(cells[number]), now.puzzle.board.cols)
            parts.append(f"row {row + 1}, column {col + 1}, turned by {90 * int(turns[number])}°")
        if self.session.assembly is not None:
            found = self.session.assembly.placements.placement(number)
            parts.append(found.status if found.confidence is None else f"confidence {found.confidence:.2f}")
            parts += [found.reason] if found.reason else []
            parts += [text] if (text := evidence(self.session.assembly, number)) else []
        held = bool(now.locked[number])
        parts.append("locked: unlock it to move it" if held else "drag it, turn it, or lock it")
        return " · ".join(parts)

    # To the board.

    def _push(self) -> None:
        """Send the board what differs from what it was sent before."""
        session, now = self.session, self.session.now
        if now is None or self.stage is None or not self.ready:
            return
        flat, work, answer = now.puzzle.pieces.flat, session.work, now.answer
        state: dict[str, Any] = {
            "places": self._places(now, self._poses(now)),
            "locked": now.locked.tolist(),
            "selected": self.selected,
            "tints": self._tints(now),
            "hidden": [number in self.hidden for number in range(len(now.puzzle))],
            "busy": work is not None or self.step is not None,
        }
        if flat:
            compared = self.compare.value > 0 and answer is not None
            state["ghost"] = self._ghosts(now) if self.ghosts.value else None
            state["before"] = self._places(now, laid_out(now.puzzle)) if compared else None
            state["wipe"] = self.compare.value
        else:
            # Another arrangement, other gaps.
            gaps = f"{self._generation}-{id(now)}" if self.gaps.value and work is None else None
            state |= {"explode": self.apart.value, "section": self.cut.value, "own": self.palette.value, "gaps": gaps}
            state["busy"] = state["busy"] or self.compare.value > 0
        news = {key: value for key, value in state.items() if key not in self._sent or self._sent[key] != value}
        if session.matches is not self._matches:
            self._matches = session.matches
            news["matches"] = [] if session.matches is None else stages.match_rows(session.matches)
        fitted = (self._generation, None if answer is None else id(answer), now.puzzle.lattice, id(self._stand))
        if self._sent.get("fit") != fitted:
            news |= {"fit": True, "places": state["places"]}
        if news:
            self.stage.show(news)
        self._sent = {**state, "fit": fitted}

    def _poses(self, now: Arrangement) -> Poses:
        """Where the pieces are shown: as the solver has them, at a step of the history, or as they are."""
        work = self.session.work
        if work is not None and work.poses is not None:
            return work.poses
        if self.step is not None and now.answer is not None and self.step < len(now.answer.history):
            return now.answer.history[self.step]
        return now.poses

    def _places(self, now: Arrangement, poses: Poses) -> list[list[float]]:
        if now.puzzle.pieces.flat:
            return stages.to_places(now.puzzle, poses)
        shown = self._upright(now) @ poses
        if self.compare.value > 0:
            share = torch.full((len(now.puzzle),), self.compare.value)
            shown = on_the_way(shown, laid_out(now.puzzle), share)
        return stages.to_places(now.puzzle, shown)

    def _upright(self, now: Arrangement) -> Poses:
        """The motion that turns an object upright, as it is shown once there is an answer."""
        return Poses.identity(1, 3) if self._stand is None or now.answer is None else self._stand

    def _ghosts(self, now: Arrangement) -> list[list[float] | None] | None:
        """Where the answer has the pieces that were moved by hand."""
        if now.answer is None:
            return None
        places, moved = self._places(now, now.answer.poses), set(now.moved_by_hand)
        return [place if number in moved else None for number, place in enumerate(places)]

    def _prepare_corrections(self, answer: Answer) -> None:
        """Find likely matches, and which way an object is upright, in the background."""
        threading.Thread(target=self.session.find_matches, daemon=True).start()
        if answer.puzzle.pieces.flat or (answer.puzzle.locks is not None and self._stand is not None):
            return

        def stand() -> None:
            motion = stages.upright(answer)
            if self._answer is answer:
                self._stand = motion
                self.refresh()

        threading.Thread(target=stand, daemon=True).start()

    def _tints(self, now: Arrangement) -> list[str | None]:
        answer = self.session.assembly
        if not self.colours.value or answer is None:
            return [None] * len(now.puzzle)
        opacity = _TINT if now.puzzle.pieces.flat else ""
        return [panels.css_colour(sure) + opacity for sure in answer.confidence.tolist()]

    def _call(self, method: str, *arguments: Any) -> None:
        if self.stage is not None:
            self.stage.run_method(method, *arguments)

    # From the board, another program: nothing is taken unchecked.

    def _is_ready(self) -> None:
        self.ready, self._sent = True, {}
        self.refresh()

    def _pieces(self, event: GenericEventArguments) -> list[int]:
        puzzle, sent = self.session.puzzle, event.args.get("pieces") if isinstance(event.args, dict) else None
        if puzzle is None or not isinstance(sent, list):
            return []
        return list(dict.fromkeys(one for one in sent if isinstance(one, int) and 0 <= one < len(puzzle)))

    def _on_select(self, event: GenericEventArguments) -> None:
        self.selected = self._pieces(event)
        self._sent["selected"] = self.selected
        self.refresh()

    def _on_move(self, event: GenericEventArguments) -> None:
        numbers, puzzle = self._pieces(event), self.session.puzzle
        if puzzle is None or not numbers:
            return
        places = _places(event.args.get("places"), len(numbers), 3 if puzzle.pieces.flat else 12)
        if places is None:
            return
        poses = stages.from_places(puzzle, places)
        # The board shows them there already, so their places are sent in any case.
        self._sent.pop("places", None)
        flat = puzzle.pieces.flat
        self.session.correct(lambda now: now.moved(numbers, poses if flat else self._upright(now).inverse() @ poses))
        self.refresh()

    # What people do.

    def act(self, name: str) -> None:
        """Undo, redo, turn or lock, by button or by key."""
        session, now = self.session, self.session.now
        if name == "undo":
            session.undo()
        elif name == "redo":
            session.redo()
        elif now is None or not self.selected:
            return
        elif name == "lock":
            self.toggle_locks(self.selected)
        elif any(bool(now.locked[number]) for number in self.selected):
            session.notify("this piece is locked; unlock it to turn it", wrong=True)
        elif not now.puzzle.pieces.flat:
            self._call("turn", 15)
        else:
            session.correct(lambda now: now.turned(self.selected, back=name == "turn back"))

    def toggle_locks(self, numbers: Sequence[int]) -> None:
        """Lock pieces, or unlock them if all are locked."""
        now = self.session.now
        if now is not None and numbers:
            on = not all(bool(now.locked[number]) for number in numbers)
            self.session.correct(lambda now: now.with_lock(numbers, on))

    def choose(self, selected: list[int] | None = None, toggled: Sequence[int] = ()) -> None:
        """Select pieces by the list, and hide some, or show them again."""
        self.selected = self.selected if selected is None else selected
        self.hidden ^= set(toggled)
        self.refresh()

    def _turn_whole(self) -> None:
        self.session.correct(Arrangement.whole_turned)

    def _solve(self) -> None:
        self.step, self.playing = None, False
        threading.Thread(target=self.session.solve, daemon=True).start()

    def _choose_answer(self) -> None:
        session = self.session
        chosen = self.answer.value
        if self._choosing or chosen is None or not 0 <= chosen < len(session.answers):
            return
        session.correct(lambda now: Arrangement.of(session.answers[chosen]))

    def _scrub(self) -> None:
        count = 0 if self._shown_answer is None else len(self._shown_answer.history)
        number = int(self.steps.value or 0)
        self.step = None if number >= count else number
        self.counted.text = f"step {min(number + 1, count)} of {count}" if self.step is not None else "now"
        self.refresh()

    def _toggle_playing(self) -> None:
        self.playing = not self.playing
        if self.playing and self._shown_answer is not None and self.step is None:
            self.steps.value = 0
        self.play.props(f"icon={'pause' if self.playing else 'play_arrow'}")

    def _play(self) -> None:
        """While playing, go from step to step, and stop at the end."""
        if not self.playing or self._shown_answer is None:
            return
        count = len(self._shown_answer.history)
        self.steps.value = min(count, int(self.steps.value or 0) + max(1, math.ceil(count / 100)))
        if self.steps.value >= count:
            self._toggle_playing()

    def _help(self) -> None:
        with _dialog("Mouse, touch and keys"), ui.element("dl").classes("da-keys"):
            for row in _KEYS:
                for tag, words in zip(("dt", "dd"), row, strict=True):
                    with ui.element(tag):
                        ui.label(words)

    def _show_refused(self, text: str, picture: bytes) -> None:
        with _dialog("This photo was refused"):
            ui.label(text)
            ui.image(panels.png_address(picture)).props('alt="What was found in it"').classes("da-refused")

    def _ask_to_forget(self) -> None:
        with _dialog("Forget my work?") as dialog:
            ui.label("Remove this puzzle, its answers and your corrections?").classes("da-next")
            with ui.row().classes("da-line"):
                ui.button("Forget", on_click=self._forget).props("unelevated no-caps color=negative")
                ui.button("Keep", on_click=dialog.close).props("flat no-caps")

    def _forget(self) -> None:
        self.sessions.forget(self.session)
        ui.navigate.to("/")

    def _leave(self) -> None:
        self.session.pages -= 1
        self.session.seen = time.monotonic()


@contextmanager
def _dialog(words: str) -> Iterator[ui.dialog]:
    """An open dialog with a headline, and a card in it to be filled."""
    with labelled(ui.dialog(value=True), words) as dialog, ui.card().classes("da-card"):
        ui.label(words).classes("da-headline")
        yield dialog


def _tool(icon: str, words: str, action: Callable[[], Any]) -> ui.button:
    button = ui.button(icon=icon, color=None, on_click=action).props("flat").classes("da-tool").tooltip(words)
    return labelled(button, words)


def _legend(low: str, high: str, ramp: str) -> ui.element:
    """The meaning of colours."""
    with ui.element("span").classes("da-legend") as legend:
        ui.label(low)
        ui.element("span").classes(f"da-ramp {ramp}")
        ui.label(high)
    return legend


def _parent(element: ui.element) -> ui.element:
    slot = element.parent_slot
    assert slot is not None
    return slot.parent


def _places(sent: Any, count: int, wide: int) -> list[list[float]] | None:
    """So many places, if these are some, of numbers that are not too large."""
    if not isinstance(sent, list) or len(sent) != count:
        return None
    shaped = all(isinstance(place, list) and len(place) == wide for place in sent)
    if not shaped or not all(isinstance(one, int | float) and abs(one) < 1e7 for place in sent for one in place):
        return None
    return [[float(one) for one in place] for place in sent]
