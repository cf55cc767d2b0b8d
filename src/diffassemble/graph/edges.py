"""Edge lists in PyG's form: row 0 the sender, row 1 the receiver; a piece also hears itself."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.puzzle import Mates


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


def virtual_edges(puzzle: Int[Tensor, "n"], virtual: int) -> Int[Tensor, "2 e"]:
    """So many virtual nodes a puzzle, numbered behind all n pieces: each with its puzzle's pieces both ways, and with
    all virtual nodes of that puzzle; never across puzzles."""
    pieces, puzzles = torch.arange(len(puzzle), device=puzzle.device), int(puzzle[-1]) + 1
    number = torch.arange(virtual, device=puzzle.device)
    own = len(puzzle) + puzzle[:, None] * virtual + number
    piece = pieces[:, None].expand_as(own)
    first = len(puzzle) + virtual * torch.arange(puzzles, device=puzzle.device)[:, None, None]
    among = (first + number[:, None]).expand(-1, -1, virtual), (first + number).expand(-1, virtual, -1)
    sender = torch.cat([own.flatten(), piece.flatten(), among[0].flatten()])
    receiver = torch.cat([piece.flatten(), own.flatten(), among[1].flatten()])
    return torch.stack([sender, receiver])


def mate_edges(mates: Mates, top: int, kinds: int) -> Int[Tensor, "2 e"]:
    """Every piece with the `top` most probable mates of each of its sides, both ways; pairs may come twice.

    Matings of one side of `first` share slot // kinds.
    """
    side = mates.first * (int(mates.slot.max()) // kinds + 1 if len(mates) else 1) + mates.slot // kinds
    order = mates.weight.argsort(descending=True, stable=True)
    order = order[side[order].argsort(stable=True)]
    counts = torch.bincount(side)
    start = torch.cumsum(counts, 0) - counts
    rank = torch.arange(len(order), device=order.device) - start[side[order]]
    chosen = order[rank < top]
    pairs = torch.stack([mates.second[chosen], mates.first[chosen]])
    return torch.cat([pairs, pairs.flip(0)], 1)


def sorted_edges(edges: Int[Tensor, "2 e"], count: int) -> Int[Tensor, "2 kept"]:
    """Edges among `count` nodes by receiver, then by sender, each once."""
    key = (edges[1] * count + edges[0]).unique()
    return torch.stack([key % count, key // count])
