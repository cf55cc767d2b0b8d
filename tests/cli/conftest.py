"""Commands in this process, a picture to work on, and what commands that are refused must leave as it was."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from diffassemble.cli.main import main
from diffassemble.io.pictures import write_picture


@pytest.fixture
def command(command: Callable[..., Any]) -> Callable[..., Any]:
    """Run `diffassemble` in this process; in a child only without `rights`, or with a limit to what a file may hold."""

    def run(*argv: str | Path, **limits: Any) -> Any:
        if limits:
            return command(*argv, **limits)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main([str(word) for word in argv])
        # The first on a machine compiles, and a line says so.
        printed = err.getvalue().replace("compiling the search, once; about 10 s\n", "")
        return SimpleNamespace(code=code, out=out.getvalue(), err=printed)

    return run


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture of 60 × 40 random pixels in a folder of its own."""
    path = tmp_path / "pictures" / "photo.png"
    write_picture(torch.rand(3, 40, 60, generator=torch.Generator().manual_seed(0)), path)
    return path


@pytest.fixture
def bomb(photo: Path) -> bytes:
    """The content of a small file that declares a picture of 2.5 gigapixels."""
    whole = photo.read_bytes()
    head = b"IHDR" + struct.pack(">II", 50000, 50000) + whole[24:29]
    return whole[:12] + head + struct.pack(">I", zlib.crc32(head)) + whole[33:]


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., dict[Path, bytes | None]]:
    """All that is below a folder, hidden or not."""

    def contents(folder: Path = tmp_path) -> dict[Path, bytes | None]:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and os.access(path, os.R_OK)]
        return {**dict.fromkeys(sorted(folder.rglob("*"))), **{path: path.read_bytes() for path in files}}

    return contents


@pytest.fixture
def refused(command: Callable[..., Any], tree: Callable[..., dict[Path, bytes | None]]) -> Callable[..., None]:
    """Run a command that must end with code 2 and one line with these words, and leave everything as it was."""

    def run(*argv: str | Path, says: str, **limits: Any) -> None:
        before = tree()
        done = command(*argv, **limits)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("diffassemble: ")
        assert done.err.count("\n") == 1
        assert says in done.err
        assert tree() == before

    return run
