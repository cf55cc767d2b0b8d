"""Solve a folder of square pictures of which nobody has told rows and columns, and correct the answer.

python examples/02_folder_of_pieces.py [folder]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import torch

import diffassemble as da

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
else:  # make one: a puzzle folder's pieces lie in a folder of their own
    da.write_puzzle(da.cut_image(str(files("skimage.data") / "coffee.png"), rows=3, cols=4, size=48), "coffee-puzzle")
    folder = Path("coffee-puzzle/pieces")

puzzle = da.open(folder)
assembly = da.solve(puzzle, "gallagher")
print(f"{len(puzzle)} pieces lie {puzzle.board.rows} by {puzzle.board.cols}")

# Whoever knows the place of the first piece locks it there, and the rest is built around it.
known = torch.arange(len(puzzle)) == 0
again = da.solve(replace(puzzle, locks=da.Locks(known, assembly.poses)), "gallagher")
da.write_assembly(again, "coffee-solved")
