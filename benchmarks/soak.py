"""Many browsers at once use the workbench for a while: does it live on, give memory back, and leave nothing behind?

    python benchmarks/soak.py [--browsers 20] [--minutes 10] [--seed 0]

Each browser is a private window of Debian's chromium, which must be installed. They open samples, upload a photograph
and junk, solve, cancel, reload, and are cut off without a word; pages of another site ask as well. At the end all
forget their work and leave. Prints what was done, the server's memory before, during and after, and what is left.
"""

from __future__ import annotations

import argparse
import http.client
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox")
SAMPLES = ("Photo in squares", "Jigsaw with tabs", "Broken bowl")
# Milliseconds that a busy machine may take for an action before it counts as failed.
PATIENCE = 60_000
# The same for leaving: a page that has opened nothing has nothing to forget.
LEAVING = 15_000
# Seconds after which a server ends the work of sessions that nobody looks at, and some more.
AFTERWARDS = 120


class Server:
    """`diffassemble serve` in a process and a folder of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        command = [sys.executable, "-u", "-m", "diffassemble", "serve", "--port", "0"]
        settings = {**os.environ, "XDG_CACHE_HOME": str(home)}
        self.process = subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=None, text=True)
        assert self.process.stdout is not None
        told = re.search(r"http://\S+", self.process.stdout.readline())
        assert told is not None, "the server did not start"
        self.address = told[0]

    @property
    def megabytes(self) -> int:
        """Memory of the server itself, without the mapped files of libraries; solvers are processes of their own."""
        told = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"RssAnon:\s+(\d+)", told)
        assert found is not None
        return int(found[1]) // 1024

    @property
    def left(self) -> list[str]:
        """Folders of sessions that are still there."""
        return sorted(one.name for one in (self.home / "diffassemble" / "workbench").glob("*/"))

    def refuses(self) -> bool:
        """Whether a page of another site is refused."""
        place = urlsplit(self.address)
        asking = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        asking.request("GET", f"/?{place.query}", headers={"Origin": "http://evil.example.com"})
        return asking.getresponse().status == 403


class Visitors:
    """Browsers that do what people do, at random."""

    def __init__(self, browser: Any, server: Server, many: int, chance: random.Random, junk: Path) -> None:
        self.browser, self.server, self.many, self.chance, self.junk = browser, server, many, chance, junk
        self.pages: list[Any] = []
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    def act(self) -> None:
        """One of them does something, or another one comes."""
        name = "come"
        try:
            if len(self.pages) < self.many:
                self._come()
            else:
                name, page = "act", self.chance.choice(self.pages)
                name = self._choose(page)
            self.done[name] += 1
        except Exception as error:
            self.failed[f"{name}: {str(error).splitlines()[0]}"] += 1

    def _come(self) -> None:
        page = self.browser.new_context(viewport={"width": 900, "height": 700}).new_page()
        page.set_default_timeout(PATIENCE)
        self.pages.append(page)
        page.goto(self.server.address)

    def _choose(self, page: Any) -> str:
        started = page.get_by_text("Or try a sample").count() > 0
        solve, cancel = (page.get_by_role("button", name=name, exact=True) for name in ("Solve", "Cancel"))
        fate = self.chance.random()
        if fate < 0.12:
            self.pages.remove(page)
            page.context.close()
            return "cut off"
        if fate < 0.22:
            page.reload()
            return "reload"
        if started and fate < 0.6:
            page.get_by_role("button", name=self.chance.choice(SAMPLES)).click()
            return "open a sample"
        if started:
            photo = Path(str(files("skimage.data") / "coffee.png"))
            page.locator("input[type=file]").set_input_files([self.chance.choice([photo, self.junk])])
            return "upload"
        if cancel.count() and fate < 0.6:
            cancel.first.click()
            return "cancel"
        if solve.count() and solve.first.is_enabled():
            solve.first.click()
            return "solve"
        return "look"

    def leave(self) -> None:
        """All forget their work and go."""
        for page in self.pages:
            try:
                page.set_default_timeout(LEAVING)
                forget = page.get_by_role("button", name="Forget my work")
                if forget.count():
                    forget.click()
                    page.get_by_role("button", name="Forget", exact=True).click()
                    self.done["forget"] += 1
            except Exception as error:
                self.failed[f"forget: {str(error).splitlines()[0]}"] += 1
            page.context.close()


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browsers", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        server = Server(Path(home))
        junk = Path(home) / "junk.png"
        junk.write_bytes(b"\x89PNG\r\n" + random.Random(options.seed).randbytes(100_000))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(WEBGL))
        # One visitor opens every sample before memory is first looked at: what is loaded once is no growth.
        warm = Visitors(browser, server, len(SAMPLES), random.Random(options.seed), junk)
        for sample in SAMPLES:
            warm.act()
            warm.pages[-1].get_by_role("button", name=sample).click()
            warm.pages[-1].get_by_role("button", name="Solve", exact=True).first.wait_for()
        warm.leave()
        begun, most, refused = server.megabytes, 0, 0
        visitors = Visitors(browser, server, options.browsers, random.Random(options.seed), junk)
        start, told = time.monotonic(), 0.0
        while (passed := (time.monotonic() - start) / 60) < options.minutes:
            visitors.act()
            most = max(most, server.megabytes)
            refused += server.refuses()
            if passed - told >= 1:
                told = passed
                print(f"{passed:.0f} min: {visitors.done.total()} done, {server.megabytes} MB", flush=True)
        visitors.leave()
        browser.close()
        time.sleep(AFTERWARDS)
        print(f"done: {dict(visitors.done)}; another site asked {refused} times and was refused")
        print(f"failed: {dict(visitors.failed)}")
        print(
            f"server alive: {server.process.poll() is None}; memory {begun} MB, at most {most}, then {server.megabytes}"
        )
        children = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=False)
        print(f"processes left: {len(children.stdout.split())}; folders left: {len(server.left)}")
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
