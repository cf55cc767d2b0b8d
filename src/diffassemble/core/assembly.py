"""Answers, and those who give them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    `upright` is how probable it is that a picture stands the right way up, where somebody looked.
    """

    poses: Poses
    done: float
    confidence: Float[Tensor, "n"] | None = None
    objects: Int[Tensor, "n"] | None = None
    upright: float | None = None


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


@dataclass(frozen=True)
class Assembly:
    """A solved puzzle: final poses on the board, how sure each is (0…1), and how they got there.

    `extra` names pieces that were given but do not belong to the puzzle; `objects` and `upright` are as in `Step`.
    """

    puzzle: Puzzle
    poses: Poses
    confidence: Float[Tensor, "n"]
    history: tuple[Poses, ...]
    solver: str
    seconds: float
    extra: tuple[str, ...] = ()
    objects: tuple[int, ...] | None = None
    upright: float | None = None
