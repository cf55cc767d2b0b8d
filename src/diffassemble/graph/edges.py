"""Edge lists in PyG's form: row 0 the sender, row 1 the receiver; a piece also hears itself."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor


def complete_edges(puzzle: Int[Tensor, "n"]) -> Int[Tensor, "2 e"]:
    """Every piece with every piece of the same puzzle; `puzzle` is sorted."""
    counts = torch.bincount(puzzle)
    start = torch.cumsum(counts, 0) - counts
    senders, receivers = [], []
    for first, count in zip(start.tolist(), counts.tolist(), strict=True):
        own = torch.arange(first, first + count, device=puzzle.device)
        senders.append(own.repeat(count))
        receivers.append(own.repeat_interleave(count))
    return torch.stack([torch.cat(senders), torch.cat(receivers)])


def drop_edges(edges: Int[Tensor, "2 e"], share: float, generator: torch.Generator) -> Int[Tensor, "2 kept"]:
    """Lose a random `share` of the edges between different pieces; the paper's comparison to expanders."""
    kept = torch.rand(edges.shape[1], generator=generator, device=generator.device).to(edges.device) >= share
    return edges[:, kept | (edges[0] == edges[1])]
