"""Solving in another process: steps come over, errors are told, and a job can be ended at any moment."""

from __future__ import annotations

import time
from functools import partial

import pytest
import torch
import troublesome

from diffassemble.core import Board, ImagePieces, InputError, Puzzle
from diffassemble.web.jobs import Job

PIECES = ImagePieces(torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
PUZZLE = Puzzle(PIECES, Board(2, 2), tuple("abcd"))


def test_steps_come_over_one_by_one() -> None:
    job = Job(PUZZLE, partial(troublesome.make, name="huroyan"))
    steps = list(job.steps())
    assert len(steps) == 20
    assert job.finished
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    job.stop()


def test_an_error_is_told() -> None:
    with pytest.raises(InputError, match="the solver failed: ZeroDivisionError: no luck today"):
        list(Job(PUZZLE, partial(troublesome.make, name="identity")).steps())


def test_it_can_be_stopped() -> None:
    job, began = Job(PUZZLE, partial(troublesome.make, name="random")), time.monotonic()
    steps = job.steps()
    next(steps)
    job.stop()
    assert list(steps) == []
    assert not job.finished
    assert not job._process.is_alive()
    assert time.monotonic() - began < 50
