# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Three things put back together
#
# A photograph in square pieces, a jigsaw with tabs, a broken bowl: the same three calls each. Open this file in Jupyter
# with jupytext, or make a notebook of it: `jupytext --to ipynb tour.py`.

# %%
from importlib.resources import files

import diffassemble as da

photo = str(files("skimage.data") / "astronaut.png")

# %% [markdown]
# ## Square pieces
# Shuffled and turned; a puzzle shows its pieces as they were given.

# %%
puzzle = da.cut_image(photo, rows=5, cols=5, seed=0)
puzzle

# %%
answer = da.solve(puzzle, progress=True)
answer

# %% [markdown]
# How sure is each piece? Above 0.9 you can build on it; a low one means: look here first.

# %%
sorted(zip(answer.confidence.tolist(), puzzle.names, strict=True))[:5]

# %% [markdown]
# ## Pieces missing, some locked
# Three in ten pieces are lost. We know the first two places of the rest, and lock them.

# %%
import torch

fewer = da.cut_image(photo, rows=5, cols=5, seed=1, missing=0.3)
assert fewer.truth is not None
locks = da.Locks(torch.arange(len(fewer)) < 2, fewer.truth)
da.solve(fewer, locks=locks)

# %% [markdown]
# ## A jigsaw with tabs
# Turned by any angle. `da.open("photos/")` reads photographs of real ones.

# %%
jigsaw = da.cut_shape(photo, "tabs", pieces=24, seed=0)
jigsaw

# %%
da.solve(jigsaw)

# %% [markdown]
# ## A broken bowl
# `da.open("scans/")` reads meshes and clouds of real fragments.

# %%
bowl = da.fracture("bowl", pieces=5, seed=0)
bowl

# %%
mended = da.solve(bowl)
mended

# %% [markdown]
# Files for Blender, MeshLab and CloudCompare, pictures, and a report:

# %%
da.write_assembly(mended, "bowl-mended")
