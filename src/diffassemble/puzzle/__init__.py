"""The nouns that every other room speaks: pieces, boards, puzzles, mates, assemblies, solvers."""

from diffassemble.puzzle.assembly import Assembly, Solver, Step
from diffassemble.puzzle.board import Board
from diffassemble.puzzle.errors import InputError
from diffassemble.puzzle.locks import Locks
from diffassemble.puzzle.mates import Mates
from diffassemble.puzzle.pieces import FragmentPieces, ImagePieces, Mesh, Pieces
from diffassemble.puzzle.puzzle import Puzzle

__all__ = [
    "Assembly",
    "Board",
    "FragmentPieces",
    "ImagePieces",
    "InputError",
    "Locks",
    "Mates",
    "Mesh",
    "Pieces",
    "Puzzle",
    "Solver",
    "Step",
]
