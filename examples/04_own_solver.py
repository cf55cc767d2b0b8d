"""A solver of your own: a name, and a generator of steps. All that knows solvers can use it then.

python examples/04_own_solver.py
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import torch

import diffassemble as da


class BrightnessSolver:
    """Puts dark pieces at the top, as they lie; it is not a good solver."""

    name = "brightness"

    def steps(self, puzzle: da.Puzzle, generator: torch.Generator) -> Iterator[da.Step]:
        rank = puzzle.pixels.mean((1, 2, 3)).argsort().argsort()
        placed = puzzle.board.poses(rank, torch.zeros(len(puzzle), dtype=torch.long))
        yield da.Step.last(da.Placements(placed, confidence=torch.full((len(puzzle),), 0.1)))


puzzle = da.cut_image(str(files("skimage.data") / "rocket.jpg"), rows=4, cols=6, size=32)
assembly = da.assemble(puzzle, BrightnessSolver())
da.render(assembly, "by-brightness.png")
assert puzzle.truth is not None
right = (assembly.poses.translation - puzzle.truth.translation).norm(dim=-1) < 1e-4
print(f"{int(right.sum())} of {len(puzzle)} pieces in their cells")
