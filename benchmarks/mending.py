"""Seconds for one broken object from reading its files to the written scene, station by station, and for learning.

Objects are broken here, bowls of 8 and 20 pieces. Every solver and size has a process of its own, which first solves
a small object, so that weights are loaded and loops compiled. Processor time stands beside the time on the clock.
Run: python benchmarks/mending.py [--pieces 8 20] [--solver diffusion mend] [--model fragments]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def measure(solver: str, pieces: int, model: str) -> dict[str, float | int | str]:
    """Read, solve and write one object in this process."""
    import torch

    from diffassemble.assembly.answer import assemble
    from diffassemble.assembly.kind import SolverOptions
    from diffassemble.fragments.breaking import fracture, scatter
    from diffassemble.fragments.shapes.catalogue import make_solid
    from diffassemble.io.fragments import object_contents
    from diffassemble.io.puzzles import read_puzzle, write_puzzle
    from diffassemble.kinds import make_solver

    spent: dict[str, float] = {}

    def timed(station: str, work: Callable[[], T]) -> T:
        clock, processor = time.perf_counter(), time.process_time()
        result = work()
        spent[station] = round(time.perf_counter() - clock, 2)
        spent[f"{station}_processor"] = round(time.process_time() - processor, 2)
        return result

    def run(folder: Path, count: int) -> None:
        generator = torch.Generator().manual_seed(0)
        whole = make_solid("bowl", generator)
        write_puzzle(scatter(fracture(whole, count, generator), generator), folder)
        puzzle = timed("read", lambda: read_puzzle(folder))
        assembly = timed("solve", lambda: assemble(puzzle.without_truth(), loaded))
        timed(
            "write", lambda: [(folder / Path(name).name).write_bytes(data) for name, data in object_contents(assembly)]
        )

    loaded = make_solver("fragments", solver, SolverOptions(model))
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder) / "small", 2)
        run(Path(folder) / "large", pieces)
    total = round(sum(seconds for station, seconds in spent.items() if not station.endswith("processor")), 2)
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {"solver": solver, "pieces": pieces, **spent, "seconds": total, "peak_mb": peak}


def learning(preset: str, steps: int) -> str:
    """Objects a second that a network learns from, on one core."""
    import torch

    from diffassemble.fragments.datasets import break_solids
    from diffassemble.training.fragment_data import FragmentStream, make_pool
    from diffassemble.training.fragments import FragmentTask
    from diffassemble.training.presets import PRESETS

    torch.set_num_threads(1)
    config = PRESETS[preset].config
    generator = torch.Generator().manual_seed(0)
    pools = [(make_pool(made.meshes(), generator), None) for made in break_solids(20, 1, (6, 10))]
    task = FragmentTask.__new__(FragmentTask)
    task.config = config
    task.stream = FragmentStream([[], [], pools], config.data, config.training.pieces, 0)
    network = task.build()
    task.loss(network, 0, 0, 1).backward()
    began, objects = time.process_time(), 0
    for step in range(1, steps + 1):
        objects += len(task.stream.batch(step).puzzles)
        task.loss(network, step, 0, 1).backward()
    seconds = time.process_time() - began
    return f"{preset}: {objects / seconds:.1f} objects a second of processor time, {seconds / steps:.2f} s a step"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", type=int, nargs="+", default=[8, 20])
    parser.add_argument("--solver", nargs="+", default=["diffusion", "mend"])
    parser.add_argument("--model", default="fragments")
    parser.add_argument("--learning-steps", type=int, default=5, help="0: do not measure learning")
    parser.add_argument("--only", nargs=2, metavar=("SOLVER", "PIECES"), help="measure one case in this process")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only[0], int(options.only[1]), options.model)))
        return
    for solver in options.solver:
        for pieces in options.pieces:
            command = [sys.executable, __file__, "--only", solver, str(pieces), "--model", options.model]
            row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            stations = ", ".join(
                f"{name} {row[name]} ({row[name + '_processor']})" for name in ("read", "solve", "write")
            )
            print(
                f"{pieces:3d} pieces  {solver:10s}  {row['seconds']:6.2f} s: {stations}  {row['peak_mb']} MB",
                flush=True,
            )
    if options.learning_steps:
        print(learning("fragments-paper-form", options.learning_steps))


if __name__ == "__main__":
    main()
