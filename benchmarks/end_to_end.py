"""From the shell to the answer: seconds of `diffassemble solve` beside the solving itself.

Puzzles are made here: a picture in 36 and in 900 pieces, a plate in 8 fragments, and two clouds of 50,000 points. Each
is solved twice; the second run, which finds compiled kernels on disk, is told: seconds from the shell until
assembly.json is there and until everything is written, both without the seconds that the solver itself took, and the
processor's seconds of the whole run. On two idle cores the first should be at most 2.5 and the second at most 6.
Run: python benchmarks/end_to_end.py [--only 36]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

CASES = ("36", "900", "8-fragments", "2-clouds")


def make(case: str, folder: Path) -> Path:
    """The puzzle of a case."""
    from importlib.resources import files

    import numpy as np

    import diffassemble as da
    from diffassemble.core.surfaces import sample_surface
    from diffassemble.io.fragments import in_file_coordinates

    target = folder / case
    if case in ("36", "900"):
        side = 6 if case == "36" else 30
        da.write_puzzle(da.cut_image(str(files("skimage.data") / "astronaut.png"), side, side, seed=0), target)
    elif case == "8-fragments":
        da.write_puzzle(da.fracture("plate", pieces=8, seed=0), target)
    else:
        import torch

        puzzle = da.fracture("vase", pieces=2, seed=0)
        target.mkdir()
        for index in range(2):
            mesh = in_file_coordinates(puzzle.fragments, index)
            generator = torch.Generator().manual_seed(index)
            points, _ = sample_surface(mesh.vertices.double(), mesh.faces, 50_000, generator)
            np.save(target / f"{index}.npy", points.numpy())
    return target


def run(puzzle: Path, out: Path) -> dict[str, float]:
    """Solve once and tell how long what took."""
    began, before = time.monotonic(), os.times()
    words = [sys.executable, "-m", "diffassemble", "solve", str(puzzle), "--out", str(out), "--overwrite", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    answered = 0.0
    for line in process.stdout:
        if json.loads(line).get("file") == "assembly.json":
            answered = time.monotonic() - began
    told = process.stderr.read()
    if process.wait():
        raise SystemExit(told)
    everything, after = time.monotonic() - began, os.times()
    solving = float(told.split(" s; ")[0].split()[-1])
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "solving": solving,
        "to the answer": answered - solving,
        "to everything": everything - solving,
        "processor": spent,
    }


def main() -> None:
    """Measure every case, each on the second run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES)
    only = parser.parse_args().only
    with TemporaryDirectory() as home:
        for case in CASES if only is None else (only,):
            puzzle = make(case, Path(home))
            run(puzzle, Path(home) / "out")
            told = run(puzzle, Path(home) / "out")
            print(f"{case:12s}", "  ".join(f"{name} {seconds:.1f} s" for name, seconds in told.items()), flush=True)


if __name__ == "__main__":
    main()
