"""The workbench's server: the page, the files of each session, and the guard before all of it."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from nicegui import app as pages
from nicegui import ui
from starlette.requests import ClientDisconnect

from diffassemble.assembly.answer import Answer
from diffassemble.core import InputError, Puzzle
from diffassemble.io.atomic import cache_folder, write_file
from diffassemble.io.reading import reason
from diffassemble.kinds import make_solver
from diffassemble.web import CONFIG, stages, transfers
from diffassemble.web.guard import Guard, is_loopback
from diffassemble.web.jobs import warm_up
from diffassemble.web.page import View, show_missing
from diffassemble.web.session import MakeSolver, Session, Sessions

_TOKEN = "token"
_PNG, _BYTES = "image/png", "application/octet-stream"
_MISSING = HTTPException(404, "this work is no longer here")
# Pieces never change under their address.
_KEEP, _NEVER = {"cache-control": "private, max-age=86400, immutable"}, {"cache-control": "no-store"}


@dataclass(frozen=True)
class First:
    """What `serve` begins with."""

    title: str
    puzzle: Puzzle | Answer


class Workbench:
    """Serves the page in a thread of its own; a new session begins with `first`, or with nothing."""

    def __init__(
        self,
        first: First | None = None,
        host: str = "127.0.0.1",
        port: int = 8080,
        make: MakeSolver = make_solver,
        home: Path | None = None,
        patience: float = CONFIG.patience,
    ) -> None:
        self.first, self.host, self.patience = first, host, patience
        self._socket = _listening(host, port)
        self.port = int(self._socket.getsockname()[1])
        home = home or cache_folder() / "workbench"
        self.sessions = Sessions(home, make)
        self.token = _token(home, bool(list(home.glob("*/"))))
        app = FastAPI(openapi_url=None)
        self._add_routes(app)
        ui.page("/work/{name}", title="DiffAssemble", dark=None, language="en-US")(self._page)
        ui.run_with(app, title="DiffAssemble", reconnect_timeout=4, tailwind=False, show_welcome_message=False)
        self.guard = Guard(app, host, self.port, self.token)
        settings: dict[str, Any] = {"log_level": "error", "ws_max_size": 4_000_000, "timeout_graceful_shutdown": 2}
        self._server = uvicorn.Server(uvicorn.Config(self.guard, **settings, server_header=False))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        threading.Thread(target=warm_up, daemon=True).start()
        while not self._server.started and self._thread.is_alive():
            time.sleep(0.02)

    @property
    def address(self) -> str:
        """What to open: with the token, without which nothing is served."""
        shown = self.host if self.host not in ("0.0.0.0", "::") else _own_number()
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{self.port}/?token={self.token}"

    @property
    def local(self) -> bool:
        """Whether only this computer reaches it."""
        return is_loopback(self.host)

    def stop(self) -> None:
        """End all work and the server; what people have stays in their folders."""
        self.sessions.close()
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()

    def _add_routes(self, app: FastAPI) -> None:
        app.get("/")(self._begin)
        app.get("/stage.js")(_shared_script)
        app.get("/samples/{name}.png")(_sample)
        app.post("/work/{name}/upload")(self._upload)
        app.get("/work/{name}/found.png")(self._found)
        app.get("/work/{name}/pieces/{generation}/{file}")(self._piece)
        app.get("/work/{name}/file/{file}")(self._file)
        pages.on_startup(self._look_after)

    async def _look_after(self) -> None:
        """While the server runs, end work without a page, and remove what is older than a day."""
        before = 0
        while True:
            await asyncio.sleep(CONFIG.sweep)
            await asyncio.to_thread(self.sessions.retire, self.patience)
            await asyncio.to_thread(self.sessions.sweep)
            if len(self.sessions.open) < before:
                await asyncio.to_thread(_give_back)
            before = len(self.sessions.open)

    def _begin(self, request: Request) -> Response:
        """A new session; its page links to the user's earlier one."""
        cookie = f"diffassemble-last-{self.port}"
        before = request.cookies.get(cookie, "")
        session = self.sessions.new()
        if self.first is not None:
            given, title = self.first.puzzle, self.first.title
            session.begin(given, title) if isinstance(given, Answer) else session.open(given, title)
        known = self.sessions.find(before) if before else None
        query = f"?before={before}" if known is not None and known.now is not None else ""
        answer = RedirectResponse(f"/work/{session.name}{query}", 303, _NEVER)
        answer.set_cookie(cookie, session.name, max_age=86400, httponly=True, samesite="strict")
        return answer

    async def _page(self, name: str, before: str = "") -> None:
        session = self.sessions.find(name)
        if session is None:
            show_missing()
        else:
            View(session, self.sessions, before if self.sessions.find(before) else "").build()

    async def _upload(self, name: str, request: Request) -> Response:
        session = self._known(name)
        try:
            session.make_folder()
            # One after another, since each takes what room the others leave.
            async with session.receiving:
                await transfers.receive(request.query_params.get("name", ""), request.stream(), session.uploads)
        except InputError as error:
            return PlainTextResponse(str(error), 413)
        except ClientDisconnect:
            return Response(status_code=400)
        finally:
            session.changed()
        return Response()

    def _found(self, name: str) -> Response:
        found = self._known(name).found
        return Response(found, media_type=_PNG) if found is not None else Response(status_code=404)

    def _piece(self, name: str, generation: str, file: str) -> Response:
        session = self._known(name)
        puzzle = session.puzzle
        if puzzle is None or generation != session.generation:
            return Response(status_code=404)
        if file == "board.json":
            return JSONResponse(stages.description(puzzle), headers=_KEEP)
        if file == "gaps.bin" and not puzzle.pieces.flat and session.now is not None:
            return Response(stages.gaps(puzzle, session.now.poses), media_type=_BYTES, headers=_NEVER)
        number, _, ending = file.partition(".")
        if not number.isdecimal() or int(number) >= len(puzzle) or (ending == "png") is not puzzle.pieces.flat:
            return Response(status_code=404)
        if puzzle.pieces.flat:
            return Response(stages.picture_of(puzzle, int(number)), media_type=_PNG, headers=_KEEP)
        return Response(stages.shape_of(puzzle, int(number)), media_type=_BYTES, headers=_KEEP)

    def _file(self, name: str, file: str) -> Response:
        """What the page made to be downloaded."""
        made = self._known(name).made
        if made is None or made[0] != file:
            return Response(status_code=404)
        return Response(made[1], media_type=_BYTES, headers={"content-disposition": f'attachment; filename="{file}"'})

    def _known(self, name: str) -> Session:
        session = self.sessions.find(name)
        if session is None:
            raise _MISSING
        return session


