"""Words and panels of the page: how work begins; how to solve, the list of pieces, plan and joins, downloads."""

from __future__ import annotations

import asyncio
import base64
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from nicegui import ui

from diffassemble.assembly.answer import Answer
from diffassemble.core import InputError
from diffassemble.core.placements import STATUSES, Placement
from diffassemble.core.thresholds import SURE, UPRIGHT
from diffassemble.io.documents import parse_grid
from diffassemble.kinds import kind_of
from diffassemble.network.pretrained import bundled_models
from diffassemble.rendering.picture import confidence_colour
from diffassemble.rendering.report import Pictures
from diffassemble.web import CONFIG, transfers
from diffassemble.web.jobs import Task
from diffassemble.web.session import Arrangement, Session
from diffassemble.web.stages import Stage

if TYPE_CHECKING:
    from diffassemble.web.page import View

PRIVATE = "Everything stays on this computer: nothing is sent anywhere."


class Advice(NamedTuple):
    """The state of the work in a line, and what to do next."""

    headline: str
    next: str


def advice(session: Session, uploaded: int = 0) -> Advice:
    """What to show now; `uploaded` is the number of files that are not opened yet."""
    work, now = session.work, session.now
    if work is not None:
        passed = time.monotonic() - work.began
        return Advice(f"{work.words} …", f"{time_left(work.done, passed)}{_clock(passed)} so far")
    if now is None and uploaded:
        return Advice(f"{plural(uploaded, 'file')} sent", "Choose what it is, then press Open.")
    if now is None:
        return Advice("What is to be put together?", "Drop files, or click a sample.")
    held = int(now.locked.sum())
    locked = f"{plural(held, 'piece')} locked. " if held else ""
    if now.answer is None:
        grid = "" if now.puzzle.lattice is None else f", grid {now.puzzle.board.rows}x{now.puzzle.board.cols}"
        headline = f"{plural(len(now.puzzle), kind_of(now.puzzle).piece)}{grid}"
        if session.found is not None:
            return Advice(headline, "Look at the photo: has every piece its outline? Then press Solve.")
        return Advice(headline, f"{locked}Press Solve.")
    assembly = session.assembly
    assert assembly is not None
    clock = f" Solved in {_clock(now.answer.seconds)} (solver: {now.answer.solver})." if now.answer.seconds else ""
    return Advice(summary(assembly), _after_solving(now, assembly, locked) + clock)


def _after_solving(now: Arrangement, assembly: Answer, locked: str) -> str:
    moved, truth, found = len(now.moved_by_hand), assembly.puzzle.truth, assembly.placements
    if moved:
        return f"{plural(moved, 'piece')} moved by hand. Lock what is right and solve again, or download."
    if truth is not None and kind_of(assembly.puzzle).count_right(assembly, truth).turned:
        return "Press “Turn the whole” until it is upright."
    if locked:
        return f"{locked}Lock more and solve again, or download."
    if bool((found.trust < SURE).any()):
        return "Check the doubtful ones: drag a piece where it belongs, lock it, solve again. Or download."
    unsure = assembly.puzzle.pieces.flat and not (found.upright or 0) >= UPRIGHT
    return "Download it" + (", or turn the whole if it is the wrong way up." if unsure else ".")


def summary(assembly: Answer) -> str:
    """How many pieces are right, if the truth is known, else the numbers of each status."""
    puzzle, count = assembly.puzzle, len(assembly.puzzle)
    kind = kind_of(puzzle)
    if puzzle.truth is not None:
        right, free, by = kind.count_right(assembly, puzzle.truth)
        if free > right:
            turned = f", turned by {by}°" if by else " relative to the largest"
            return f"{_all(free, count, kind.piece)} fit together{turned}"
        return f"{_all(right, count, kind.piece)} {'is' if right == 1 else 'are'} right"
    numbers = {status: assembly.status.count(status) for status in STATUSES}
    if numbers["sure"] == count:
        return f"All {count} {kind.piece}s are sure"
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number)


def evidence(assembly: Answer, piece: int) -> str:
    """The matches that support a place given by a person: `fits a.png (log odds 2.1)`; empty where none is known."""
    names = assembly.puzzle.names
    beside = [(join.first + join.second - piece, join.log_odds) for join in assembly.joins if piece in join[:2]]
    found = ", ".join(f"{names[other]} (log odds {log_odds:.1f})" for other, log_odds in beside)
    return f"fits {found}" if found else ""


