"""The front door's verb: drain a solver's steps into an assembly."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from diffassemble.puzzle import Assembly, InputError, Puzzle, Solver, Step
from diffassemble.solvers.catalogue import make_solver


def solve(
    puzzle: Puzzle,
    solver: str = "hybrid",
    *,
    model: str = "jigsaw",
    samples: int = 8,
    steps: int = 20,
    seed: int = 0,
) -> Assembly:
    """Put a puzzle together; the same seed gives the same answer."""
    return assemble(puzzle, make_solver(solver, model=model, samples=samples, steps=steps), seed)


def assemble(puzzle: Puzzle, solver: Solver, seed: int = 0, on_step: Callable[[Step], None] | None = None) -> Assembly:
    """Run a solver to its end; `on_step` sees every step as it comes. The solver never sees the truth."""
    check_seed(seed)
    began = time.monotonic()
    history = []
    step = None
    for step in solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(seed)):
        history.append(step.poses)
        if on_step is not None:
            on_step(step)
    assert step is not None, f"{solver.name} yielded no step"
    sure = torch.ones(len(puzzle)) if step.confidence is None else step.confidence
    return Assembly(puzzle, step.poses, sure, tuple(history), solver.name, time.monotonic() - began)


def check_seed(seed: int) -> None:
    """Refuse seeds that generators do not take."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is out of range; give a number from 0 to 2^63 − 1")
