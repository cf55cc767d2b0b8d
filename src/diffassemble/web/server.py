"""The workbench's server: one session for every browser, and nothing shared between them but the example."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import skimage.data
import torch
import viser

from diffassemble.core import Assembly, Board, InputError, Puzzle, Solver
from diffassemble.core.kind import SolverOptions
from diffassemble.core.solver import assemble
from diffassemble.kinds import KINDS, make_solver
from diffassemble.network.pretrained import bundled_models
from diffassemble.squares.cut import cut_picture
from diffassemble.web.editing import Editor
from diffassemble.web.panel import DEFAULT, Panel
from diffassemble.web.scene import look_at
from diffassemble.web.session import Session
from diffassemble.web.upload_limit import limit_uploads
from diffassemble.web.uploads import Upload, check_size, suggested_grid


def example_answer() -> Assembly:
    """A photograph that scikit-image brings with it, cut and solved."""
    picture = torch.from_numpy(skimage.data.astronaut()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(picture, Board(5, 5), torch.Generator().manual_seed(0), size=64)
    return assemble(puzzle, make_solver("squares", "diffusion", SolverOptions(samples=2)))


ParseGrid = Callable[[str], Board]
MakeSolver = Callable[..., Solver]
BLUE = (38, 110, 178)


class Server(viser.ViserServer):
    """viser, without its way to share a page through somebody else's computer."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Nothing leaves this machine."""
        return None


class Workbench:
    """Serves the page; `first` is what every browser sees at the beginning: a puzzle, or an answer that plays."""

    def __init__(
        self,
        parse_grid: ParseGrid,
        first: Puzzle | Assembly,
        host: str = "127.0.0.1",
        port: int = 8080,
        make: MakeSolver = make_solver,
    ) -> None:
        self.parse_grid, self.first, self.make = parse_grid, first, make
        self.sessions: dict[int, Session] = {}
        self._lock = threading.Lock()
        self.server = Server(host=host, port=port, label="DiffAssemble", verbose=False)
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=BLUE)
        self.server.gui.main_panel.dock_right()
        self.server.on_client_connect(self._connected)
        self.server.on_client_disconnect(self._disconnected)

    @property
    def address(self) -> str:
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def stop(self) -> None:
        """End all sessions and the server."""
        for client in list(self.sessions):
            self._close(client)
        self.server.stop()

    def _connected(self, client: viser.ClientHandle) -> None:
        session = Session(client, Panel(client.gui, _solver_names(), bundled_models()))
        with self._lock:
            self.sessions[client.client_id] = session
        self._connect_controls(session)
        limit_uploads(client, check_size, session.tell_error)
        session.run(partial(self._begin, session))

    def _begin(self, session: Session) -> None:
        if isinstance(self.first, Puzzle):
            session.open(self.first)
            return
        session.open(self.first.puzzle)
        session.keep(self.first)
        session.playing = True

    async def _disconnected(self, client: viser.ClientHandle) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._close, client.client_id)

    def _close(self, client: int) -> None:
        with self._lock:
            session = self.sessions.pop(client, None)
        if session is not None:
            session.close()

    def _board(self, session: Session) -> Board | None:
        text = str(session.panel.grid.value).strip()
        return self.parse_grid(text) if text else None

    def _chosen_solver(self, session: Session) -> MakeSolver:
        """A maker of the solver that the panel asks for."""
        panel = session.panel
        name, model = (None if choice.value == DEFAULT else str(choice.value) for choice in (panel.solver, panel.model))
        return partial(self.make, name=name, options=SolverOptions(model or "", int(panel.samples.value)))

    def _connect_controls(self, session: Session) -> None:
        """Tell every control what to do; what takes long gets a thread of its own."""
        panel = session.panel

        def quick(action: Callable[[], None]) -> Callable[[viser.GuiEvent], None]:
            return lambda event: session.run(action) if event.client is not None else None

        def long(action: Callable[[], None]) -> Callable[[viser.GuiEvent], None]:
            return quick(lambda: threading.Thread(target=session.run, args=(action,), daemon=True).start())

        def answer_number() -> int:
            return int(str(panel.answer.value).split(":")[0]) - 1 if session.answers else -1

        def receive() -> None:
            file = panel.upload.value
            session.receive(Upload(file.name, file.content), str(panel.kind.value), self._board(session))

        panel.upload.on_upload(long(receive))
        panel.kind.on_update(quick(lambda: _suggest_grid(session)))
        panel.discard_collected.on_click(quick(session.discard_collected))
        panel.use_collected.on_click(long(lambda: session.use_collected(self._board(session))))
        panel.solve.on_click(long(lambda: session.solve(self._chosen_solver(session))))
        panel.cancel.on_click(quick(session.stop))
        panel.step.on_update(quick(lambda: _scrub(session)))
        panel.view.on_click(quick(lambda: _face(session)))
        panel.play.on_click(quick(lambda: _toggle(session)))
        panel.answer.on_update(quick(lambda: session.choose(answer_number())))
        panel.confidence.on_update(quick(session.colour))
        for button, correct in ((panel.lock, Editor.lock), (panel.turn, Editor.turn), (panel.undo, Editor.undo)):
            button.on_click(quick(partial(_correct, session, correct)))
        for wanted, button in panel.downloads.items():
            button.on_click(long(partial(session.download, wanted)))


def _suggest_grid(session: Session) -> None:
    session.panel.grid.value = suggested_grid(str(session.panel.kind.value))


def _scrub(session: Session) -> None:
    session.playing = False
    session.show_step(int(session.panel.step.value))


def _face(session: Session) -> None:
    if session.editor is not None:
        look_at(session.client, session.editor.puzzle)


def _toggle(session: Session) -> None:
    session.playing = not session.playing


def _correct(session: Session, correct: Callable[[Editor], None]) -> None:
    if session.editor is None or session.job is not None:
        raise InputError("wait until the solver is done, or cancel it")
    correct(session.editor)


def _solver_names() -> list[str]:
    """The solvers of all kinds, each name once."""
    return list(dict.fromkeys(name for kind in KINDS.values() for name in kind().solvers))
