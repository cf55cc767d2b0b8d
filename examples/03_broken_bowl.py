"""Break a bowl, lay its fragments out in disorder, and write them as files that other programs open.

python examples/03_broken_bowl.py
"""

from __future__ import annotations

import numpy as np
import torch
import trimesh

import diffassemble as da
from diffassemble.core import Mesh
from diffassemble.fragments.breaking import fracture_puzzle

profile = np.array([[0.0, 0.0], [0.5, 0.1], [0.8, 0.6], [0.75, 0.62], [0.45, 0.18], [0.0, 0.08]])
bowl = trimesh.creation.revolve(profile, sections=48)
mesh = Mesh(torch.tensor(bowl.vertices, dtype=torch.float32), torch.tensor(bowl.faces, dtype=torch.long))
puzzle = fracture_puzzle(mesh, 5, torch.Generator().manual_seed(0))
da.write_puzzle(puzzle, "bowl-puzzle")

# The truth is known here, so it can stand for an answer; `da.solve(puzzle)` finds one without it.
assembly = da.Assembly(puzzle, puzzle.truth, torch.ones(len(puzzle)), (), "truth", 0.0)
da.write_assembly(assembly, "bowl-solved")
print("open bowl-solved/assembled.glb in Blender, or all of bowl-solved/posed in MeshLab or CloudCompare")
