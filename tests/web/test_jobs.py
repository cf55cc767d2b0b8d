"""Solving in another process: steps come over, the answer is as told there, and a job can be ended at any moment."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import troublesome

from diffassemble.assembly.answer import assemble
from diffassemble.core import Board, ImagePieces, InputError, Puzzle, Solver, Step
from diffassemble.web.jobs import Cancelled, Job

PIECES = ImagePieces(torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
PUZZLE = Puzzle(PIECES, Board(2, 2), tuple("abcd"))


def job(name: str | None) -> Job:
    return Job(partial(troublesome.make, name=name))


def test_the_answer_is_that_of_the_solver_itself() -> None:
    steps: list[Step] = []
    remote = job("huroyan")
    assert isinstance(remote, Solver)
    answer = assemble(PUZZLE, remote, seed=4, on_step=steps.append)
    here = assemble(PUZZLE, troublesome.Gathering(), seed=4)
    assert len(steps) == 20
    assert torch.equal(answer.poses.translation, here.poses.translation)
    assert (answer.solver, answer.placements.numbers.tolist()) == ("gathering", [0, 0, 0, -1])
    assert assemble(PUZZLE, job(None)).solver == "hybrid"


@pytest.mark.parametrize("stopped", [True, False])
def test_it_can_be_stopped_or_killed(stopped: bool) -> None:
    remote = job("random")
    steps = remote.steps(PUZZLE, torch.Generator())
    next(steps)
    remote.stop() if stopped else remote.task.process.kill()
    with pytest.raises(Cancelled if stopped else InputError, match=None if stopped else "was ended by SIGKILL"):
        next(steps)
    assert not remote.task.process.is_alive()
    if stopped:
        with pytest.raises(Cancelled):
            next(remote.steps(PUZZLE, torch.Generator()))
