"""Puzzles scored on many machines by Ray, an optional part: pip install "diffassemble[cluster]"."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from diffassemble.evaluation.puzzles import Draws
from diffassemble.evaluation.scoring import Score, Scoring, score_answer
from diffassemble.puzzle import InputError, Solver

LOCAL, AUTO = "local", "auto"
SECONDS_TO_CONNECT, SECONDS_TO_JOIN = 4.0, 20.0
MOST_DEATHS = 10
"""So many processes may die of one puzzle, or during it, before it is given up."""


@contextmanager
def on_cluster(address: str, processes: int | None = None) -> Iterator[Scoring]:
    """A `Scoring` on the cluster at this address (HOST:PORT, or `auto` for that of this machine), left at the end.

    `local` starts processes on this machine and ends them: as many as it has cores, or as asked for. What a killed
    process was at is done again by another; every puzzle is scored once. Pictures are read where they are solved.
    """
    ray = _joined(address, processes)
    try:
        yield partial(_score_there, ray)
    finally:
        ray.shutdown()


def _score_there(ray: Any, solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Score]]:
    """A `Scoring`, once it knows the module ray."""
    task = ray.remote(num_cpus=1, max_retries=MOST_DEATHS)(_score_one)
    # Where other processes start is not where this one did.
    absolute = replace(draws, pictures=[path.absolute() for path in draws.pictures])
    given, drawn = ray.put(solver), ray.put(absolute)
    pending = {task.remote(given, drawn, number): number for number in numbers}
    while pending:
        (done,), _ = ray.wait(list(pending), num_returns=1)
        number = pending.pop(done)
        try:
            score = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            name = draws.identity(number)["picture"]
            raise InputError(f"{name}: the processes that {solver.name} solved it in died, {_line(error)}") from error
        yield number, score


def _score_one(solver: Solver, draws: Draws, number: int) -> Score:
    """What other processes do; it stands in the module, where they find it by its name.

    They are as many as there are cores, so each keeps to one.
    """
    torch.set_num_threads(1)
    return score_answer(solver, *draws.puzzle(number))


def _joined(address: str, processes: int | None) -> Any:
    """The module ray, joined to a cluster, which it joins silently."""
    # Nothing about our users is for Ray's makers; it must be told so before it starts.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError as error:
        raise InputError('--ray needs Ray; pip install "diffassemble[cluster]"') from error
    ours = {"num_cpus": processes, "include_dashboard": False} if address == LOCAL else {}
    # What was joined before would be taken for the answer.
    ray.shutdown()
    try:
        if address != LOCAL:
            _check_answer(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **ours)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        trouble = "Ray does not start" if address == LOCAL else "no cluster answers there"
        raise InputError(f"--ray {address}: {trouble} ({_line(error)}); start one, or leave --ray out") from error
    return ray


def _check_answer(address: str) -> None:
    """Raise OSError or ValueError where Ray itself would wait for minutes."""
    if address != AUTO:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError("an address is HOST:PORT, auto or local")
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT).close()
    # Something listens; only a process that can be ended finds out in time whether it is Ray.
    join = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
    try:
        subprocess.run([sys.executable, "-P", "-c", join, address], capture_output=True, timeout=SECONDS_TO_JOIN)
    except subprocess.TimeoutExpired as error:
        raise ConnectionError(f"no word of Ray's within {SECONDS_TO_JOIN:.0f} seconds") from error


def _line(error: Exception) -> str:
    """The first line of an error, without its full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
