"""What puzzles cost by their number of pieces: memory and time of solving and of learning, each in its own process.

Ours stand beside the paper's figure "GPU memory consumption by total size", which is quoted: GB by pieces, on an RTX
4090. The highest memory of a process never falls again, so everything that is measured needs a fresh one:
`python -m diffassemble_research.footprints '{"work": …}'` prints a row as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import torch
from matplotlib.figure import Figure
from rich.table import Table

from diffassemble.cli.progress import show
from diffassemble.cli.sweep import SIDE
from diffassemble.core import Board, InputError, Puzzle
from diffassemble.evaluation.report import COLOURS, make_table, png, write_rows
from diffassemble.evaluation.squares import score_placement
from diffassemble.evaluation.sweep import answer, peak_megabytes, refuse
from diffassemble.io.atomic import write_file
from diffassemble.io.documents import parse_grid
from diffassemble.io.pictures import read_picture
from diffassemble.squares.cut import cut_picture
from diffassemble_research.evaluate import PaperOptions
from diffassemble_research.figures import FITTED_FROM, draw_curve, exponent, logarithmic
from diffassemble_research.tables import table_outputs, timed_pictures

if TYPE_CHECKING:
    from diffassemble.network.denoiser import Denoiser

COMPLETE = "complete"
QUOTED_MEMORY = {
    "complete": {36: 2.4, 144: 4.3, 400: 12.7, 676: 27.0, 900: 50.0},
    "expander 20 %": {36: 2.3, 144: 3.9, 400: 7.5, 676: 13.0, 900: 20.0},
}
SIDES = (6, 12, 20, 26, 30)
SOLVERS = ("diffusion", "hybrid")
# Graphs with a share of all pairs are measured up to so many pieces.
MOST_SHARED = 2500
# Settings of a network's configuration for each graph. Matches and expander: what large puzzles get in any case.
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
    printed, _, _ = run_apart(["-m", "diffassemble_research.footprints", json.dumps(asdict(job))], what)
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
    from diffassemble.squares.network_solvers import DiffusionSolver, HybridSolver

    network = _network(job)
    solver = HybridSolver() if job.work == "hybrid" else DiffusionSolver(network, job.steps, job.samples)
    # With nodes that it was not trained with, a network's answer is meaningless.
    known = network.config.virtual_nodes == Denoiser.from_pretrained(job.model).config.virtual_nodes

    def run(puzzle: Puzzle) -> float | None:
        step, seconds = answer(solver, puzzle, torch.Generator().manual_seed(job.seed))
        return score_placement(puzzle, step.placements, seconds).figures["accuracy_free"] if known else None

    return run


def _learn(job: Job) -> Run:
    from diffassemble.network.batch import pack
    from diffassemble.squares.edges import match_finder

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


def evaluate_memory(options: PaperOptions) -> None:
    """Measure, print, write and draw."""
    rows_file, figure = table_outputs(options, "memory")
    rows: list[Footprint] = []
    for job in jobs(options):
        rows.append(measure_apart(job))
        row = rows[-1]
        print(f"{row.work}, {row.graph}, {row.pieces} pieces: {row.seconds:.2f} s, {row.peak_mb:.0f} MB", flush=True)
        write_rows(rows, rows_file)
    show(footprint_table(rows))
    write_file(figure, footprint_figure(rows))
    print(f"wrote {len(rows)} rows to {rows_file} and drew {figure}")


def jobs(options: PaperOptions) -> Iterator[Job]:
    """What is measured, the smallest first: learning and every solver on every graph that is not too large for it."""
    boards = [parse_grid(text) for text in options.grid] or [Board(side, side) for side in SIDES]
    solvers = options.solver or ("diffusion",)
    for board in boards:
        long = f"table memory measures square grids, not {board.rows}x{board.cols}; pass one number"
        refuse(long, board.rows != board.cols)
    for name in solvers:
        refuse(f"table memory measures {' and '.join(SOLVERS)}, not '{name}'", name not in SOLVERS)
    picture = os.fspath(timed_pictures(options.data, "memory")[1][0])
    for board in sorted(boards, key=lambda board: board.cells):
        for work in (*solvers, LEARN):
            paper = () if work == "hybrid" else (PAPER_SPARSE,)
            for graph in (SPARSE,) if board.cells > MOST_SHARED else (COMPLETE, *paper, SPARSE):
                fixed = options.size or SIDE, options.model or "jigsaw", options.samples, options.steps, options.seed
                yield Job(work, graph, picture, board.rows, *fixed)


@dataclass(frozen=True)
class Footprint:
    """One process: what it did (solve, or learn from one puzzle), on which graph, how long and with how much memory.

    `peak_mb` is the highest memory of the process, `added_mb` how much of it came after the network was loaded and
    had solved a small puzzle.
    """

    work: str
    graph: str
    pieces: int
    seconds: float
    peak_mb: float
    added_mb: float
    accuracy_free: float | None = None


def footprint_table(rows: Sequence[Footprint]) -> Table:
    """One line for each process, the paper's memory for the same graph beside it, exponents below."""
    caption = (
        "Ours: memory of a process of its own, on this machine's processor; added: what came after loading. Paper: "
        "quoted, in training on a GPU. "
        f"Growth with the pieces, from {FITTED_FROM} on: {growth(rows) or 'too few sizes'}."
    )
    lines = []
    for row in rows:
        quoted = QUOTED_MEMORY.get(row.graph, {}).get(row.pieces)
        right = "" if row.accuracy_free is None else f"{row.accuracy_free:.1f}"
        numbers = [str(row.pieces), f"{row.seconds:.2f}", f"{row.peak_mb:.0f}", f"{row.added_mb:.0f}", right]
        lines.append([row.work, row.graph, *numbers, "" if quoted is None else f"{1000 * quoted:.0f}"])
    headings = ("work", "graph", "pieces", "seconds", "peak\nMB", "added\nMB", "right\n%", "paper\nMB")
    return make_table(headings, lines, caption=caption)