def _give_back() -> None:
    """Return memory of what is gone to the system, which glibc keeps otherwise; other C libraries have no such call."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _shared_script() -> Response:
    return Response((files("diffassemble.web") / "stage.js").read_bytes(), media_type="text/javascript")


def _sample(name: str) -> Response:
    if name not in transfers.SAMPLES:
        raise _MISSING
    picture = files("diffassemble.web") / "pictures" / f"{name}.png"
    return Response(picture.read_bytes(), media_type=_PNG, headers=_KEEP)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; refuses in one line."""
    if not 0 <= port <= 65535:
        raise InputError(f"port {port} is none; pass --port with a number from 1 to 65535")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise InputError(f"host {host!r} is not known here ({reason(error)}); pass --host 127.0.0.1") from error
    made = socket.socket(family[0], socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(family[4])
        made.listen(100)
    except OSError as error:
        made.close()
        advice = "pass another --port or --host"
        raise InputError(f"cannot listen at {host}, port {port} ({reason(error)}); {advice}") from error
    return made


def _token(home: Path, needed: bool) -> str:
    """The token in the address: random, and the same after a restart as long as there are sessions."""
    file = home / _TOKEN
    with suppress(OSError):
        kept = file.read_text() if needed else ""
        if len(kept) >= 32:
            return kept
    token = secrets.token_urlsafe(32)
    write_file(file, token.encode())
    file.chmod(0o600)
    return token


def _own_number() -> str:
    """The address of this computer in its network, as far as that can be found out without sending anything."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "127.0.0.1"
