"""The one table of kinds of pieces, and the verb that all share: solve."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.kind import Kind, SolverOptions
from diffassemble.core import InputError, Locks, Puzzle, Solver
from diffassemble.kinds.compiling import announce_compilation

if TYPE_CHECKING:
    from diffassemble.network.denoiser import PoseNetwork


# Each is loaded when it is first asked for, so that a kind that is not used costs nothing.
KINDS: dict[str, Callable[[], Kind]] = {
    name: lambda name=name: getattr(import_module(f"diffassemble.kinds.{name}"), name.upper())  # type: ignore[misc]
    for name in ("fragments", "outlines", "squares")
}
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
    """The kind of the puzzle's pieces."""
    return KINDS[puzzle.kind]()


def make_solver(kind: str, name: str | None = None, options: SolverOptions = DEFAULT_OPTIONS) -> Solver:
    """A solver for a kind of pieces, with its weights loaded; by default the one that suits the kind."""
    chosen = named_kind(kind)
    name = name or chosen.default_solver
    if name not in chosen.solvers:
        raise InputError(f"no solver '{name}' for {chosen.piece}s; use one of: {', '.join(chosen.solvers)}")
    if options.several and name not in chosen.several:
        apart = ", ".join(chosen.several) or "no solver of this kind"
        raise InputError(f"solver '{name}' knows one {chosen.whole} only; several are separated by {apart}")
    announce_compilation()
    return chosen.solvers[name](replace(options, model=options.model or chosen.default_model))


def load_fitting(name: str, fits: Callable[[PoseNetwork], bool], usual: str) -> PoseNetwork:
    """The network of a model, if it is one for these pieces; `usual` is named as an example of such a model."""
    from diffassemble.network.denoiser import load_network

    network = load_network(name)
    if not fits(network):
        raise InputError(f"model '{name}' is for other pieces; use one for these, such as {usual}")
    return network


@contextmanager
def progress_bar(title: str, always: bool = False) -> Iterator[Callable[[float], None]]:
    """A bar from 0 to 1 on the error stream while the block runs; only on terminals, unless `always`."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=not always, disable=not (always or console.is_terminal)) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda done: progress.update(task, completed=done)


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

    Solver and model default to what suits the pieces. Pieces in `locks` stay at their places; `progress` shows a bar
    on the error stream. `options` are those of `SolverOptions`: model, samples, steps, budget (seconds), several.
    """
    if locks is not None:
        if len(locks.held) != len(puzzle):
            raise InputError(f"locks are of {len(locks.held)} pieces, but the puzzle has {len(puzzle)}")
        puzzle = replace(puzzle, locks=locks)
    chosen = make_solver(puzzle.kind, solver, SolverOptions(**options))
    if not progress:
        return assemble(puzzle, chosen, seed)
    with progress_bar("solving", always=True) as show:
        return assemble(puzzle, chosen, seed, lambda step: show(step.done))


class _Table(ModuleType):
    def __call__(self) -> tuple[str, ...]:
        return kinds()


# The package's public function `kinds` bears the name of this module, which replaces it there once it is loaded.
sys.modules[__name__].__class__ = _Table
