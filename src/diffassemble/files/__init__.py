"""Puzzles, pictures, meshes and assemblies in and out of files; nothing is left half written."""

from diffassemble.files.assemblies import check_assembly_folder, read_assembly, render, write_assembly
from diffassemble.files.atomic import write_file
from diffassemble.files.fragments import read_fragments
from diffassemble.files.images import read_picture, write_picture
from diffassemble.files.meshes import MESH_ENDINGS, mesh_bytes, read_mesh
from diffassemble.files.pieces import check_count, check_pieces, read_pieces
from diffassemble.files.puzzles import knows_board, read_puzzle, write_puzzle

__all__ = [
    "MESH_ENDINGS",
    "check_assembly_folder",
    "check_count",
    "check_pieces",
    "knows_board",
    "mesh_bytes",
    "read_assembly",
    "read_fragments",
    "read_mesh",
    "read_picture",
    "read_pieces",
    "read_puzzle",
    "render",
    "write_assembly",
    "write_file",
    "write_picture",
    "write_puzzle",
]
