"""DiffAssemble puts broken things back together with one graph-diffusion model.

    import diffassemble as da

    puzzle = da.cut_image("photo.jpg", rows=6, cols=6, seed=0)   # or da.fracture("bowl", pieces=8), or da.open(path)
    assembly = da.solve(puzzle)
    da.render(assembly, "solved.png")

The names below are the public ones; each is loaded when it is first used, so the import itself is instant.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `as` with the same name tells type checkers that a name is public
    from diffassemble.assembly.answer import Answer as Answer
    from diffassemble.assembly.answer import assemble as assemble
    from diffassemble.assembly.kind import SolverOptions as SolverOptions
    from diffassemble.core import Board as Board
    from diffassemble.core import FragmentPieces as FragmentPieces
    from diffassemble.core import ImagePieces as ImagePieces
    from diffassemble.core import InputError as InputError
    from diffassemble.core import Locks as Locks
    from diffassemble.core import Matches as Matches
    from diffassemble.core import Mesh as Mesh
    from diffassemble.core import OutlinePieces as OutlinePieces
    from diffassemble.core import Placements as Placements
    from diffassemble.core import Poses as Poses
    from diffassemble.core import Puzzle as Puzzle
    from diffassemble.core import Solver as Solver
    from diffassemble.core import Step as Step
    from diffassemble.fragments.shapes import fracture_file
    from diffassemble.io.assemblies import read_assembly as read_assembly
    from diffassemble.io.assemblies import render as render
    from diffassemble.io.assemblies import write_assembly as write_assembly
    from diffassemble.io.puzzles import open_input
    from diffassemble.io.puzzles import read_puzzle as read_puzzle
    from diffassemble.io.puzzles import write_puzzle as write_puzzle
    from diffassemble.kinds import kinds as kinds
    from diffassemble.kinds import make_solver as make_solver
    from diffassemble.kinds import solve as solve
    from diffassemble.outlines.cut import cut_shape as cut_shape
    from diffassemble.squares.cut import cut_image as cut_image

    open, fracture = open_input, fracture_file
    __version__: str

# The module of each name; a name of its own there is behind the colon.
_HOMES = {
    **dict.fromkeys(("Answer", "assemble"), "assembly.answer"),
    **dict.fromkeys(("Board", "FragmentPieces", "ImagePieces", "InputError", "Locks", "Matches", "Mesh"), "core"),
    **dict.fromkeys(("OutlinePieces", "Placements", "Poses", "Puzzle", "Solver", "Step"), "core"),
    **dict.fromkeys(("kinds", "make_solver", "solve"), "kinds"),
    **dict.fromkeys(("read_assembly", "render", "write_assembly"), "io.assemblies"),
    **dict.fromkeys(("read_puzzle", "write_puzzle"), "io.puzzles"),
    "SolverOptions": "assembly.kind",
    "cut_image": "squares.cut",
    "cut_shape": "outlines.cut",
    "fracture": "fragments.shapes:fracture_file",
    "open": "io.puzzles:open_input",
}

if not TYPE_CHECKING:
    __all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return version("diffassemble")
    if name not in _HOMES:
        raise AttributeError(f"module 'diffassemble' has no attribute '{name}'")
    home, _, own = _HOMES[name].partition(":")
    found = getattr(import_module(f"diffassemble.{home}"), own or name)
    # Puzzles and answers are drawn by a layer above them.
    puzzle, answer = import_module("diffassemble.core").Puzzle, import_module("diffassemble.assembly.answer").Answer
    puzzle.drawn_by = answer.drawn_by = _picture
    return found


def _picture(shown: Puzzle | Answer) -> bytes:
    """What notebooks show; what draws it is loaded when they first do."""
    return import_module("diffassemble.rendering.report").picture_of(shown)


def __dir__() -> list[str]:
    return list(_HOMES)
