"""Puzzle in, assembly out."""

from diffassemble.solvers.catalogue import SOLVERS, bundled_uprighter, make_solver, solver_for
from diffassemble.solvers.diffusion import DiffusionSolver
from diffassemble.solvers.grid_choice import choose_board
from diffassemble.solvers.solve import assemble, check_seed, solve

__all__ = [
    "SOLVERS",
    "DiffusionSolver",
    "assemble",
    "bundled_uprighter",
    "check_seed",
    "choose_board",
    "make_solver",
    "solve",
    "solver_for",
]
