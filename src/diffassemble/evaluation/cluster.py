"""Puzzles scored on many machines by Ray, an optional part: pip install "diffassemble[cluster]"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from diffassemble.evaluation.puzzles import Draws
from diffassemble.evaluation.scoring import Score, Scoring, score_answer
from diffassemble.puzzle import InputError, Solver

LOCAL = "local"


def on_cluster(address: str) -> Scoring:
    """A `Scoring` on the cluster at this address, or (`local`) on processes that are started on this machine.

    What a killed process was at is done again by another; every puzzle is scored once.
    """
    ray = _connected(address)

    def score_one(solver: Solver, draws: Draws, number: int) -> Score:
        return score_answer(solver, *draws.puzzle(number))

    task = ray.remote(num_cpus=1, max_retries=-1)(score_one)

    def scoring(solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Score]]:
        given, drawn = ray.put(solver), ray.put(draws)
        pending = {task.remote(given, drawn, number): number for number in numbers}
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            yield pending.pop(done), ray.get(done)

    return scoring


def _connected(address: str) -> Any:
    """The module ray, joined to a cluster."""
    try:
        import ray
    except ImportError as error:
        raise InputError('--ray needs Ray; pip install "diffassemble[cluster]"') from error
    try:
        ray.init(
            address=address,
            include_dashboard=False if address == LOCAL else None,
            log_to_driver=False,
            ignore_reinit_error=True,
        )
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"--ray {address}: no cluster answers there ({reason}); start one, or pass local") from error
    return ray
