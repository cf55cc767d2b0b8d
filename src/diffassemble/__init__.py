"""DiffAssemble puts broken things back together with one graph-diffusion model.

    import diffassemble as da

    puzzle = da.cut_image("photo.jpg", rows=6, cols=6, seed=0)
    assembly = da.solve(puzzle)
    da.render(assembly, "solved.png")

The names below are the public ones; each is loaded when it is first used, so the import itself is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diffassemble import kinds as solve
    from diffassemble.core import Assembly, Board, ImagePieces, InputError, Matches, Poses, Puzzle
    from diffassemble.files.assemblies import read_assembly, render, write_assembly
    from diffassemble.files.puzzles import read_puzzle, write_puzzle
    from diffassemble.kinds import make_solver
    from diffassemble.network.denoiser import Denoiser
    from diffassemble.squares.photo import cut_image

_HOMES = {
    "Assembly": "puzzle",
    "Board": "puzzle",
    "Denoiser": "model",
    "ImagePieces": "puzzle",
    "InputError": "puzzle",
    "Matches": "puzzle",
    "Poses": "geometry",
    "Puzzle": "puzzle",
    "cut_image": "cutting.photo",
    "make_solver": "solvers",
    "read_assembly": "files",
    "read_puzzle": "files",
    "render": "files",
    "solve": "solvers",
    "write_assembly": "files",
    "write_puzzle": "files",
}

__all__ = [
    "Assembly",
    "Board",
    "Denoiser",
    "ImagePieces",
    "InputError",
    "Matches",
    "Poses",
    "Puzzle",
    "cut_image",
    "make_solver",
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
    return getattr(import_module(f"diffassemble.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
