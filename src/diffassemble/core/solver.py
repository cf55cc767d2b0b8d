"""Solvers: puzzle in, poses out, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core.poses import Poses
from diffassemble.core.puzzle import Puzzle


@dataclass(frozen=True)
class Step:
    """Where the pieces stand at one moment of solving; the last step is the answer.

    `done` runs from 0 to 1. `confidence` is known at the last step at the latest. Solvers that leave pieces out or tell
    several objects apart say in `objects` which one each piece belongs to: 0, 1, …, or −1 for those left out.
    `upright` is how probable it is that a picture stands the right way up, where somebody looked. `notes` say in a line
    why a piece is not surer, or was left out; it is empty where there is nothing to say. Where poses lay pieces aside,
    `guess` has all at their best guess. Where pieces without a board turned out to lie on lattices, `cells` are row and
    column of each piece in that of its object; −1 where it is in none.
    """

    poses: Poses
    done: float
    confidence: Float[Tensor, "n"] | None = None
    objects: Int[Tensor, "n"] | None = None
    upright: float | None = None
    notes: tuple[str, ...] | None = None
    guess: Poses | None = None
    cells: Int[Tensor, "n 2"] | None = None


@runtime_checkable
class Solver(Protocol):
    """Puzzle in, poses out, step by step: progress bars, animations and answers all drain the same iterator."""

    @property
    def name(self) -> str:
        """What the solver is called in tables and files."""
        ...

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield the poses as they come to rest; never looks at the puzzle's truth."""
        ...


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
        notes = None if step.notes is None else tuple(step.notes[index] for index in back.tolist())
        guess = None if step.guess is None else step.guess[back]
        cells = None if step.cells is None else step.cells[back]
        told = replace(step, confidence=sure, objects=objects, notes=notes, guess=guess, cells=cells)
        yield replace(told, poses=step.poses[back])


@dataclass(frozen=True)
class ChanceSolver:
    """Answers with poses that follow from knowing nothing: what every other solver must beat."""

    name: str
    place: Callable[[Puzzle, torch.Generator], Poses]

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield one step, sure of nothing."""
        yield Step(self.place(puzzle, generator), 1.0, torch.zeros(len(puzzle)))
