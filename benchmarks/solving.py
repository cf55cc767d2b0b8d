"""Seconds and peak memory to solve one puzzle: dense attention against the same network through PyG's edge lists.

Every figure comes from a process of its own: weights are loaded first, then one small puzzle warms up,
then the measured puzzle is solved. Run: python benchmarks/solving.py [--sides 6 12 20 30] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

PATHS = ("dense", "edge lists")


def measure(side: int, path: str, model: str, samples: int, steps: int) -> dict[str, float | int | str]:
    """Solve one side × side puzzle in this process."""
    import torch
    from skimage import data

    from diffassemble.cutting.image import cut_picture
    from diffassemble.graph import complete_edges, edge_graph
    from diffassemble.model.batch import PuzzleBatch
    from diffassemble.model.denoiser import SLOTS, Denoiser
    from diffassemble.puzzle import Board
    from diffassemble.solvers import DiffusionSolver, assemble

    class ThroughEdgeLists(Denoiser):
        """The same network, but every layer gathers its messages along a list of all edges."""

        def _graph(self, batch: PuzzleBatch, generator: torch.Generator | None) -> object:
            mates = batch.mates if self.config.edge_features else None
            return edge_graph(complete_edges(batch.puzzle), batch.puzzle, mates, SLOTS)

    kind = Denoiser if path == "dense" else ThroughEdgeLists
    network = Denoiser.from_pretrained(model)
    network.__class__ = kind
    solver = DiffusionSolver(network, steps, samples)
    picture = torch.tensor(data.astronaut()).permute(2, 0, 1).float() / 255
    generator = torch.Generator().manual_seed(0)
    assemble(cut_picture(picture, Board(3, 3), generator, size=32), solver)
    puzzle = cut_picture(picture, Board(side, side), generator, size=32)
    began = time.monotonic()
    assemble(puzzle, solver)
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"pieces": side * side, "path": path, "seconds": round(seconds, 3), "peak_mb": round(peak)}


def main() -> None:
    """Measure every size and path and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[6, 12, 20, 30])
    parser.add_argument("--model", default="jigsaw")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs=2, metavar=("SIDE", "PATH"), help="measure one case in this process")
    options = parser.parse_args()
    if options.only:
        side, path = options.only
        print(json.dumps(measure(int(side), path, options.model, options.samples, options.steps)))
        return
    rows = []
    for side in options.sides:
        for path in PATHS:
            command = [sys.executable, __file__, "--only", str(side), path, "--model", options.model]
            command += ["--samples", str(options.samples), "--steps", str(options.steps)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{side * side:5d} pieces  {path:10s}  failed: {done.stderr.strip().splitlines()[-1:]}")
                continue
            rows.append(json.loads(done.stdout))
            row = rows[-1]
            print(f"{row['pieces']:5d} pieces  {path:10s}  {row['seconds']:8.2f} s  {row['peak_mb']:6d} MB", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
