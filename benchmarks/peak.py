"""Which share of the machine's matrix-product peak the denoiser reaches at 900 pieces.

Products are counted by torch's own counter, seconds are of the processor, the least of several passes, so that other
programs hardly count. The peak is that of a product of two 2048 × 2048 matrices in the same process and precision.
Run: python benchmarks/peak.py [--side 30] [--model jigsaw]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from skimage import data
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from diffassemble.core import Board
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import Denoiser
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edge_model import match_finder


def least_seconds(run: Callable[[], object], passes: int = 7) -> float:
    """Seconds of the processor of the fastest of several passes."""
    found = []
    for _ in range(passes):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def peak() -> float:
    """Operations a second of a large product."""
    matrix, product = torch.randn(2048, 2048), torch.empty(2048, 2048)
    return 2 * 2048**3 / least_seconds(lambda: torch.mm(matrix, matrix, out=product))


@torch.no_grad()
def main() -> None:
    """Print operations, seconds and share of one pass through the denoiser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=30)
    parser.add_argument("--model", default="jigsaw")
    options = parser.parse_args()
    network = Denoiser.from_pretrained(options.model)
    picture = torch.tensor(data.astronaut()).permute(2, 0, 1).float() / 255
    puzzle = cut_picture(picture, Board(options.side, options.side), torch.Generator().manual_seed(0), size=32)
    condition = network.condition(pack([puzzle], match_finder(network)))
    noisy, times = torch.randn(len(puzzle), 1, 4), torch.full((len(puzzle), 1), 100)
    best = peak()
    seconds = least_seconds(lambda: network(noisy, times, condition))
    with FlopCounterMode(display=False) as counter:
        network(noisy, times, condition)
    products = counter.get_total_flops()
    reached = products / seconds
    print(f"{len(puzzle)} pieces: {products / 1e9:.2f} billion operations in products, {seconds:.3f} s")
    for name, count in counter.get_flop_counts()["Global"].items():
        print(f"  {name}: {count / 1e9:.2f} billion")
    print(f"{reached / 1e9:.1f} of {best / 1e9:.1f} billion a second: {reached / best:.0%} of the peak")
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        network(noisy, times, condition)
    print(seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))


if __name__ == "__main__":
    main()
