"""Whoever waits for a compilation is told why, once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = "from numba import njit\n\n\n@njit(cache=True)\ndef successor(x):\n    return x + 1\n"
USE = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

from diffassemble.kinds import announce_compilation

announce_compilation()
spec = spec_from_file_location(sys.argv[2], sys.argv[1])
module = sys.modules[sys.argv[2]] = module_from_spec(spec)
spec.loader.exec_module(module)
assert (module.successor(1), module.successor(1.5)) == (2, 2.5)
"""


def told(path: Path, name: str) -> str:
    """What is said while a fresh process loads a module of this name and calls its kernel."""
    if not path.exists():
        path.write_text(SOURCE)
    done = subprocess.run([sys.executable, "-c", USE, path, name], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_it_is_said_once_and_only_of_ours_when_nothing_is_found_on_disk(tmp_path: Path) -> None:
    assert told(tmp_path / "tried.py", "diffassemble.tried") == "compiling the search, once; about 10 s\n"
    assert told(tmp_path / "tried.py", "diffassemble.tried") == ""
    assert told(tmp_path / "foreign.py", "foreign") == ""
