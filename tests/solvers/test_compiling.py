"""`models --prepare` compiles all that any command needs; where something is compiled later, one line announces it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba import njit

from diffassemble.kinds import KINDS, compiling

SOURCE = "from numba import njit\n\n\n@njit(cache=True)\ndef successor(x):\n    return x + 1\n"
USE = """
import sys
from importlib.util import module_from_spec, spec_from_file_location

from diffassemble.kinds.compiling import announce_compilation

announce_compilation()
spec = spec_from_file_location(sys.argv[2], sys.argv[1])
module = sys.modules[sys.argv[2]] = module_from_spec(spec)
spec.loader.exec_module(module)
assert (module.successor(1), module.successor(1.5)) == (2, 2.5)
"""


def printed(path: Path, name: str) -> str:
    """The output of a fresh process that loads a module of this name and calls its kernel."""
    if not path.exists():
        path.write_text(SOURCE)
    done = subprocess.run([sys.executable, "-c", USE, path, name], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_compilation_is_announced_once_and_for_this_package_only(tmp_path: Path) -> None:
    assert printed(tmp_path / "tried.py", "diffassemble.tried") == "compiling the search, once; about 10 s\n"
    assert printed(tmp_path / "tried.py", "diffassemble.tried") == ""
    assert printed(tmp_path / "foreign.py", "foreign") == ""


def test_every_kind_is_prepared() -> None:
    assert set(compiling._LAST) == set(KINDS)


def test_what_is_in_the_cache_is_not_compiled_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, started = True, []
    monkeypatch.setattr(compiling.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(compiling, "is_compiled", lambda kernel: compiled)
    monkeypatch.setattr(compiling.multiprocessing, "get_context", lambda _: Forks(started))
    compiling.compile_in_background.__wrapped__("squares")
    assert started == []
    compiled = False
    monkeypatch.setattr(compiling.multiprocessing, "current_process", lambda: SimpleNamespace(daemon=True))
    compiling.compile_in_background.__wrapped__("squares")
    assert started == []  # processes of the page may have no children
    monkeypatch.setattr(compiling.multiprocessing, "current_process", lambda: SimpleNamespace(daemon=False))
    compiling.compile_in_background.__wrapped__("squares")
    assert started == [("squares",)] * (sys.platform == "linux")


class Forks:
    """A context whose processes are only listed."""

    def __init__(self, started: list[tuple[str, ...]]) -> None:
        self.started = started

    def Process(self, target: object, args: tuple[str, ...], daemon: bool) -> Forks:
        self.args = args
        return self

    def start(self) -> None:
        self.started.append(self.args)


def test_the_cache_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    kernel = njit(cache=True)(successor)
    assert not compiling.is_compiled(kernel)
    kernel(1)
    assert compiling.is_compiled(kernel)


def successor(x: int) -> int:
    return x + 1


VERBS = """
demo --out demo
cut {picture} --out squares --grid 4x4 --missing 0.2 --erode 1
solve squares --out squares/solved
solve squares --solver yu --out squares/yu
solve squares --solver diffusion --out squares/diffusion
cut {picture} --out torn --shape torn --pieces 8
solve torn --out torn/solved
cut {picture} --out strips --shape strips --pieces 8
solve strips --out strips/solved
fracture bowl --pieces 4 --out bowl
solve bowl --out bowl/solved
solve bowl --solver hybrid --out bowl/hybrid
evaluate --data solids=1 --limit 1
"""
COUNTED = """
import sys
from numba.core import event

class Listener(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("diffassemble."):
            print("compiles", function.__module__, function.__qualname__, event.data["args"])

    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
from diffassemble.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_nothing_is_compiled_after_prepare(tmp_path: Path) -> None:
    import skimage.data

    picture = Path(skimage.data.__file__).parent / "coffee.png"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", COUNTED, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    run("models", "--prepare")
    for verb in VERBS.format(picture=shlex.quote(str(picture))).split("\n"):
        if verb:
            output = run(*shlex.split(verb))
            assert "compil" not in output, f"{verb}: {output}"
