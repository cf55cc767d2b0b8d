"""Which share of the machine's matrix-product peak the denoiser reaches at 900 pieces.

Products are counted by torch's own profiler, seconds are of the processor, so that other programs do not count. The
peak is that of a product of two 2048 × 2048 matrices in the same process.
Run: python benchmarks/peak.py [--side 30] [--model jigsaw]
"""

from __future__ import annotations

import argparse
import time

import torch
from skimage import data
from torch.profiler import ProfilerActivity, profile

from diffassemble.core import Board
from diffassemble.network.batch import pack
from diffassemble.network.denoiser import Denoiser
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edge_model import match_finder


def peak() -> float:
    """Operations a second of a large product."""
    matrix = torch.randn(2048, 2048)
    matrix @ matrix
    began = time.process_time()
    for _ in range(3):
        matrix @ matrix
    return 3 * 2 * 2048**3 / (time.process_time() - began)


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
    network(noisy, times, condition)
    best = peak()
    began = time.process_time()
    network(noisy, times, condition)
    seconds = time.process_time() - began
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as seen:
        network(noisy, times, condition)
    products = sum(event.flops or 0 for event in seen.key_averages())
    print(
        f"{len(puzzle)} pieces: {products / 1e9:.2f} billion operations in products, {seconds:.3f} s of the processor"
    )
    reached = products / seconds
    print(f"{reached / 1e9:.1f} of {best / 1e9:.1f} billion a second: {reached / best:.0%} of the peak")
    print(seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))


if __name__ == "__main__":
    main()
