"""Solvers: puzzle in, poses out, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core.placements import Placements
from diffassemble.core.poses import Poses
from diffassemble.core.puzzle import Puzzle


@dataclass(frozen=True)
class Step:
    """One moment of solving: where the pieces are, and how much is done, 0…1; the last step carries the result.

    Example:
        >>> yield Step(poses, done=0.5)
        >>> yield Step.last(Placements(poses, confidence))
    """

    poses: Poses
    done: float
    result: Placements | None = None

    @staticmethod
    def last(result: Placements) -> Step:
        """The step that ends solving."""
        return Step(result.poses, 1.0, result)

    @property
    def placements(self) -> Placements:
        """The result; of a step without one the poses, with confidence 0."""
        return self.result or Placements(self.poses, torch.zeros(len(self.poses)))

    def with_poses(self, poses: Poses) -> Step:
        """The same step with the pieces elsewhere."""
        return Step(poses, self.done, None if self.result is None else replace(self.result, poses=poses))

    def reordered(self, order: Int[Tensor, "n"]) -> Step:
        """The same step with the pieces listed in another order."""
        return Step(self.poses[order], self.done, None if self.result is None else self.result[order])


@runtime_checkable
class Solver(Protocol):
    """Puzzle in, poses out, step by step: progress bars, animations and answers read the same iterator."""

    @property
    def name(self) -> str:
        """What the solver is called in tables and files."""
        ...

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield improving poses; never uses the puzzle's truth."""
        ...


def content_order(content: Float[Tensor, "n *x"]) -> Int[Tensor, "n"]:
    """An order of the pieces by a fixed random projection of their content, whatever their order is."""
    flat = content.flatten(1).double()
    weights = torch.randn(flat.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.double)
    return (flat * weights).sum(-1).argsort(stable=True)


def in_content_order(puzzle: Puzzle, solve: Callable[[Puzzle], Iterator[Step]]) -> Iterator[Step]:
    """Solve the puzzle with its pieces in the order of their content, so that the answer does not depend on theirs."""
    order = content_order(puzzle.pieces.content)
    back = order.argsort()
    for step in solve(puzzle.reordered(order)):
        yield step.reordered(back)


@dataclass(frozen=True)
class ChanceSolver:
    """A baseline: poses by chance, or as given, with confidence 0."""

    name: str
    place: Callable[[Puzzle, torch.Generator], Poses]

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield one step."""
        yield Step.last(Placements(self.place(puzzle, generator), torch.zeros(len(puzzle))))
