"""Seconds and peak memory to solve one puzzle, or to learn from four: dense attention, sparse graphs, PyG's edge lists.

The last is the same network on the complete graph, every layer through PyG's own TransformerConv; since every piece is
four nodes, that is left out where it would need more than about 16 GB. Every figure comes from a process of
its own: weights are loaded first, then one small puzzle warms up, then the work is measured.
Run: python benchmarks/solving.py [--work solve|learn] [--sides 6 12 20 30] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diffassemble.network.denoiser import Denoiser

PATHS = ("dense", "sparse", "edge lists")
# Sides of the largest puzzles whose lists of all edges should fit into 16 GB.
LARGEST_LISTED = {"solve": 20, "learn": 6}


def measure(work: str, side: int, path: str, model: str, samples: int, steps: int) -> dict[str, float | int | str]:
    """Solve one side × side puzzle, or learn from four, in this process."""
    import torch
    from skimage import data

    from diffassemble.assembly.answer import assemble
    from diffassemble.core import Board
    from diffassemble.network.batch import pack
    from diffassemble.network.denoiser import Denoiser
    from diffassemble.squares.cut import cut_picture
    from diffassemble.squares.edges import match_finder
    from diffassemble.squares.network_solvers import DiffusionSolver

    network = Denoiser.from_pretrained(model)
    network.config = replace(network.config, complete_up_to=0 if path == "sparse" else 10**9)
    if path == "edge lists":
        gather_along_edges(network)
    solver = DiffusionSolver(network, steps, samples)
    picture = torch.tensor(data.astronaut()).permute(2, 0, 1).float() / 255
    generator = torch.Generator().manual_seed(0)

    def run(side: int) -> None:
        puzzles = [cut_picture(picture, Board(side, side), generator, size=32) for _ in range(4)]
        if work == "solve":
            assemble(puzzles[0], solver)
            return
        batch = pack(puzzles, match_finder(network))
        noisy = torch.randn(len(batch.puzzle), 1, 4, generator=generator)
        time = torch.full((len(batch.puzzle), 1), 100)
        network.train()(noisy, time, network.condition(batch)).square().mean().backward()

    run(3)
    began = perf_counter()
    run(side)
    seconds = perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"work": work, "pieces": side * side, "path": path, "seconds": round(seconds, 3), "peak_mb": round(peak)}


def gather_along_edges(network: Denoiser) -> None:
    """From now on every graph is complete and every layer gathers its messages along a list of all edges."""
    import torch
    from torch import Tensor
    from torch_geometric.nn import TransformerConv

    from diffassemble.core.matches import CHANNELS
    from diffassemble.network.graph import EdgeGraph

    class Gathering(TransformerConv):
        def message_passing(self, nodes: Tensor, graph: EdgeGraph) -> Tensor:
            known, features = graph.features, None
            if known is not None:
                features = nodes.new_zeros(graph.edges.shape[1], known.slots, known.values.shape[1])
                features[(*known.pair, known.slot)] = known.values
                features = features.flatten(1)
            return torch.stack([self(x, graph.edges, features) for x in nodes.unbind(1)], 1)

    # Lists are made where edges are lost; of so small a share hardly one is.
    network.config = config = replace(network.config, dropped_edges=1e-12, sparse_solving=True)
    width, slots = config.width, config.edge_slots * CHANNELS if config.edge_features else None
    layers: Any = network.stack.layers
    for number, layer in enumerate(layers):
        layers[number] = Gathering(width, width // config.heads, config.heads, edge_dim=slots)
        layers[number].load_state_dict(layer.state_dict())


def main() -> None:
    """Measure every size and path and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=("solve", "learn"), default="solve")
    parser.add_argument("--paths", nargs="+", choices=PATHS, default=PATHS)
    parser.add_argument("--sides", type=int, nargs="+", default=[6, 12, 20, 30])
    parser.add_argument("--model", default="jigsaw")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs=2, metavar=("SIDE", "PATH"), help="measure one case in this process")
    options = parser.parse_args()
    if options.only:
        side, path = options.only
        asked = options.model, options.samples, options.steps
        print(json.dumps(measure(options.work, int(side), path, *asked)))
        return
    rows = []
    for side in options.sides:
        for path in options.paths:
            if path == "edge lists" and side > LARGEST_LISTED[options.work]:
                print(f"{side * side:5d} pieces  {path:10s}  left out: too much memory")
                continue
            command = [sys.executable, __file__, "--only", str(side), path, "--model", options.model]
            command += ["--samples", str(options.samples), "--steps", str(options.steps), "--work", options.work]
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
