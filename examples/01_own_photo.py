"""Cut a photo of your own into pieces, put them together, and look at how sure each piece is.

python examples/01_own_photo.py [photo.jpg]
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

import diffassemble as da

photo = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(str(files("skimage.data") / "astronaut.png"))
puzzle = da.cut_image(photo, rows=4, cols=4, seed=0, size=48)
assembly = da.solve(puzzle, budget=10.0)

for name, sure in zip(puzzle.names, assembly.confidence.tolist(), strict=True):
    print(f"{name}: {sure:.2f}")
da.render(assembly, "solved.png")
print("wrote solved.png")
