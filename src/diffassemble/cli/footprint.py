"""One measurement in a process of its own: `python -m diffassemble.cli.footprint '{"work": …}'` prints a row as JSON.

The highest memory of a process never falls again, so everything that is measured needs a fresh one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import torch

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.evaluation.footprints import COMPLETE, Footprint
from diffassemble.evaluation.squares import score_placement
from diffassemble.evaluation.sweep import answer, peak_megabytes
from diffassemble.io.pictures import read_picture
from diffassemble.squares.cut import cut_picture

if TYPE_CHECKING:
    from diffassemble.network.denoiser import Denoiser

# What a network's configuration says for each graph. Matches and expander: what large puzzles get in any case.
PAPER_SPARSE, SPARSE = "expander 20 %", "matches + expander"
GRAPHS: dict[str, dict[str, Any]] = {
    COMPLETE: {"degree": 0.0, "complete_up_to": 1_000_000},
    PAPER_SPARSE: {"degree": 0.2, "virtual_nodes": 8, "sparse_solving": True, "complete_up_to": 1_000_000},
    SPARSE: {"degree": 0.0, "complete_up_to": 0},
}
LEARN = "learn"
Run = Callable[[Puzzle], float | None]


@dataclass(frozen=True)
class Job:
    """What a process is to measure: solving by diffusion or hybrid, or learning from one puzzle (`learn`)."""

    work: str
    graph: str
    picture: str
    side: int
    size: int
    model: str
    samples: int
    steps: int
    seed: int


def measure_apart(job: Job) -> Footprint:
    """Measure in a fresh process."""
    what = f"{job.work} with {job.side**2} pieces on {job.graph}"
    printed, _, _ = run_apart(["-m", "diffassemble.cli.footprint", json.dumps(asdict(job))], what)
    return Footprint(**json.loads(printed.splitlines()[-1]))


def run_apart(words: Sequence[str], what: str) -> tuple[str, float, float]:
    """Let Python do `what` in a process of its own: what it printed, its seconds, and its highest memory in MB."""
    began = time.perf_counter()
    with TemporaryFile("w+") as errors:
        child = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=errors, text=True)
        assert child.stdout is not None
        printed = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if child.returncode:
            if child.returncode < 0:  # as for want of memory, or an instruction that this processor lacks
                raise InputError(f"{what}: was ended by {signal.Signals(-child.returncode).name}")
            last = (errors.read().strip().splitlines() or [f"exit code {child.returncode}"])[-1]
            raise InputError(f"{what}: {last}")
    return printed, time.perf_counter() - began, peak_megabytes(usage)


def measure(job: Job) -> Footprint:
    """Do the job in this process: load, warm up on a small puzzle, then measure."""
    picture = read_picture(Path(job.picture))
    small, puzzle = (
        cut_picture(picture, Board(side, side), torch.Generator().manual_seed(job.seed), size=job.size)
        for side in (3, job.side)
    )
    del picture
    run = (_learn if job.work == LEARN else _solve)(job)
    run(small)
    before, began = peak_megabytes(), time.perf_counter()
    accuracy = run(puzzle)
    seconds, peak = time.perf_counter() - began, peak_megabytes()
    return Footprint(job.work, job.graph, len(puzzle), seconds, peak, peak - before, accuracy)


def _network(job: Job) -> Denoiser:
    """The model on the graph that is asked for; virtual nodes that it never learnt are drawn at random."""
    from diffassemble.network.denoiser import Denoiser

    learnt = Denoiser.from_pretrained(job.model)
    torch.manual_seed(job.seed)
    network = Denoiser(replace(learnt.config, **GRAPHS[job.graph]))
    network.load_state_dict(learnt.state_dict(), strict=False)
    return network.eval()


def _solve(job: Job) -> Run:
    from diffassemble.network.denoiser import Denoiser
    from diffassemble.squares.diffusion import DiffusionSolver
    from diffassemble.squares.hybrid import HybridSolver

    network = _network(job)
    solver = HybridSolver() if job.work == "hybrid" else DiffusionSolver(network, job.steps, job.samples)
    # With nodes that it never learnt to listen to, a network's answer says nothing.
    known = network.config.virtual_nodes == Denoiser.from_pretrained(job.model).config.virtual_nodes

    def run(puzzle: Puzzle) -> float | None:
        step, seconds = answer(solver, puzzle, torch.Generator().manual_seed(job.seed))
        return score_placement(puzzle, step.poses, seconds).accuracy_free if known else None

    return run


def _learn(job: Job) -> Run:
    from diffassemble.network.batch import pack
    from diffassemble.squares.edge_model import match_finder

    network = _network(job).train()

    def run(puzzle: Puzzle) -> None:
        assert puzzle.truth is not None
        generator = torch.Generator().manual_seed(job.seed)
        batch, clean = pack([puzzle], match_finder(network)), network.space.to_vector(puzzle.truth)[:, None]
        times = torch.full((len(puzzle), 1), network.schedule.times // 2)
        noisy = network.space.noisy(clean, times, network.schedule, network.space.prior((len(puzzle), 1), generator))
        predicted = network(noisy, times, network.condition(batch, generator))
        (predicted - clean).square().mean().backward()

    return run


if __name__ == "__main__":
    print(json.dumps(asdict(measure(Job(**json.loads(sys.argv[1]))))))