def growth(rows: Sequence[Footprint]) -> str:
    """The fitted exponents of time and added memory, kind by kind."""
    fits = []
    for name, own in _by_kind(rows).items():
        sizes = [row.pieces for row in own]
        powers = exponent(sizes, [row.seconds for row in own]), exponent(sizes, [row.added_mb for row in own])
        if powers[0] is not None and powers[1] is not None:
            fits.append(f"{name}: time n^{powers[0]:.2f}, memory n^{powers[1]:.2f}")
    return "; ".join(fits)


def footprint_figure(rows: Sequence[Footprint]) -> bytes:
    """A PNG with memory and seconds against pieces, all axes logarithmic; the paper's memory is dashed."""
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    memory, seconds = figure.subplots(1, 2)
    for number, (name, own) in enumerate(_by_kind(rows).items()):
        look = COLOURS[number % len(COLOURS)], "o-" if number < len(COLOURS) else "^-"
        pieces = [row.pieces for row in own]
        draw_curve(memory, f"{name}, ours", pieces, [row.peak_mb / 1000 for row in own], *look)
        draw_curve(seconds, "", pieces, [row.seconds for row in own], *look)
    for style, (graph, quoted) in zip(("s--", "D:"), QUOTED_MEMORY.items(), strict=True):
        draw_curve(memory, f"{graph}, paper (quoted, GPU)", list(quoted), list(quoted.values()), "#444444", style)
    for panel, name in ((memory, "GB of the process"), (seconds, "seconds")):
        logarithmic(panel, sorted({row.pieces for row in rows}))
        panel.set(xlabel="pieces", ylabel=name)
    figure.suptitle("Memory and time by pieces")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return png(figure)


def _by_kind(rows: Sequence[Footprint]) -> dict[str, list[Footprint]]:
    kinds: dict[str, list[Footprint]] = {}
    for row in rows:
        kinds.setdefault(f"{row.work}, {row.graph}", []).append(row)
    return kinds


if __name__ == "__main__":
    print(json.dumps(asdict(measure(Job(**json.loads(sys.argv[1]))))))
