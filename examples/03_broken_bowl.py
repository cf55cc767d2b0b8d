"""Break a bowl, put its fragments together again, and write files that other programs open.

python examples/03_broken_bowl.py [folder or zip of meshes]
"""

from __future__ import annotations

import sys

import diffassemble as da

if len(sys.argv) > 1:
    puzzle = da.open(sys.argv[1])
else:
    puzzle = da.fracture("bowl", pieces=4, seed=0)
    da.write_puzzle(puzzle, "bowl-puzzle")

# The solver never sees the truth, which a puzzle that was broken here knows.
assembly = da.solve(puzzle)
for name, sure in zip(puzzle.names, assembly.confidence.tolist(), strict=True):
    print(f"{name}: {sure:.2f}")
da.write_assembly(assembly, "bowl-solved")
print("open bowl-solved/assembled.glb in Blender, or all of bowl-solved/posed in MeshLab or CloudCompare")
