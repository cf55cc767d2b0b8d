"""Reading and solving in processes of their own, so that the page stays awake and the work can be stopped at once."""

from __future__ import annotations

import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from diffassemble.core import InputError, Puzzle, Solver, Step

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload([f"diffassemble.kinds.{kind}" for kind in ("fragments", "outlines", "squares")])

Send = Callable[[str, Any], None]


class Cancelled(Exception):
    """The work was stopped before it was done."""


class Task:
    """A function that another process calls with `send` and the arguments; what it sends comes as messages."""

    def __init__(self, function: Callable[..., None], *arguments: Any) -> None:
        self.process: BaseProcess | None = None
        self._function, self._arguments = function, arguments
        self._stopped, self._lock = False, threading.Lock()

    def messages(self, *more: Any) -> Iterator[tuple[str, Any]]:
        """Names and values as they come, with `more` arguments; raises `Cancelled` once the task is stopped."""
        # Pickled here, so that nothing but bytes goes between the processes.
        order = pickle.dumps((self._function, (*self._arguments, *more)))
        receiver, sender = _CONTEXT.Pipe(duplex=False)
        with receiver:
            with self._lock, sender:
                if self._stopped:
                    raise Cancelled
                self.process = _CONTEXT.Process(target=_work, args=(sender, order), daemon=True)
                self.process.start()
            while True:
                try:
                    name, value = pickle.loads(receiver.recv_bytes())
                except EOFError:
                    self.process.join(timeout=5)
                    code = self.process.exitcode or 0
                    by = f" by {signal.Signals(-code).name}" if code < 0 else ""
                    name = "error"
                    value = f"the work was ended{by} without an answer; it may have run out of memory"
                if self._stopped:
                    raise Cancelled
                if name == "error":
                    raise InputError(value)
                if name == "done":
                    return
                yield name, value

    def stop(self) -> None:
        """End the work at once."""
        with self._lock:
            self._stopped = True
        if self.process is not None:
            self.process.terminate()
            self.process.join(timeout=5)


class Job:
    """A solver, made for a kind of pieces, that works in another process; the first step brings its name."""

    def __init__(self, make: Callable[[str], Solver]) -> None:
        self.name, self.task = "", Task(_solve, make)
        self.stop = self.task.stop

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """The solver's steps as they come; raises `Cancelled` once the job is stopped."""
        for name, value in self.task.messages(puzzle, generator.get_state()):
            if name == "name":
                self.name = value
            else:
                yield value


def _solve(send: Send, make: Callable[[str], Solver], puzzle: Puzzle, state: torch.Tensor) -> None:
    generator = torch.Generator()
    generator.set_state(state)
    solver = make(puzzle.kind)
    send("name", solver.name)
    for step in solver.steps(puzzle, generator):
        send("step", step)


def _work(pipe: Connection, order: bytes) -> None:
    """The work of the other process."""

    def send(name: str, value: object = None) -> None:
        pipe.send_bytes(pickle.dumps((name, value)))

    try:
        function, arguments = pickle.loads(order)
        function(send, *arguments)
        send("done")
    except InputError as error:
        send("error", str(error))
    # The page shows any error.
    except Exception as error:
        traceback.print_exc()
        send("error", f"that failed: {type(error).__name__}: {error}")


def _nothing(send: Send) -> None:
    """The work of a process that is only to be started."""


def warm_up() -> None:
    """Load the solvers into the small server that processes are forked from, so that the first work begins at once."""
    for _ in Task(_nothing).messages():
        pass
