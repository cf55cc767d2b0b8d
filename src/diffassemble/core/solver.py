"""Solvers: puzzle in, poses out, step by step; and what drains their steps into an assembly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core.assembly import Assembly, Solver, Step
from diffassemble.core.locks import held_steps
from diffassemble.core.poses import Poses
from diffassemble.core.puzzle import Puzzle
from diffassemble.core.seeds import check_seed


def content_order(content: Float[Tensor, "n *x"]) -> Int[Tensor, "n"]:
    """An order of the pieces that depends on what they are and not on how they are listed."""
    flat = content.flatten(1).double()
    ruler = torch.randn(flat.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.double)
    return (flat * ruler).sum(-1).argsort(stable=True)


def in_content_order(puzzle: Puzzle, solve: Callable[[Puzzle], Iterator[Step]]) -> Iterator[Step]:
    """Solve the puzzle with its pieces listed by what they show, so that the answer does not depend on their order."""
    order = content_order(puzzle.pieces.content)
    back = order.argsort()
    for step in solve(puzzle.reordered(order)):
        sure, objects = (None if told is None else told[back] for told in (step.confidence, step.objects))
        yield replace(step, poses=step.poses[back], confidence=sure, objects=objects)


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
    return Assembly(puzzle, step.poses, sure, tuple(history), solver.name, seconds, (), objects, step.upright)


@dataclass(frozen=True)
class ChanceSolver:
    """Answers with poses that follow from knowing nothing: what every other solver must beat."""

    name: str
    place: Callable[[Puzzle, torch.Generator], Poses]

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield one step, sure of nothing."""
        yield Step(self.place(puzzle, generator), 1.0, torch.zeros(len(puzzle)))
