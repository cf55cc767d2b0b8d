"""The rows of a table on broken objects: whose weights are there, and whose row is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from diffassemble.core import InputError, Puzzle, Solver, Step
from diffassemble.kinds import CHANCE_SOLVERS, SOLVERS, make_solver
from diffassemble.network.pretrained import bundled_models

# The model of fragments that comes with the package, and the solver that all models are for.
FRAGMENTS, DIFFUSION = "fragments", "diffusion"


@dataclass(frozen=True)
class RowWish:
    """A row of the table, and the model that it is measured with."""

    name: str
    model: str


@dataclass(frozen=True)
class NamedSolver:
    """A solver under the name of its row."""

    name: str
    solver: Solver

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        """The solver's own steps."""
        return self.solver.steps(puzzle, generator)


def parse_rows(texts: Sequence[str]) -> dict[str, str]:
    """The models of rows told as NAME=MODEL."""
    models: dict[str, str] = {}
    for text in texts:
        name, equals, model = text.partition("=")
        if not (name and equals and model):
            raise InputError(f"{text}: a row is told as NAME=FOLDER, such as dgl=runs/dgl")
        if name in models:
            raise InputError(f"{text}: there are two rows '{name}'; give each a name of its own")
        models[name] = model
    return models


def choose_rows(
    methods: Sequence[str], asked: Sequence[str], given: Mapping[str, str], model: str | None
) -> tuple[list[RowWish], list[str]]:
    """The rows that can be measured, and the names of those that can't, since nobody told their weights.

    `methods` are a table's own rows; solvers that are `asked` for take their place and are never left out. Rows with
    models of their own, `given`, are added. All others share `model`, which without a wish is the bundled one.
    """
    shared = model or (FRAGMENTS if FRAGMENTS in bundled_models() else None)
    wishes, left_out = [], []
    for name in dict.fromkeys([*(asked or methods), *given]):
        if name in given:
            wishes.append(RowWish(name, given[name]))
        elif name in asked or name in CHANCE_SOLVERS:
            wishes.append(RowWish(name, model or FRAGMENTS))
        elif name == DIFFUSION and shared is not None:
            wishes.append(RowWish(name, shared))
        else:
            left_out.append(name)
    return wishes, left_out


def make_row(wish: RowWish, given: Mapping[str, str], *, samples: int, steps: int, budget: float) -> Solver:
    """The solver of a row; a row with a model of its own and no solver of that name is solved by diffusion."""
    solver = DIFFUSION if wish.name in given and wish.name not in SOLVERS else wish.name
    return NamedSolver(wish.name, make_solver(solver, model=wish.model, samples=samples, steps=steps, budget=budget))
