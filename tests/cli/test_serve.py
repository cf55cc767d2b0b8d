"""`diffassemble serve` says where it is, listens only here, and goes when it is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import viser

from diffassemble.files.puzzles import write_puzzle
from diffassemble.squares.cut import cut_image


def test_it_prints_its_address(photo: Path, tmp_path: Path) -> None:
    write_puzzle(cut_image(photo, 2, 3), tmp_path / "puzzle")
    words = [sys.executable, "-m", "diffassemble", "serve", str(tmp_path / "puzzle"), "--port", "8791"]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # Whoever runs the tests in the background may have told its children to ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stdout is not None
        line = ""
        while "the workbench is at" not in line:
            line = process.stdout.readline()
            assert line or process.poll() is None
        address = line.split()[-1]
        assert address.startswith("http://127.0.0.1:")
        assert "nothing that you upload leaves this machine" in process.stdout.readline()
        with urllib.request.urlopen(address) as page:
            assert page.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def test_it_tidies_up_when_it_is_told_to_go(start: Callable[..., Any], photo: Path, tmp_path: Path) -> None:
    """Those who manage services send SIGTERM."""
    write_puzzle(cut_image(photo, 2, 3), tmp_path / "puzzle")

    def told_to_go(_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    def prepare() -> None:
        viser.ViserServer.sleep_forever = told_to_go

    done = start("serve", tmp_path / "puzzle", "--port", "8795", prepare=prepare)[1]()
    assert done.code == 130, done.err
    assert "the workbench is at http://127.0.0.1:" in done.out


def test_bad_pieces_are_refused(command: Callable[..., Any], tmp_path: Path) -> None:
    done = command("serve", tmp_path)
    assert done.code == 2
    assert "has no pictures" in done.err
