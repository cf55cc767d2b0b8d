"""The workbench's server: one session for every browser, and nothing shared between them but the example."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import skimage.data
import torch
import viser
from viser import _messages

from diffassemble.core import Assembly, Board, InputError, Puzzle, Solver
from diffassemble.core.solver import assemble
from diffassemble.kinds import SOLVERS, make_solver, solver_for
from diffassemble.network.pretrained import bundled_models
from diffassemble.squares.cut import cut_picture
from diffassemble.web.panel import USUAL, build_panel
from diffassemble.web.scene import look_at
from diffassemble.web.session import Visit
from diffassemble.web.uploads import MOST_BYTES, Upload, too_large, usual_grid

# ----------------------------------------------------------------------------------------------------------------------
# What a visitor sees first: a sample picture that is being put together.


def example_answer() -> Assembly:
    """A photograph that scikit-image brings with it, cut and solved."""
    picture = torch.from_numpy(skimage.data.astronaut()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(picture, Board(5, 5), torch.Generator().manual_seed(0), size=64)
    return assemble(puzzle, make_solver("diffusion", samples=2))


# ----------------------------------------------------------------------------------------------------------------------
# The workbench's server: one visit for every browser, and nothing shared between them but the example.


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
        make: MakeSolver = solver_for,
    ) -> None:
        self.parse_grid, self.first, self.make = parse_grid, first, make
        self.visits: dict[int, Visit] = {}
        self._guard = threading.Lock()
        self.server = Server(host=host, port=port, label="DiffAssemble", verbose=False)
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=BLUE)
        self.server.gui.main_panel.dock_right()
        self.server.on_client_connect(self._welcome)
        self.server.on_client_disconnect(self._farewell)

    @property
    def address(self) -> str:
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def stop(self) -> None:
        """End all visits and the server."""
        for client in list(self.visits):
            self._leave(client)
        self.server.stop()

    def _welcome(self, client: viser.ClientHandle) -> None:
        panel = build_panel(client.gui, list(SOLVERS), bundled_models())
        visit = Visit(client, panel)
        with self._guard:
            self.visits[client.client_id] = visit
        self._wire(visit)
        _refuse_large_uploads(visit)
        visit.guarded(partial(self._begin, visit))

    def _begin(self, visit: Visit) -> None:
        if isinstance(self.first, Puzzle):
            visit.open(self.first)
            return
        visit.open(self.first.puzzle)
        visit.keep(self.first)
        visit.playing = True

    async def _farewell(self, client: viser.ClientHandle) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._leave, client.client_id)

    def _leave(self, client: int) -> None:
        with self._guard:
            visit = self.visits.pop(client, None)
        if visit is not None:
            visit.close()

    def _board(self, visit: Visit) -> Board | None:
        text = str(visit.panel.grid.value).strip()
        return self.parse_grid(text) if text else None

    def _settings(self, visit: Visit) -> tuple[MakeSolver, str]:
        """A maker of the solver that is asked for, and what to call it."""
        panel = visit.panel
        name, model = (None if choice.value == USUAL else str(choice.value) for choice in (panel.solver, panel.model))
        label = name or ("hybrid" if visit.work is not None and visit.work.puzzle.lattice is not None else "diffusion")
        return partial(self.make, name=name, model=model, samples=int(panel.samples.value)), label

    def _wire(self, visit: Visit) -> None:
        """Tell every control what to do; what takes long gets a thread of its own."""
        panel = visit.panel

        def quick(action: Callable[[], None]) -> Callable[[viser.GuiEvent], None]:
            return lambda event: visit.guarded(action) if event.client is not None else None

        def long(action: Callable[[], None]) -> Callable[[viser.GuiEvent], None]:
            return quick(lambda: threading.Thread(target=visit.guarded, args=(action,), daemon=True).start())

        def answer_number() -> int:
            return int(str(panel.answer.value).split(":")[0]) - 1 if visit.answers else -1

        def receive() -> None:
            file = panel.upload.value
            visit.receive(Upload(file.name, file.content), str(panel.kind.value), self._board(visit))

        panel.upload.on_upload(long(receive))
        panel.kind.on_update(quick(lambda: _suggest_grid(visit)))
        panel.restart.on_click(quick(visit.forget_sent))
        panel.collected.on_click(long(lambda: visit.use_sent(self._board(visit))))
        panel.solve.on_click(long(lambda: visit.solve(*self._settings(visit))))
        panel.cancel.on_click(quick(visit.stop))
        panel.moment.on_update(quick(lambda: _scrub(visit)))
        panel.view.on_click(quick(lambda: _face(visit)))
        panel.play.on_click(quick(lambda: _toggle(visit)))
        panel.answer.on_update(quick(lambda: visit.choose(answer_number())))
        panel.confidence.on_update(quick(visit.paint))
        for button, action in (("lock", "lock"), ("turn", "turn"), ("undo", "undo")):
            getattr(panel, button).on_click(quick(partial(_correct, visit, action)))
        panel.everything.on_click(long(lambda: visit.send(())))
        panel.picture.on_click(long(lambda: visit.send(("assembled.glb", "assembled.png"))))
        panel.document.on_click(long(lambda: visit.send(("assembly.json",))))
        panel.animation.on_click(long(lambda: visit.send(("steps.gif",))))


def _suggest_grid(visit: Visit) -> None:
    visit.panel.grid.value = usual_grid(str(visit.panel.kind.value))


def _scrub(visit: Visit) -> None:
    visit.playing = False
    visit.look(int(visit.panel.moment.value))


def _face(visit: Visit) -> None:
    if visit.work is not None:
        look_at(visit.client, visit.work.puzzle)


def _toggle(visit: Visit) -> None:
    visit.playing = not visit.playing


def _correct(visit: Visit, action: str) -> None:
    if visit.work is None or visit.job is not None:
        raise InputError("wait until the solver is done, or cancel it")
    getattr(visit.work, action)()


def _refuse_large_uploads(visit: Visit) -> None:
    """Drop uploads beyond the limit when they begin: viser would keep all of their bytes in memory first."""
    gui = visit.client.gui

    def check(_: int, message: _messages.FileTransferStartUpload) -> None:
        if message.size_bytes > MOST_BYTES:
            gui._current_file_upload_states.pop(message.transfer_uuid, None)
            visit.complain(str(too_large(message.filename, message.size_bytes)))

    gui._websock_interface.register_handler(_messages.FileTransferStartUpload, check)
