"""The nouns that everything else speaks: poses, pieces, boards, puzzles, matches, assemblies, solvers."""

from diffassemble.core.board import Board
from diffassemble.core.matches import Matches
from diffassemble.core.pieces import FragmentPieces, ImagePieces, Mesh, OutlinePieces, Texture
from diffassemble.core.placements import Placements
from diffassemble.core.poses import Poses, nearest_turn, turn_matrix, turn_pixels
from diffassemble.core.puzzle import InputError, Locks, Puzzle
from diffassemble.core.solver import Solver, Step

__all__ = [
    "Board",
    "FragmentPieces",
    "ImagePieces",
    "InputError",
    "Locks",
    "Matches",
    "Mesh",
    "OutlinePieces",
    "Placements",
    "Poses",
    "Puzzle",
    "Solver",
    "Step",
    "Texture",
    "nearest_turn",
    "turn_matrix",
    "turn_pixels",
]
