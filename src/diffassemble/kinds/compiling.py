"""Compilation of numba's loops before anything waits for them; numba keeps the result on disk."""

from __future__ import annotations

import multiprocessing
import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

# One kernel of each kind, compiled among the last: once it is in the cache, so are the others.
_LAST = {
    "fragments": ("diffassemble.rendering.studio", "shine"),
    "outlines": ("diffassemble.outlines.contact", "overlap"),
    "squares": ("diffassemble.squares.search", "segments"),
}


def prepare(kind: str) -> None:
    """Compile for one kind by solving small puzzles."""
    import torch

    from diffassemble.kinds import named_kind

    torch.set_num_threads(1)
    named_kind(kind).prepare()


def is_compiled(kernel: Any) -> bool:
    """Whether the cache on disk holds code of a function that numba compiles."""
    code = kernel.py_func.__code__
    name = f"{Path(code.co_filename).stem}.{kernel.py_func.__qualname__}-{code.co_firstlineno}.py*.nbi"
    return any(Path(kernel.stats.cache_path).glob(name))


@cache
def compile_in_background(kind: str) -> None:
    """Begin to compile for a kind in another process, unless that was done, or no process or processor is to spare."""
    daemon = multiprocessing.current_process().daemon  # which may have no children
    if sys.platform != "linux" or (os.cpu_count() or 1) < 2 or daemon:
        return
    module, name = _LAST[kind]
    if not is_compiled(getattr(import_module(module), name)):
        # Forked, so that nothing is loaded twice; ended with this process.
        multiprocessing.get_context("fork").Process(target=_silently, args=(kind,), daemon=True).start()


def _silently(kind: str) -> None:
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    prepare(kind)


@cache
def announce_compilation() -> None:
    """Print one line to the error stream when a loop of this package has to be compiled, and is not in the cache."""
    from numba.core import event

    class Announcer(event.Listener):
        """Prints at the first compilation."""

        printed = False

        def on_start(self, event: event.Event) -> None:
            if not self.printed and event.data["dispatcher"].py_func.__module__.startswith("diffassemble."):
                self.printed = True
                print("compiling the search, once; about 10 s", file=sys.stderr, flush=True)

        def on_end(self, event: event.Event) -> None:
            """Nothing to print."""

    event.register("numba:compile", Announcer())
