"""Solving in a process of its own: it blocks nobody, may fail, and can be ended at any moment."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection

from diffassemble.core import InputError, Pieces, Puzzle, Solver, Step

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["diffassemble.solvers"])


class Job:
    """One solver at work on one puzzle; `finished` tells an answer from a job that was stopped."""

    def __init__(self, puzzle: Puzzle, make: Callable[[Pieces], Solver], seed: int = 0) -> None:
        self.stopped, self.finished = False, False
        self._steps, child = _CONTEXT.Pipe(duplex=False)
        # Pickled here, so that nothing but bytes goes between the processes.
        order = pickle.dumps((puzzle.without_truth(), make, seed))
        self._process = _CONTEXT.Process(target=_work, args=(child, order), daemon=True)
        self._process.start()
        child.close()

    def steps(self) -> Iterator[Step]:
        """The solver's steps as they come; they end when the solver is done or the job is stopped."""
        while not self.stopped:
            try:
                kind, value = pickle.loads(self._steps.recv_bytes())
            except (EOFError, OSError):
                if self.stopped:
                    return
                raise InputError("the solver ended without an answer; it may have run out of memory") from None
            if kind == "done":
                self.finished = True
                return
            if kind == "error":
                raise InputError(value)
            yield value

    def stop(self) -> None:
        """End the work, wherever it stands."""
        self.stopped = True
        if self._process.is_alive():
            self._process.terminate()
        self._process.join(timeout=5)
        with suppress(OSError):
            self._steps.close()


def _work(pipe: Connection, order: bytes) -> None:
    """What the other process does."""
    import torch

    from diffassemble.core.locks import held_steps

    try:
        puzzle, make, seed = pickle.loads(order)
        solver = make(puzzle.pieces)
        for step in held_steps(puzzle, solver.steps(puzzle, torch.Generator().manual_seed(seed))):
            pipe.send_bytes(pickle.dumps(("step", step)))
        pipe.send_bytes(pickle.dumps(("done", None)))
    except InputError as error:
        pipe.send_bytes(pickle.dumps(("error", str(error))))
    # Whatever a solver raises, the page must be able to say it.
    except Exception as error:
        traceback.print_exc()
        pipe.send_bytes(pickle.dumps(("error", f"the solver failed: {type(error).__name__}: {error}")))