def _all(number: int, count: int, piece: str) -> str:
    return f"All {count} {piece}s" if number == count else f"{number} of {count} {piece}s"


def plural(number: int, word: str) -> str:
    """`1 piece`, `2 pieces`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def time_left(done: float, seconds: float) -> str:
    """How far it is and how long it may still take, in words; nothing where that is not known."""
    if done <= 0.02:
        return ""
    left = seconds / done * (1 - done)
    return f"{100 * done:.0f} %, about {_clock(left)} left, "


def _clock(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


# Panels.

DEFAULT_SOLVER, DEFAULT_MODEL = "default solver", "default model"


def css_colour(confidence: float) -> str:
    """The colour of a confidence, as browsers write it."""
    return "#{:02x}{:02x}{:02x}".format(*confidence_colour(confidence))


def labelled(element: Any, words: str) -> Any:
    """The same element, with a name for those who can't see it; names of files may have any letters."""
    element.props["aria-label"] = words
    return element


class SettingsPanel:
    """The solver and its settings; closed at first."""

    def __init__(self, view: View) -> None:
        self.view, settings = view, view.session.settings
        with ui.expansion("Solver settings", icon="tune").classes("da-wide da-panel") as self.element:
            self.solver = ui.select([DEFAULT_SOLVER], value=DEFAULT_SOLVER, label="Solver", on_change=self.keep)
            models = [DEFAULT_MODEL, *bundled_models()]
            chosen = settings.model if settings.model in models else DEFAULT_MODEL
            self.model = ui.select(models, value=chosen, label="Model", on_change=self.keep)
            with ui.row().classes("da-line"):
                self.samples = ui.number("Samples", value=settings.samples, min=1, max=64, on_change=self.keep)
                self.seed = ui.number("Seed", value=settings.seed, min=0, max=2**31, on_change=self.keep)
            ui.label("Samples are answers to draw, of which the best is kept.").classes("da-quiet")

    def refresh(self) -> None:
        """Offer the solvers of the puzzle's kind."""
        puzzle = self.view.session.puzzle
        self.element.set_visibility(puzzle is not None)
        names = [DEFAULT_SOLVER, *([] if puzzle is None else kind_of(puzzle).solvers)]
        if self.solver.options != names:
            chosen = self.view.session.settings.solver
            self.solver.set_options(names, value=chosen if chosen in names else DEFAULT_SOLVER)

    def keep(self) -> None:
        """Keep what is chosen."""
        settings = self.view.session.settings
        settings.solver = None if self.solver.value == DEFAULT_SOLVER else str(self.solver.value)
        settings.model = None if self.model.value == DEFAULT_MODEL else str(self.model.value)
        settings.samples = max(1, int(self.samples.value or 8))
        settings.seed = max(0, int(self.seed.value or 0))


class PiecesPanel:
    """All pieces with eye, name, confidence and lock, the most doubtful first."""

    def __init__(self, view: View) -> None:
        self.view, self.limit = view, CONFIG.pieces
        self._shown: Any = None
        with ui.expansion("Pieces", icon="extension", on_value_change=self.refresh) as self.element:
            self.element.classes("da-wide da-panel")
            self.rows = ui.column().classes("da-rows").props('role="list" aria-label="Pieces"')

    def refresh(self) -> None:
        """List the pieces as they are, if the panel is open."""
        now = self.view.session.now
        self.element.set_visibility(now is not None)
        if now is None or not self.element.value:
            return
        answer = self.view.session.assembly
        sure = None if answer is None else [round(one, 3) for one in answer.placements.trust.tolist()]
        status = () if answer is None else answer.status
        hidden, selected = sorted(self.view.hidden), sorted(self.view.selected)
        state = (self.view.session.generation, now.locked.tolist(), sure, status, hidden, selected, self.limit)
        if state == self._shown:
            return
        self._shown = state
        order = sorted(range(len(now.puzzle)), key=lambda number: 0 if sure is None else sure[number])
        self.rows.clear()
        with self.rows:
            for number in order[: self.limit]:
                found = None if answer is None else answer.placements.placement(number)
                self._row(number, now.puzzle.names[number], found, bool(now.locked[number]))
            if len(order) > self.limit:
                ui.button(f"Show more of {len(order)}", on_click=self._show_more).props("flat no-caps")

    def _row(self, number: int, name: str, found: Placement | None, locked: bool) -> None:
        view, hidden = self.view, number in self.view.hidden
        chosen = " da-chosen" if number in view.selected else ""
        with ui.element("div").classes(f"da-row{chosen}").props('role="listitem"'):
            icon, words = ("visibility_off", "Show") if hidden else ("visibility", "Hide")
            _small(icon, f"{words} {name}", lambda: view.choose(toggled=[number]))
            words = name if found is None else f"{name}, {found.status}"
            button = labelled(ui.element("button"), f"Select {words}").classes("da-name").props("type=button")
            with button:
                ui.label(name)
            button.on("click", lambda: view.choose([number]))
            if found is not None:
                sure = math.nan if found.confidence is None else found.confidence
                chip = ui.label("by hand" if found.confidence is None else f"{sure:.2f}").classes("da-chip")
                chip.style(f"background: {css_colour(sure)}").tooltip(found.status)
            icon, words = ("lock", "Unlock") if locked else ("lock_open", "Lock")
            _small(icon, f"{words} {name}", lambda: view.toggle_locks([number]))

    def _show_more(self) -> None:
        self.limit += CONFIG.pieces
        self.refresh()


