"""DiffAssemble puts broken things back together with one graph-diffusion model.

    import diffassemble as da

    puzzle = da.cut_image("photo.jpg", rows=6, cols=6, seed=0)   # or da.fracture("bowl", pieces=8), or da.open(path)
    assembly = da.solve(puzzle)
    da.render(assembly, "solved.png")

The names below are the public ones; each is loaded when it is first used, so the import itself is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diffassemble.core import (
        Assembly,
        Board,
        FragmentPieces,
        ImagePieces,
        InputError,
        Locks,
        Matches,
        Mesh,
        Poses,
        Puzzle,
        Solver,
        Step,
    )
    from diffassemble.core.kind import SolverOptions
    from diffassemble.core.solver import assemble
    from diffassemble.files.assemblies import read_assembly, render, write_assembly
    from diffassemble.files.puzzles import open_input as open
    from diffassemble.files.puzzles import read_puzzle, write_puzzle
    from diffassemble.fragments.shapes.catalogue import fracture_file as fracture
    from diffassemble.kinds import kinds, make_solver, solve
    from diffassemble.squares.cut import cut_image

# Where each name is at home; a name of its own there stands behind the colon.
_HOMES = {
    "Assembly": "core",
    "Board": "core",
    "FragmentPieces": "core",
    "ImagePieces": "core",
    "InputError": "core",
    "Locks": "core",
    "Matches": "core",
    "Mesh": "core",
    "Poses": "core",
    "Puzzle": "core",
    "Solver": "core",
    "SolverOptions": "core.kind",
    "Step": "core",
    "assemble": "core.solver",
    "cut_image": "squares.cut",
    "fracture": "fragments.shapes.catalogue:fracture_file",
    "kinds": "kinds",
    "make_solver": "kinds",
    "open": "files.puzzles:open_input",
    "read_assembly": "files.assemblies",
    "read_puzzle": "files.puzzles",
    "render": "files.assemblies",
    "solve": "kinds",
    "write_assembly": "files.assemblies",
    "write_puzzle": "files.puzzles",
}

__all__ = [
    "Assembly",
    "Board",
    "FragmentPieces",
    "ImagePieces",
    "InputError",
    "Locks",
    "Matches",
    "Mesh",
    "Poses",
    "Puzzle",
    "Solver",
    "SolverOptions",
    "Step",
    "assemble",
    "cut_image",
    "fracture",
    "kinds",
    "make_solver",
    "open",
    "read_assembly",
    "read_puzzle",
    "render",
    "solve",
    "write_assembly",
    "write_puzzle",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'diffassemble' has no attribute '{name}'")
    home, _, own = _HOMES[name].partition(":")
    return getattr(import_module(f"diffassemble.{home}"), own or name)


def __dir__() -> list[str]:
    return list(__all__)
