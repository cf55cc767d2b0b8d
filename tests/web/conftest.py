"""A workbench, and browsers that open it: Debian's chromium with WebGL in software; without it these tests skip."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import skimage.data
from PIL import Image

from diffassemble.core import Puzzle
from diffassemble.core.solver import assemble
from diffassemble.kinds import make_solver
from diffassemble.web.server import Workbench
from diffassemble.web.session import Session

sys.path.insert(0, str(Path(__file__).parent))
import troublesome
from browsing import HEIGHT, PATIENCE, WIDTH

OPEN: list[Any] = []
CHROMIUM = shutil.which("chromium")
WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox")


@pytest.fixture(scope="session")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The only folder where temporary files may appear."""
    before, folder = tempfile.tempdir, tmp_path_factory.mktemp("temporary")
    tempfile.tempdir = str(folder)
    yield folder
    tempfile.tempdir = before


@pytest.fixture(scope="session")
def workbench(temporary: Path, cut: Callable[..., Puzzle]) -> Iterator[Workbench]:
    """A workbench that opens on a picture of 3 × 3 pieces."""
    answer = assemble(cut(3, 3, size=32), make_solver("squares", "gallagher"))
    served = Workbench(answer, port=8731, make=troublesome.make)
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


@pytest.fixture(scope="session")
def open_page(workbench: Workbench, chromium: Any) -> Callable[[], Any]:
    """Open the page in a browser of its own; gives the page, ready to be used."""

    def opened() -> Any:
        context = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT}, accept_downloads=True)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(workbench.address)
        page.get_by_text("pieces right").wait_for()
        return page

    return opened


@pytest.fixture(scope="session")
def page(open_page: Callable[[], Any]) -> Any:
    """A page that several tests use one after the other, as people do."""
    return open_page()


@pytest.fixture
def session(page: Any, workbench: Workbench) -> Session:
    """The server's side of that page."""
    return next(iter(workbench.sessions.values()))


@pytest.fixture(scope="session")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photograph as people upload it."""
    path = tmp_path_factory.mktemp("photos") / "astronaut.jpg"
    Image.fromarray(skimage.data.astronaut()).resize((256, 256)).save(path, quality=95)
    return path
