"""Whoever waits for a compilation is told why, once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
from diffassemble.solvers.compiling import announce_compilation
from diffassemble.compatibility.joining import _copy
from numba import njit
import numpy as np
announce_compilation()
announce_compilation()
njit(lambda x: x + 1)(1)
print("foreign code is compiled")
_copy(np.eye(2), np.eye(2))
_copy(np.eye(2, dtype=np.float32), np.eye(2))
"""


def run(cache: Path) -> str:
    environment = {"NUMBA_CACHE_DIR": str(cache), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout


def test_it_is_said_once_and_only_when_there_is_no_cache(tmp_path: Path) -> None:
    foreign = "foreign code is compiled\n"
    assert run(tmp_path) == f"{foreign}compiling the search, once; about 15 s\n"
    assert run(tmp_path) == foreign
