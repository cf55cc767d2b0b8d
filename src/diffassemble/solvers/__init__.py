"""Puzzle in, assembly out."""

from diffassemble.solvers.catalogue import SOLVERS, make_solver
from diffassemble.solvers.diffusion import DiffusionSolver
from diffassemble.solvers.grid_choice import choose_board
from diffassemble.solvers.solve import assemble, solve

__all__ = ["SOLVERS", "DiffusionSolver", "assemble", "choose_board", "make_solver", "solve"]
