"""Solving in a process of its own, so that the page stays awake and the work can be stopped at any moment."""

from __future__ import annotations

import pickle
import threading
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import torch

from diffassemble.core import InputError, Puzzle, Solver, Step

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["diffassemble.fragments.kind", "diffassemble.squares.kind"])


class Cancelled(Exception):
    """The job was stopped before there was an answer."""


class Job:
    """A solver, made for a kind of pieces, whose work another process does; the first step brings its name."""

    def __init__(self, make: Callable[[str], Solver]) -> None:
        self.name = ""
        self.process: BaseProcess | None = None
        self._make, self._stopped, self._lock = make, False, threading.Lock()

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """The solver's steps as they come; raises `Cancelled` once the job is stopped."""
        # Pickled here, so that nothing but bytes goes between the processes.
        order = pickle.dumps((puzzle, self._make, generator.get_state()))
        receiver, sender = _CONTEXT.Pipe(duplex=False)
        with receiver:
            with self._lock, sender:
                if self._stopped:
                    raise Cancelled
                self.process = _CONTEXT.Process(target=_work, args=(sender, order), daemon=True)
                self.process.start()
            while True:
                try:
                    kind, value = pickle.loads(receiver.recv_bytes())
                except EOFError:
                    kind, value = "error", "the solver ended without an answer; it may have run out of memory"
                if self._stopped:
                    raise Cancelled
                if kind == "done":
                    return
                if kind == "error":
                    raise InputError(value)
                if kind == "name":
                    self.name = value
                else:
                    yield value

    def stop(self) -> None:
        """End the work, wherever it stands."""
        with self._lock:
            self._stopped = True
        if self.process is not None:
            self.process.terminate()
            self.process.join(timeout=5)


def _work(pipe: Connection, order: bytes) -> None:
    """What the other process does."""

    def send(kind: str, value: object = None) -> None:
        pipe.send_bytes(pickle.dumps((kind, value)))

    try:
        puzzle, make, state = pickle.loads(order)
        generator = torch.Generator()
        generator.set_state(state)
        solver = make(puzzle.kind)
        send("name", solver.name)
        for step in solver.steps(puzzle, generator):
            send("step", step)
        send("done")
    except InputError as error:
        send("error", str(error))
    # Whatever a solver raises, the page must be able to say it.
    except Exception as error:
        traceback.print_exc()
        send("error", f"the solver failed: {type(error).__name__}: {error}")
