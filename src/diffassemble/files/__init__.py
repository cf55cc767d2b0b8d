"""Puzzles, pictures and assemblies in and out of files; nothing is left half written."""

from diffassemble.files.assemblies import check_assembly_folder, read_assembly, render, write_assembly
from diffassemble.files.atomic import write_file
from diffassemble.files.images import read_picture, write_picture
from diffassemble.files.pieces import check_count, check_pieces, read_pieces
from diffassemble.files.puzzles import knows_board, read_puzzle, write_puzzle

__all__ = [
    "check_assembly_folder",
    "check_count",
    "check_pieces",
    "knows_board",
    "read_assembly",
    "read_picture",
    "read_pieces",
    "read_puzzle",
    "render",
    "write_assembly",
    "write_file",
    "write_picture",
    "write_puzzle",
]
