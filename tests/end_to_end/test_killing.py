"""Killed by SIGKILL at random moments: nothing half written is taken for whole, and the same command goes on or begins
anew, to the same end; what the killed left behind is gone after that.

DIFFASSEMBLE_KILLS is the number of moments; the table of a long campaign is in docs/RELIABILITY.md.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import skimage.data
from PIL import Image

import diffassemble.training.jigsaw  # noqa: F401 (loaded once, for the child processes)

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("DIFFASSEMBLE_KILLS", 6))
TRAINING = (
    "--model.features 8 --model.width 32 --model.layers 1 --model.heads 2 --model.pose-width 16 --model.time-width 8 "
    "--data.grids 3 3 --data.favourite 3 --data.missing 0 --data.erode 0 --data.held-apart 1 --training.steps 30 "
    "--training.warmup 0 --training.pieces 45 --training.precision 32-true --training.validate-every 10 "
    "--training.checkpoint-minutes 0"
)
Start = Callable[..., tuple[int, Callable[[], Any]]]


def litter(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith((".part", ".old"))]


def seconds_of(start: Start, *words: str | Path) -> float:
    """How long a command takes that is left alone, and must go well."""
    began = time.monotonic()
    done = start(*words)[1]()
    assert done.code == 0, done.err
    return time.monotonic() - began


def killed(start: Start, after: float, *words: str | Path) -> bool:
    """Begin a command and kill it; whether it was still at work."""
    process, wait = start(*words)
    time.sleep(after)
    os.kill(process, signal.SIGKILL)
    return bool(wait().code == -signal.SIGKILL)


def test_solve_while_writing(start: Start, tmp_path: Path) -> None:
    photo, puzzle, out = tmp_path / "photo.png", tmp_path / "puzzle", tmp_path / "out"
    Image.fromarray(skimage.data.coffee()).save(photo)
    assert start("cut", photo, "--grid", "6x8", "--out", puzzle)[1]().code == 0
    words = ["solve", puzzle, "--solver", "random", "--out", out, "--overwrite"]
    whole = seconds_of(start, *words)
    names, answer = {path.name for path in out.iterdir()}, (out / "assembly.json").read_bytes()
    chance, hits = random.Random(0), 0
    for _ in range(KILLS):
        hits += killed(start, chance.uniform(0, whole), *words)
        # An earlier answer, or a new one, but never a part of one.
        assert (out / "assembly.json").read_bytes() == answer
        assert {path.name for path in out.iterdir()} <= names
    assert start(*words)[1]().code == 0
    assert {path.name for path in out.iterdir()} == names
    assert not litter(tmp_path)
    print(f"solve: {KILLS} kills, {hits} while at work")
    assert hits


def test_train_and_resume(start: Start, picture_folders: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["train", "jigsaw", *TRAINING.split(), "--data.folders", *picture_folders, "--out"]
    whole = seconds_of(start, *words, tmp_path / "whole")
    chance, hits, rounds = random.Random(1), 0, 0
    while hits < KILLS:
        rounds += 1
        out = tmp_path / f"run {rounds}"
        for _ in range(30):
            more = ["--resume"] if (out / "checkpoint.pt").exists() else []
            if not killed(start, chance.uniform(0, whole), *words, out, *more):
                break
            hits += 1
            if hits >= KILLS:
                break
        more = ["--resume"] if (out / "checkpoint.pt").exists() else []
        done = start(*words, out, *more)[1]()
        assert done.code == 0, done.err
        for name in ("last/model.safetensors", "best/model.safetensors"):
            assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
        assert not litter(out)
    print(f"train: {hits} kills in {rounds} runs, all weights as those of the run that was left alone")


def _scores(path: Path) -> list[Any]:
    """All lines without what the clock says, in the order of their cases."""
    found = []
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        entry["score"].pop("seconds")
        found.append(json.dumps(entry, sort_keys=True))
    return sorted(found)


@pytest.mark.parametrize("ray", [False, True])
def test_evaluate_and_go_on(picture_folders: tuple[Path, Path], tmp_path: Path, ray: bool) -> None:
    """In this machine's process or, by Ray, in several."""
    if ray:
        pytest.importorskip("ray")
    words = [sys.executable, "-m", "diffassemble", "evaluate", "--data", str(picture_folders[0]), "--grid", "3"]
    words += ["--size", "8", *(["--puzzles", "30", "--ray", "local"] if ray else ["--puzzles", "600"]), "--solver"]
    words += ["gallagher" if ray else "random", "--scores"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, "OMP_NUM_THREADS": "1"}}
    began = time.monotonic()
    subprocess.run([*words, str(tmp_path / "whole")], check=True, **quiet)  # type: ignore[call-overload]
    whole, expected = time.monotonic() - began, _scores(tmp_path / "whole")
    chance, hits, rounds = random.Random(2 + ray), 0, 0
    while hits < KILLS:
        rounds += 1
        scores = tmp_path / f"scores {rounds}"
        while hits < KILLS:
            child = subprocess.Popen([*words, str(scores)], **quiet)  # type: ignore[call-overload]
            time.sleep(chance.uniform(0, whole))
            child.kill()
            if child.wait() == 0:
                break
            hits += 1
        subprocess.run([*words, str(scores)], check=True, **quiet)  # type: ignore[call-overload]
        assert _scores(scores) == expected
    print(f"evaluate --scores, Ray {ray}: {hits} kills in {rounds} runs, every case once, all scores the same")


def serve(home: Path) -> tuple[subprocess.Popen[str], http.client.HTTPConnection, dict[str, str]]:
    """`diffassemble serve` with sessions in a folder of its own, a connection to it, and the cookie with its token."""
    words = [sys.executable, "-u", "-m", "diffassemble", "serve", "--port", "0"]
    kept = {**os.environ, "XDG_CACHE_HOME": str(home)}
    process = subprocess.Popen(words, env=kept, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    address = urlsplit(process.stdout.readline().split()[-1])
    cookie = {"Cookie": f"diffassemble-{address.port}={address.query.removeprefix('token=')}"}
    return process, http.client.HTTPConnection(address.hostname or "", address.port, timeout=60), cookie


def test_serve_with_an_upload(tmp_path: Path) -> None:
    content, chance = random.Random(4).randbytes(3_000_000), random.Random(5)
    process, asked, cookie = serve(tmp_path)
    asked.request("GET", "/", headers=cookie)
    session = str(asked.getresponse().getheader("location"))
    asked.close()
    uploads = tmp_path / "diffassemble" / "workbench" / session.split("/")[-1] / "uploads"
    asked.request("POST", f"{session}/upload?name=first.png", content, cookie)
    assert asked.getresponse().status == 200
    for _ in range(KILLS):
        asked.close()
        asked.putrequest("POST", f"{session}/upload?name=second.png")
        for name, value in {**cookie, "Content-Length": str(len(content))}.items():
            asked.putheader(name, value)
        asked.endheaders(content[: chance.randrange(100_000, len(content))])
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.wait()
        process, asked, cookie = serve(tmp_path)
        # What had arrived is there; the rest is not, and can be sent again.
        assert (uploads / "first.png").read_bytes() == content
        assert not (uploads / "second.png").exists()
    asked.request("POST", f"{session}/upload?name=second.png", content, cookie)
    assert asked.getresponse().status == 200
    assert sorted(path.name for path in uploads.iterdir()) == ["first.png", "second.png"]
    process.kill()
    process.wait()
