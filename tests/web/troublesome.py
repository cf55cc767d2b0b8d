"""Solvers that the page must survive; importable by name, so that other processes find them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from diffassemble.assembly.kind import SolverOptions
from diffassemble.core import Placements, Poses, Puzzle, Solver, Step
from diffassemble.kinds import make_solver
from diffassemble.web.session import laid_out


@dataclass(frozen=True)
class Beginning:
    """Begins, and then fails, after so many seconds."""

    name: str
    seconds: float

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        yield Step(laid_out(puzzle), 0.1)
        time.sleep(self.seconds)
        raise ZeroDivisionError("no luck today")


class Gathering:
    """Moves everything to the middle in twenty steps, for pieces of any kind, and leaves the last one out."""

    name = "gathering"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        poses = laid_out(puzzle)
        objects = -(torch.arange(len(puzzle)) == len(puzzle) - 1).long()
        for number in range(20):
            shrunk = Poses(poses.rotation, poses.translation * (1 - number / 20))
            found = Placements(shrunk, torch.full((len(puzzle),), 0.4), objects)
            yield Step(shrunk, (number + 1) / 20, found)


def make(kind: str, name: str | None = None, options: SolverOptions | None = None) -> Solver:
    """`random` sleeps, `identity` fails, `huroyan` gathers, and the default is quick."""
    special = {"random": Beginning("sleepy", 3600), "identity": Beginning("raising", 0), "huroyan": Gathering()}
    return special.get(name) or make_solver(kind, name, SolverOptions(samples=2, budget=1))
