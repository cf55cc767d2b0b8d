"""Puzzles scored on many machines by Ray, an optional part: pip install "diffassemble[cluster]"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from diffassemble.core import InputError, Solver
from diffassemble.evaluation.joining import first_line, joined
from diffassemble.evaluation.puzzles import Draws
from diffassemble.evaluation.scoring import Score, Scoring, score_answer

MOST_DEATHS = 10
"""So many processes may die over one puzzle before it is given up."""


@contextmanager
def on_cluster(address: str, processes: int | None = None) -> Iterator[Scoring]:
    """A `Scoring` on a cluster; see `joined` for what the address may be, and for how long the cluster is there.

    What a killed process was at is done again by another; every puzzle is scored once. Pictures are read where they
    are solved, under the same path as here.
    """
    with joined(address, processes) as ray:
        yield partial(_score_there, ray)


def _score_there(ray: Any, solver: Solver, draws: Draws, numbers: Sequence[int]) -> Iterator[tuple[int, Score]]:
    """A `Scoring`, once it is given the module ray."""
    task = ray.remote(num_cpus=1, max_retries=MOST_DEATHS)(_score_one)
    # The other processes may stand in another folder.
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
            raise InputError(f"{name}: {solver.name} can't solve it on the cluster ({first_line(error)})") from error
        yield number, score


def _score_one(solver: Solver, draws: Draws, number: int) -> Score:
    """What the other processes do, which find it by its name.

    They are as many as there are cores, so each keeps to one.
    """
    torch.set_num_threads(1)
    return score_answer(solver, *draws.puzzle(number))
