"""The command in a process of its own, without loading everything anew each time."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from diffassemble.cli.main import main
from diffassemble.files import write_picture


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


def _give_up_rights() -> None:
    """Root without its powers is bound by the rights of files like everybody else."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())


def _child(argv: list[str], out: Path, err: Path, prepare: Callable[[], None]) -> None:
    """Run the command and leave the process with its exit code."""
    code = 1
    try:
        torch.set_num_threads(1)
        sys.stdout, sys.stderr = out.open("w"), err.open("w")
        prepare()
        code = main(argv)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@pytest.fixture
def command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outcome]:
    """Run `diffassemble` in a child process; without `rights`, or with a limit to what a file may hold."""
    folder = tmp_path_factory.mktemp("streams")

    def run(*argv: str | Path, rights: bool = True, largest_file: int | None = None) -> Outcome:
        def prepare() -> None:
            if not rights and os.geteuid() == 0:
                _give_up_rights()
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        out, err = folder / "out", folder / "err"
        process = os.fork()
        if process == 0:
            _child([str(word) for word in argv], out, err, prepare)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return Outcome(code, out.read_text(), err.read_text())

    return run


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture of 60 × 40 random pixels in a folder of its own."""
    path = tmp_path / "pictures" / "photo.png"
    write_picture(torch.rand(3, 40, 60, generator=torch.Generator().manual_seed(0)), path)
    return path
