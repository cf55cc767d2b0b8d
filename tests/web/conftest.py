"""A workbench, and browsers that open it: Debian's chromium with WebGL in software; without it these tests skip."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import skimage.data
from PIL import Image

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.core import Puzzle
from diffassemble.kinds import make_solver
from diffassemble.web.server import Workbench
from diffassemble.web.session import Session

sys.path.insert(0, str(Path(__file__).parent))
import troublesome
from browsing import DESKTOP, PATIENCE

OPEN: list[Any] = []
CHROMIUM = shutil.which("chromium")
WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox")


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A workbench with quick and with troublesome solvers."""
    served = Workbench(port=0, make=troublesome.make, home=tmp_path_factory.mktemp("sessions"))
    yield served
    served.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium here; install it to try the page in a browser")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(WEBGL))
        OPEN.append(browser)
        yield browser
        browser.close()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the browser after the last test in it: an open page draws on, though nobody looks."""
    if nextitem is None or "workbench" not in getattr(nextitem, "fixturenames", ()):
        while "workbench" in getattr(item, "fixturenames", ()) and OPEN:
            OPEN.pop().close()


@pytest.fixture
def open_page(workbench: Workbench, chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open the page, or that of a session, in a browser of its own; nothing may go wrong on it, or come from afar."""
    contexts, wrong = [], []

    def opened(session: Session | None = None, address: str | None = None, **size: Any) -> Any:
        context = chromium.new_context(**{**DESKTOP, **size}, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("response", lambda came: wrong.append(came.url) if came.status in (404, 500) else None)
        page.on("request", lambda sent: wrong.append(sent.url) if "//127.0.0.1:" not in sent.url[:20] else None)
        address = address or workbench.address
        page.goto(address if session is None else address.replace("/?", f"/work/{session.name}?"))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [one for one in wrong if not one.startswith(("data:", "blob:"))] == []


@pytest.fixture(scope="session")
def answer(cut: Callable[..., Puzzle]) -> Answer:
    """A picture of 3 × 3 pieces, solved."""
    return assemble(cut(3, 3, size=40), make_solver("squares", "gallagher"))


@pytest.fixture
def session(workbench: Workbench, answer: Answer) -> Session:
    """A session that shows that answer."""
    session = workbench.sessions.new()
    session.begin(answer, "coffee")
    return session


@pytest.fixture(scope="session")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photograph as people upload it."""
    path = tmp_path_factory.mktemp("photos") / "astronaut.jpg"
    Image.fromarray(skimage.data.astronaut()).resize((256, 256)).save(path, quality=95)
    return path