def _small(icon: str, words: str, action: Callable[[], None]) -> None:
    labelled(ui.button(icon=icon, on_click=action), words).props("flat round dense")


class PlanPanel:
    """The plan to lay real pieces by, and the joins to make next; drawn when the panel is opened."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._drawn: Answer | None = None
        self.element = ui.expansion("Plan and next joins", icon="format_list_numbered", on_value_change=self.refresh)
        with self.element.classes("da-wide da-panel"):
            self.content = ui.column().classes("da-wide")

    async def refresh(self) -> None:
        """Draw them for the answer that is shown, if the panel is open."""
        now = self.view.session.now
        joined_by_people = now is not None and kind_of(now.puzzle).next_joins is not None
        self.element.set_visibility(joined_by_people and now is not None and now.answer is not None)
        assembly = self.view.session.assembly
        if not self.element.value or not self.element.visible or assembly is None or assembly is self._drawn:
            return
        self._drawn = assembly
        self.content.clear()
        with self.content:
            ui.spinner()
        try:
            plan, joins = await asyncio.to_thread(_planned, assembly)
        except InputError as error:
            self.view.session.notify(str(error), wrong=True)
            return
        self.content.clear()
        with self.content:
            if plan is not None:
                ui.image(plan).props('alt="The plan"').classes("da-plan")
            ui.label("The surest joins to make next" if joins else "No join is left to make.").classes("da-heading")
            for picture, words in joins:
                with ui.row().classes("da-line da-join"):
                    ui.image(picture).props("aria-hidden=true").classes("da-joined")
                    ui.label(words)


def _planned(assembly: Answer) -> tuple[str | None, list[tuple[str, str]]]:
    """Plan and joins, as addresses of pictures."""
    pictures = Pictures(assembly)
    plan = None if pictures.plan is None else png_address(pictures.plan)
    return plan, [(png_address(join.picture), join.words) for join in pictures.next_joins]


def png_address(picture: bytes) -> str:
    """The content of a PNG file as an address."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


