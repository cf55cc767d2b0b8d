"""Cases scored on many machines by Ray, an optional part: pip install "diffassemble[cluster]".

A cluster is joined, or started on this machine, silently, and without waiting long for who does not answer.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from diffassemble.core import InputError, Solver
from diffassemble.evaluation.rows import Scores
from diffassemble.evaluation.sweep import Draws, Scoring, solve_case

LOCAL, AUTO = "local", "auto"


@dataclass(frozen=True)
class ClusterConfig:
    """How long a cluster is waited for, and how often a case is tried."""

    connect: float = 4.0
    """seconds until something must listen at an address"""
    join: float = 30.0
    """seconds until that must answer as Ray does"""
    deaths: int = 10
    """processes that may die over one case before it is given up"""


CONFIG = ClusterConfig()


@contextmanager
def on_cluster(address: str, processes: int | None = None) -> Iterator[Scoring]:
    """A `Scoring` on a cluster; see `joined` for what the address may be, and for how long the cluster is there.

    What a killed process was at is done again by another; every case is scored once. Files are read where cases are
    solved, under the same path as here.
    """
    with joined(address, processes) as ray:
        yield partial(_score_there, ray)


def _score_there(ray: Any, solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Scores, None]]:
    """A `Scoring`, once it is given the module ray."""
    task = ray.remote(num_cpus=1, max_retries=CONFIG.deaths)(_score_one)
    given = ray.put(solver), ray.put(draws)
    pending = {task.remote(*given, number, Path.cwd()): number for number in numbers}
    while pending:
        (done,), _ = ray.wait(list(pending), num_returns=1)
        number = pending.pop(done)
        try:
            score = ray.get(done)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayError as error:
            name = next(iter(draws.identity(number).values()))
            raise InputError(f"{name}: {solver.name} can't solve it on the cluster ({_first_line(error)})") from error
        yield number, score, None


def _score_one(solver: Solver, draws: Draws, number: int, folder: Path) -> Scores:
    """Score a case in another process, with one thread, as there is a process for each core; in `folder`."""
    torch.set_num_threads(1)
    with suppress(OSError):
        os.chdir(folder)
    return solve_case(solver, draws, number)[0]


@contextmanager
def joined(address: str, processes: int | None = None) -> Iterator[Any]:
    """The module ray, joined to the cluster at HOST:PORT, or (`auto`) to that of this machine, and left at the end.

    `local` starts processes on this machine and ends them: as many as it has cores, or as asked for.
    """
    # No usage statistics are sent; the variable must be set before Ray starts.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError as error:
        raise InputError('--ray needs Ray; pip install "diffassemble[cluster]"') from error
    # A cluster that was joined before would be taken for the answer.
    ray.shutdown()
    ours = {"num_cpus": processes, "include_dashboard": False} if address == LOCAL else {}
    try:
        if address != LOCAL:
            _check_answer(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **ours)
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        trouble = "Ray does not start" if address == LOCAL else "no cluster answers there"
        raise InputError(f"--ray {address}: {trouble} ({_first_line(error)}); start one, or pass local") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _first_line(error: Exception) -> str:
    """The first line of an error, without its full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _check_answer(address: str) -> None:
    """Raise OSError or ValueError where Ray itself would wait for minutes."""
    if address != AUTO:
        host, _, port = address.rpartition(":")
        if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError("an address is HOST:PORT, auto or local")
        socket.create_connection((host.strip("[]"), int(port)), CONFIG.connect).close()
    # Something listens; only a process that can be ended finds out in time whether it is Ray.
    join = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
    try:
        subprocess.run([sys.executable, "-P", "-c", join, address], capture_output=True, timeout=CONFIG.join)
    except subprocess.TimeoutExpired as error:
        raise ConnectionError(f"no answer by Ray within {CONFIG.join:.0f} seconds") from error
