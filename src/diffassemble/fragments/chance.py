"""What knowing nothing gives: the rows that every other solver must beat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from diffassemble.core import Poses, Puzzle, Step
from diffassemble.fragments.breaking import random_rotations

# Deviation of where fragments belong, the same along all axes, of the whole object's longest side: the root mean square
# over the 1029 pieces of the training objects of Breaking Bad's preview fractures (everyday).
SPREAD = 0.2


@dataclass(frozen=True)
class IdentitySolver:
    """Leaves all as it is given: fragments unturned in the middle, pieces of a picture cell by cell as listed."""

    name: str = "identity"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield one step, sure of nothing."""
        number = torch.arange(len(puzzle))
        if puzzle.lattice is None:
            poses = Poses.identity(len(puzzle), 3)
        else:
            poses = puzzle.lattice.poses(number, torch.zeros_like(number))
        yield Step(poses, 1.0, torch.zeros(len(puzzle)))


@dataclass(frozen=True)
class RandomSolver:
    """Turns all rotations alike; fragments lie normally distributed about the middle, pieces of a picture on any cells.

    `spread` is the deviation of fragments along each axis.
    """

    spread: float = SPREAD
    name: str = "random"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """Yield one step, sure of nothing."""
        count = len(puzzle)
        if puzzle.lattice is None:
            places = self.spread * torch.randn(count, 3, generator=generator)
            poses = Poses(random_rotations(count, generator), places)
        else:
            cells = torch.randperm(puzzle.lattice.cells, generator=generator)[:count]
            poses = puzzle.lattice.poses(cells, torch.randint(4, (count,), generator=generator))
        yield Step(poses, 1.0, torch.zeros(count))
