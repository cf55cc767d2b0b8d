"""`diffassemble serve` prints its address, serves its own user only, ends on signals, and keeps work."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from diffassemble.io.puzzles import write_puzzle
from diffassemble.squares.cut import cut_image


def started(home: Path, *words: str | Path) -> tuple[subprocess.Popen[str], str]:
    """A server, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "diffassemble", "serve", *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(home)},
        # Whoever runs the tests in the background may have told its children to ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    line = ""
    while "the workbench is at" not in line:
        line = process.stdout.readline()
        assert line or process.poll() is None
    assert "nothing that you upload leaves this machine" in process.stdout.readline()
    return process, line.split()[-1]


def fetch(address: str, path: str, cookies: str = "") -> tuple[int, dict[str, str], str]:
    """Status, headers and content of a page."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", path, headers={"Cookie": cookies})
    answer = connection.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()


def test_work_outlives_the_server_and_only_its_user_sees_it(photo: Path, tmp_path: Path) -> None:
    write_puzzle(cut_image(photo, 2, 3), tmp_path / "puzzle")
    process, address = started(tmp_path / "home", tmp_path / "puzzle", "--port", "8791")
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:8791/\?token=[\w-]{43}", address)
        assert fetch(address, "/")[0] == 403
        status, headers, _ = fetch(address, address[len("http://127.0.0.1:8791") :])
        assert (status, headers["location"]) == (303, "/")
        cookies = headers["set-cookie"].split(";")[0]
        status, headers, _ = fetch(address, "/", cookies)
        work = headers["location"]
        assert fetch(address, work, cookies)[0] == 200
        assert fetch(address, work)[0] == 403
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 130
    process, again = started(tmp_path / "home", "--port", "8791")
    try:
        assert again == address
        status, _, page = fetch(address, work, cookies)
        assert status == 200
        assert "no longer here" not in page
        assert "no longer here" in fetch(address, "/work/unknown", cookies)[2]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def test_bad_pieces_and_places_are_refused(command: Callable[..., Any], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for words, message in (
            ((tmp_path,), "has no pictures"),
            (("--port", "99999"), "--port 99999: must be"),
            (("--port", "-1"), "--port -1: must be"),
            (("--host", "256.1.1.1"), "host '256.1.1.1' is not known here"),
            (("--host", "192.0.2.1"), "cannot listen at 192.0.2.1"),
            (("--port", str(taken.getsockname()[1])), "pass another --port"),
        ):
            done = command("serve", *words)
            assert done.code == 2
            assert message in done.err
            assert done.err.count("\n") == 1