class DownloadPanel:
    """The files of the answer that is shown, each made when it is asked for."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.element = ui.expansion("Download", icon="download", value=True).classes("da-wide da-panel")
        with self.element, ui.element("div").classes("da-files"):
            self.buttons = {
                name: ui.button(words, on_click=self._sender(name)).props("outline no-caps")
                for name, words in transfers.FILES.items()
            }

    def refresh(self) -> None:
        """Offer what there is."""
        now = self.view.session.now
        self.element.set_visibility(now is not None and now.answer is not None)
        if now is not None:
            for name, button in self.buttons.items():
                button.set_visibility(name in transfers.offered(now.puzzle.kind))

    def _sender(self, wanted: str) -> Callable[[], Awaitable[None]]:
        async def send() -> None:
            session = self.view.session
            assembly = session.assembly
            if assembly is None:
                session.notify("there is no answer yet; press Solve first", wrong=True)
                return
            waiting = ui.notification(f"Making {wanted} …", spinner=True, timeout=None)
            try:
                made = await asyncio.to_thread(transfers.content, assembly, wanted, session.folder)
                session.made = wanted, made
                ui.download(f"/work/{session.name}/file/{wanted}", wanted)
            except InputError as error:
                session.notify(str(error), wrong=True)
            finally:
                waiting.dismiss()

        return send


class DropZone(Stage, component="upload.js"):
    """Takes files and sends them to `address`."""


class StartPanel:
    """What a session without a puzzle shows."""

    def __init__(self, session: Session, before: str) -> None:
        self.session = session
        self._names: list[str] | None = None
        with ui.element("div").classes("da-start") as self.element:
            zone = DropZone(f"/work/{session.name}/upload")
            zone.on("sent", self.refresh)
            zone.on("refused", lambda event: session.notify(str(event.args.get("text", "")), wrong=True))
            self._build_order()
            ui.label("Or try a sample").classes("da-heading")
            with ui.element("div").classes("da-samples"):
                for name, sample in transfers.SAMPLES.items():
                    with ui.element("button").classes("da-sample").props("type=button") as button:
                        picture = ui.image(f"/samples/{name}.png").props("no-spinner no-transition aria-hidden=true")
                        picture.classes("da-thumbnail")
                        ui.label(sample.title).classes("da-sample-title")
                        ui.label(sample.words).classes("da-quiet")
                    button.on("click", lambda name=name: self.open_sample(name))
            if before:
                with ui.row().classes("da-line"):
                    ui.icon("history").classes("da-quiet")
                    ui.link("Go on with your earlier work", f"/work/{before}")
            ui.label(PRIVATE).classes("da-quiet")

    def _build_order(self) -> None:
        with ui.card().classes("da-order") as self.order:
            self.names = ui.label()
            kinds = list(transfers.WHAT)
            self.what = ui.select(kinds, value=transfers.CUT, label="What is it?", on_change=self._suggest)
            self.what.classes("da-wide")
            with ui.row().classes("da-line"):
                self.grid = ui.input("Rows x columns").classes("da-field")
                self.pieces = ui.number("Pieces", value=30, min=2, max=1000, precision=0).classes("da-field")
                ui.button("Open", icon="folder_open", on_click=self.open).props("unelevated no-caps")
                ui.button("Start over", on_click=self.discard).props("flat no-caps")
        self._suggest()
        self.refresh()

    def refresh(self) -> None:
        """List what was sent."""
        names = [path.name for path in transfers.listed(self.session.uploads)]
        if names == self._names:
            return
        self._names = names
        self.order.set_visibility(bool(names))
        more = f" and {len(names) - CONFIG.files} more" if len(names) > CONFIG.files else ""
        self.names.text = f"{plural(len(names), 'file')}: {', '.join(names[: CONFIG.files])}{more}"
        if names and self.what.value in (transfers.CUT, transfers.PIECES):
            self.what.value = transfers.usual(names)

    def _suggest(self) -> None:
        what = self.what.value
        self.grid.set_visibility(what in transfers.WITH_GRID)
        self.pieces.set_visibility(what == transfers.JIGSAW)
        self.grid.value = "" if what in transfers.GRID_FOUND else self.grid.value or "4x4"
        hint = "empty: found out" if what in transfers.GRID_FOUND else "such as 4x4"
        self.grid.props(f'hint="{hint}"')

    def open(self) -> None:
        """Read what was sent as what was chosen."""
        session, text = self.session, str(self.grid.value or "").strip()
        try:
            board = parse_grid(text) if text and self.what.value in transfers.WITH_GRID else None
        except InputError as error:
            session.notify(str(error), wrong=True)
            return
        order = transfers.Order(self.what.value, board, int(self.pieces.value or 30), session.settings.seed)
        names = self._names or []
        title = names[0] if len(names) == 1 else plural(len(names), "file")
        task = Task(transfers.read, session.uploads, order)

        def work() -> None:
            session.read(title, task)
            if session.now is not None:
                self._clear()

        threading.Thread(target=work, daemon=True).start()

    def open_sample(self, name: str) -> None:
        """Make a sample and open it."""
        arguments = transfers.SAMPLES[name].title, Task(transfers.make_sample, name)
        threading.Thread(target=self.session.read, args=arguments, daemon=True).start()

    def discard(self) -> None:
        """Forget what was sent."""
        self._clear()
        self.refresh()

    def _clear(self) -> None:
        for path in transfers.listed(self.session.uploads):
            path.unlink(missing_ok=True)
