"""The workbench's server: one session for every browser, and nothing shared between them but the example."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from importlib.resources import files

import viser

from diffassemble.core import Assembly, Puzzle
from diffassemble.core.kind import SolverOptions
from diffassemble.core.solver import assemble
from diffassemble.kinds import KINDS, make_solver
from diffassemble.network.pretrained import bundled_models
from diffassemble.squares.cut import cut_image
from diffassemble.web.editing import Editor
from diffassemble.web.panel import Panel
from diffassemble.web.session import MakeSolver, Session
from diffassemble.web.transfers import limit_uploads


def example_answer() -> Assembly:
    """A photograph that scikit-image brings with it, cut and solved."""
    puzzle = cut_image(str(files("skimage.data") / "astronaut.png"), 5, 5, size=64)
    return assemble(puzzle, make_solver("squares", "diffusion", SolverOptions(samples=2)))


class Server(viser.ViserServer):
    """viser, without its way to share a page through somebody else's computer."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        """Nothing leaves this machine."""
        return None


class Workbench:
    """Serves the page; `first` is what every browser sees at the beginning: a puzzle, or an answer that plays."""

    def __init__(
        self, first: Puzzle | Assembly, host: str = "127.0.0.1", port: int = 8080, make: MakeSolver = make_solver
    ) -> None:
        self.first, self.make = first, make
        self.sessions: dict[int, Session] = {}
        self.server = Server(host=host, port=port, label="DiffAssemble", verbose=False)
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(38, 110, 178))
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
        solvers = dict.fromkeys(name for kind in KINDS.values() for name in kind().solvers)
        session = Session(client, Panel(client.gui, list(solvers), bundled_models()), self.make)
        self.sessions[client.client_id] = session
        _connect_controls(session)
        limit_uploads(client, session.tell_error)
        session.run(partial(session.begin, self.first))

    async def _disconnected(self, client: viser.ClientHandle) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._close, client.client_id)

    def _close(self, client: int) -> None:
        if (session := self.sessions.pop(client, None)) is not None:
            session.close()


def _connect_controls(session: Session) -> None:
    """Tell every control what to do; what takes long gets a thread of its own."""
    panel = session.panel

    def quick(action: Callable[[], None]) -> Callable[[viser.GuiEvent], None]:
        return lambda event: session.run(action) if event.client is not None else None

    def long(action: Callable[[], None]) -> Callable[[viser.GuiEvent], None]:
        return quick(lambda: threading.Thread(target=session.run, args=(action,), daemon=True).start())

    panel.kind.on_update(quick(panel.suggest_grid))
    panel.upload.on_upload(long(session.receive))
    panel.discard_collected.on_click(quick(session.discard_collected))
    panel.use_collected.on_click(long(session.use_collected))
    panel.solve.on_click(long(session.solve))
    panel.cancel.on_click(quick(session.stop))
    panel.step.on_update(quick(session.scrub))
    panel.play.on_click(quick(session.toggle_playing))
    panel.view.on_click(quick(session.look_straight))
    panel.answer.on_update(quick(session.choose))
    panel.confidence.on_update(quick(session.colour))
    for button, correction in ((panel.lock, Editor.lock), (panel.turn, Editor.turn), (panel.undo, Editor.undo)):
        button.on_click(quick(partial(session.correct, correction)))
    for wanted, button in panel.downloads.items():
        button.on_click(long(partial(session.download, wanted)))
