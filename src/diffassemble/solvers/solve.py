"""The front door's verb: drain a solver's steps into an assembly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch

from diffassemble.puzzle import Assembly, InputError, Puzzle, Solver, Step
from diffassemble.solvers.catalogue import solver_for
from diffassemble.solvers.holding import held_steps


def solve(
    puzzle: Puzzle,
    solver: str | None = None,
    *,
    model: str | None = None,
    samples: int = 8,
    steps: int = 20,
    budget: float = math.inf,
    seed: int = 0,
) -> Assembly:
    """Put a puzzle together; the same seed gives the same answer. Solver and model default to what suits the pieces.

    After `budget` seconds solvers that search answer with the best so far.
    """
    chosen = solver_for(puzzle.pieces, solver, model=model, samples=samples, steps=steps, budget=budget)
    return assemble(puzzle, chosen, seed)


def assemble(puzzle: Puzzle, solver: Solver, seed: int = 0, on_step: Callable[[Step], None] | None = None) -> Assembly:
    """Run a solver to its end; `on_step` sees every step as it comes. The solver never sees the truth.

    Locked pieces stand where they are locked, whatever the solver makes of them.
    """
    check_seed(seed)
    began = time.monotonic()
    history = []
    step = None
    for step in held_steps(puzzle, solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(seed))):
        history.append(step.poses)
        if on_step is not None:
            on_step(step)
    assert step is not None, f"{solver.name} yielded no step"
    sure = torch.ones(len(puzzle)) if step.confidence is None else step.confidence
    seconds = time.monotonic() - began
    objects = None if step.objects is None else tuple(step.objects.tolist())
    return Assembly(puzzle, step.poses, sure, tuple(history), solver.name, seconds, objects=objects)


def check_seed(seed: int) -> None:
    """Refuse seeds that generators do not take."""
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is out of range; give a number from 0 to 2^63 − 1")
