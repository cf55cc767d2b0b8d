"""A word to whoever waits while numba compiles: it does so on the first call, then keeps the result on disk."""

from __future__ import annotations

import sys
from functools import cache

from numba.core import event

_OURS = "diffassemble."
COMPILING = "numba:compile"
"""the event that numba tells of when nothing was found on disk"""


class Announcer(event.Listener):
    """Says once, on the error stream, that compilation takes a while."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith(_OURS):
            self.said = True
            print("compiling the search, once; about 15 s", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        """What matters was said at the start."""


@cache
def announce_compilation() -> None:
    """From now on, tell when something of ours has to be compiled; code found on disk needs no word."""
    event.register(COMPILING, Announcer())
