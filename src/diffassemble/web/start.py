"""How work begins: files dropped and what they are, or a sample."""

from __future__ import annotations

import threading

from nicegui import ui

from diffassemble.core import Board, InputError
from diffassemble.io.documents import parse_grid
from diffassemble.web import CONFIG, uploads
from diffassemble.web.jobs import Task
from diffassemble.web.session import Session
from diffassemble.web.words import PRIVATE, plural


class DropZone(ui.element, component="upload.js"):
    """Takes files and sends them to `address`."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._props["address"] = address


class StartPanel:
    """What a session without a puzzle shows."""

    def __init__(self, session: Session, before: str) -> None:
        self.session = session
        self._names: list[str] | None = None
        with ui.element("div").classes("da-start") as self.element:
            zone = DropZone(f"/work/{session.name}/upload")
            zone.on("sent", self.refresh)
            zone.on("refused", lambda event: session.tell(str(event.args.get("text", "")), wrong=True))
            self._build_order()
            ui.label("Or try a sample").classes("da-heading")
            with ui.element("div").classes("da-samples"):
                for name, sample in uploads.SAMPLES.items():
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
            self.what = ui.select(list(uploads.WHAT), value=uploads.CUT, label="What is it?", on_change=self._suggest)
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
        names = [path.name for path in uploads.listed(self.session.uploads)]
        if names == self._names:
            return
        self._names = names
        self.order.set_visibility(bool(names))
        more = f" and {len(names) - CONFIG.files} more" if len(names) > CONFIG.files else ""
        self.names.text = f"{plural(len(names), 'file')}: {', '.join(names[: CONFIG.files])}{more}"
        if names and self.what.value in (uploads.CUT, uploads.PIECES):
            self.what.value = uploads.usual(names)

    def _suggest(self) -> None:
        what = self.what.value
        self.grid.set_visibility(what in uploads.WITH_GRID)
        self.pieces.set_visibility(what == uploads.JIGSAW)
        self.grid.value = "" if what in uploads.GRID_FOUND else self.grid.value or "4x4"
        hint = "empty: found out" if what in uploads.GRID_FOUND else "such as 4x4"
        self.grid.props(f'hint="{hint}"')

    def open(self) -> None:
        """Read what was sent, as what it is said to be."""
        session = self.session
        try:
            order = uploads.Order(self.what.value, self._board(), int(self.pieces.value or 30), session.settings.seed)
        except InputError as error:
            session.tell(str(error), wrong=True)
            return
        names = self._names or []
        title = names[0] if len(names) == 1 else plural(len(names), "file")
        task = Task(uploads.read, session.uploads, order)

        def work() -> None:
            session.read(title, task)
            if session.now is not None:
                self._clear()

        threading.Thread(target=work, daemon=True).start()

    def _board(self) -> Board | None:
        text = str(self.grid.value or "").strip()
        return parse_grid(text) if text and self.what.value in uploads.WITH_GRID else None

    def open_sample(self, name: str) -> None:
        """Make a sample and open it."""
        task = Task(uploads.make_sample, name)
        arguments = (uploads.SAMPLES[name].title, task)
        threading.Thread(target=self.session.read, args=arguments, daemon=True).start()

    def discard(self) -> None:
        """Forget what was sent."""
        self._clear()
        self.refresh()

    def _clear(self) -> None:
        for path in uploads.listed(self.session.uploads):
            path.unlink(missing_ok=True)
