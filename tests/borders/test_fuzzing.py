"""Valid files of every format that is read, changed at random: each becomes something valid, or is refused in one line.

A few seconds in all here; `make test-slow` goes on for DIFFASSEMBLE_FUZZING examples.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.borders.conftest import Given, mesh_files, picture_files

from diffassemble.core import InputError
from diffassemble.evaluation.outlines import read_recorded
from diffassemble.io.archives import unpacked
from diffassemble.io.assemblies import read_assembly
from diffassemble.io.meshes import read_precisely
from diffassemble.io.pictures import read_cutout, read_picture
from diffassemble.io.puzzles import open_input, read_puzzle
from diffassemble.network.denoiser import Denoiser
from diffassemble.training.config import read_config
from diffassemble.training.presets import PRESETS
from diffassemble.training.run_folder import read_checkpoint

SHORT, LONG = 15, int(os.environ.get("DIFFASSEMBLE_FUZZING", 2000))
MOST_SECONDS, MOST_KILOBYTES = 10.0, 2_000_000
# What parsers have limits for, and what texts and numbers are made of.
TOKENS = (
    *(b"0", b"-1", b"9" * 30, b"1e308", b"nan", b"inf", b"2147483648", b"4294967295", b"\0", b"\n", b"[", b"]", b"{"),
    *(b"}", b'"', b",", b":", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", b"\x80", b"../", b"null"),
)
FORMATS = [*dict(mesh_files()), *dict(picture_files()), "pieces.zip"]
DOCUMENTS = [
    *(f"{kind}/{name}" for kind in ("squares", "outlines", "fragments") for name in ("puzzle.json", "truth.json")),
    *(f"{kind}-solved/assembly.json" for kind in ("squares", "outlines", "fragments")),
]
OTHERS = ["model/config.json", "model/model.safetensors", "checkpoint.pt", "run/config.json", "truth.csv"]


def changed(content: bytes, seed: int) -> bytes:
    """The same bytes after a few changes: flipped, cut out, doubled, moved, or with something put in."""
    chance, found = random.Random(seed), bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        # Heads have the most fields.
        end = min(len(found), chance.choice((64, 512, len(found))))
        start = chance.randrange(end) if end else 0
        length = chance.choice((1, 2, 4, 16, 200))
        way = chance.randrange(6)
        if way == 0 and found:
            found[start] ^= 1 << chance.randrange(8)
        elif way == 1:
            del found[start : start + length]
        elif way == 2:
            found[start:start] = found[start : start + length] * chance.choice((1, 3, 50))
        elif way == 3:
            token = chance.choice(TOKENS)
            found[start : start + len(token)] = token
        elif way == 4:
            found[start:start] = chance.choice(TOKENS)
        else:
            found[start : start + length] = chance.randbytes(length)
    return bytes(found)


def check(read: Callable[[], object], what: str) -> None:
    """It reads, or says in one line why not; within the limits of time and memory."""
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(InputError):
            read()
    assert time.process_time() - began < MOST_SECONDS, what
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KILOBYTES, what


def _read(path: Path) -> None:
    """Read a file as its name asks for."""
    if path.suffix == ".zip":
        with unpacked(path) as folder:
            assert folder.is_dir()
    elif path.name.startswith("photo"):
        read_picture(path)
        read_cutout(path)
    else:
        read_precisely(path)


def _tried(name: str, given_: Given, folder: Path, seed: int) -> None:
    """Change one of the valid files and read it, or what it is part of."""
    if name in FORMATS:
        path = folder / name
        path.write_bytes(changed((given_.folder / "files" / name).read_bytes(), seed))
        check(lambda: _read(path), f"{name} {seed}")
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if name in DOCUMENTS:
        kind, document = name.split("/")
        shutil.copytree(given_.folder / kind, folder / kind)
        target = folder / name
        target.write_bytes(changed(target.read_bytes(), seed))
        if document == "assembly.json":
            puzzle = read_puzzle(given_.folder / kind.removesuffix("-solved"))
            check(lambda: read_assembly(target, puzzle), f"{name} {seed}")
        else:
            check(lambda: open_input(folder / kind), f"{name} {seed}")
    elif name.startswith("model/"):
        shutil.copytree(given_.folder / "model", folder / "model")
        (folder / name).write_bytes(changed((folder / name).read_bytes(), seed))
        check(lambda: Denoiser.from_pretrained(folder / "model"), f"{name} {seed}")
    elif name == "checkpoint.pt":
        content = io.BytesIO()
        state = {"weights": {"x": torch.zeros(9)}, "average": {}, "optimizer": {"state": {}, "param_groups": []}}
        torch.save({"step": 1, "minutes": 0.1, "best": 1.0, **state}, content)
        (folder / name).write_bytes(changed(content.getvalue(), seed))
        check(lambda: read_checkpoint(folder), f"{name} {seed}")
    elif name == "run/config.json":
        preset = PRESETS["jigsaw"].config
        parts = {part: vars(value) for part, value in vars(preset).items()}
        text = json.dumps(parts, default=os.fspath)
        (folder / "config.json").write_bytes(changed(text.encode(), seed))
        check(lambda: read_config(folder / "config.json", preset), f"{name} {seed}")
    else:
        shutil.copytree(given_.folder / "outlines" / "pieces", folder / "pieces")
        names = sorted(path.name for path in (folder / "pieces").iterdir())
        rows = [f"{piece},{number // 2},{number % 2}" for number, piece in enumerate(names)]
        (folder / "truth.csv").write_bytes(changed("\n".join(["piece,row,col", *rows]).encode(), seed))
        check(lambda: read_recorded(folder), f"{name} {seed}")


@pytest.mark.parametrize("examples", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*FORMATS, *DOCUMENTS, *OTHERS])
def test_changed_files(name: str, examples: int, given: Given, tmp_path: Path) -> None:
    @settings(max_examples=examples, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @drawn(st.integers(0, 2**32))
    def try_seed(seed: int) -> None:
        _tried(name, given, tmp_path / "x", seed)

    (tmp_path / "x").mkdir()
    try_seed()
