"""The one table of kinds of pieces, and the verb that all share: solve."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Kind, SolverOptions
from diffassemble.core import InputError, Locks, Matches, Puzzle, Solver
from diffassemble.kinds.compiling import announce_compilation


def _fragments() -> Kind:
    from diffassemble.kinds.fragments import FRAGMENTS

    return FRAGMENTS


def _outlines() -> Kind:
    from diffassemble.kinds.outlines import OUTLINES

    return OUTLINES


def _squares() -> Kind:
    from diffassemble.kinds.squares import SQUARES

    return SQUARES


# Each is loaded when it is first asked for, so that a kind that is not used costs nothing.
KINDS: dict[str, Callable[[], Kind]] = {"fragments": _fragments, "outlines": _outlines, "squares": _squares}
DEFAULT_OPTIONS = SolverOptions()


def kinds() -> tuple[str, ...]:
    """The names of all kinds of pieces."""
    return tuple(sorted(KINDS))


def named_kind(name: str) -> Kind:
    """The kind of that name."""
    if name not in KINDS:
        raise InputError(f"no kind '{name}'; use one of: {', '.join(kinds())}")
    return KINDS[name]()


def kind_of(puzzle: Puzzle) -> Kind:
    """What is known about the puzzle's kind of pieces."""
    return KINDS[puzzle.kind]()


def make_solver(kind: str, name: str | None = None, options: SolverOptions = DEFAULT_OPTIONS) -> Solver:
    """A solver for a kind of pieces with its weights loaded; what is not given is what suits the kind."""
    chosen = named_kind(kind)
    name = name or chosen.default_solver
    if name not in chosen.solvers:
        raise InputError(f"no solver '{name}' for {chosen.piece}s; use one of: {', '.join(chosen.solvers)}")
    if options.several and name not in chosen.several:
        apart = ", ".join(chosen.several) or "no solver of this kind"
        raise InputError(f"solver '{name}' knows one {chosen.whole} only; several are told apart by {apart}")
    announce_compilation()
    return chosen.solvers[name](replace(options, model=options.model or chosen.default_model))


def find_matches(puzzle: Puzzle) -> Matches:
    """Which pieces of a puzzle may touch, and how they then lie to each other, whatever the pieces are."""
    return kind_of(puzzle).matches(puzzle)


def solve(
    puzzle: Puzzle,
    solver: str | None = None,
    *,
    seed: int = 0,
    locks: Locks | None = None,
    progress: bool = False,
    **options: Any,
) -> Answer:
    """Put a puzzle together; the same seed gives the same answer.

    Solver and model default to what suits the pieces. With `locks` those pieces stay where they are told to be;
    `progress` shows a bar, on the error stream. `options` are those of `SolverOptions`: model, samples, steps,
    budget (seconds), several (wholes).
    """
    if locks is not None:
        if len(locks.held) != len(puzzle):
            raise InputError(f"locks are of {len(locks.held)} pieces, but the puzzle has {len(puzzle)}")
        puzzle = replace(puzzle, locks=locks)
    chosen = make_solver(puzzle.kind, solver, SolverOptions(**options))
    if not progress:
        return assemble(puzzle, chosen, seed)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("solving", total=1.0)
        return assemble(puzzle, chosen, seed, lambda step: bar.update(task, completed=step.done))


def picture_of(shown: Puzzle | Answer) -> bytes:
    """A PNG file of the pieces as they were given, or of what was assembled, as notebooks show it."""
    from diffassemble.io.pictures import png_bytes

    if isinstance(shown, Puzzle):
        return png_bytes(kind_of(shown).drawing().pieces(shown))
    drawing = kind_of(shown.puzzle).drawing()
    return png_bytes(drawing.assembly(drawing.standing(shown)))


class _Table(ModuleType):
    def __call__(self) -> tuple[str, ...]:
        return kinds()


# The package's public function bears the name of this module, which takes its place there as soon as it is loaded.
sys.modules[__name__].__class__ = _Table
