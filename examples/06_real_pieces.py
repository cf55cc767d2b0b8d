"""Put real pieces of any outline together, and print which to join first: lay them on the table by plan.png.

python examples/06_real_pieces.py [folder of cut-outs with alpha, or of photos]
"""

from __future__ import annotations

import sys
from importlib.resources import files

import diffassemble as da
from diffassemble.outlines.neighbours import next_joins

if len(sys.argv) > 1:
    puzzle = da.open(sys.argv[1])
else:
    # Pieces with tabs, turned by any angle; also "torn", "shards" and "strips".
    puzzle = da.cut_shape(str(files("skimage.data") / "coffee.png"), "tabs", pieces=12, seed=0)
    da.write_puzzle(puzzle, "jigsaw-puzzle")

assembly = da.solve(puzzle)
da.write_assembly(assembly, "jigsaw-solved")
for join in next_joins(assembly):
    print(join.words)
print("print jigsaw-solved/plan.png: every piece's number at its place, and how far to turn it")
