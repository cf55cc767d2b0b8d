"""Edge lists in PyG's form: row 0 the sender, row 1 the receiver; a piece also hears itself.

Large puzzles are solved on expanders: sparse random graphs in which everyone is near everyone else. A graph of d
neighbours each mixes as fast as its second eigenvalue is small, and no such graph does much better than 2√(d−1) (Alon,
Boppana); random regular graphs come close to it (Friedman), lattices and rings do not.
"""

from __future__ import annotations

import math
from random import Random

import torch
from jaxtyping import Int
from torch import Tensor

from diffassemble.core import Matches


def complete_edges(puzzle: Int[Tensor, "n"]) -> Int[Tensor, "2 e"]:
    """Every piece with every piece of the same puzzle; `puzzle` is sorted."""
    return (puzzle[:, None] == puzzle).nonzero().T.flip(0)


def drop_edges(edges: Int[Tensor, "2 e"], share: float, generator: torch.Generator) -> Int[Tensor, "2 kept"]:
    """Lose a random `share` of the edges between different pieces; the paper's comparison to expanders."""
    kept = torch.rand(edges.shape[1], generator=generator, device=generator.device).to(edges.device) >= share
    return edges[:, kept | (edges[0] == edges[1])]


def lifted(edges: Int[Tensor, "2 e"], each: int) -> Int[Tensor, "2 f"]:
    """Edges between pieces as edges between all nodes of them; piece i has the nodes from each · i on."""
    if each == 1:
        return edges
    number = torch.arange(each, device=edges.device)
    pair = torch.stack([number.repeat_interleave(each), number.repeat(each)])
    return (each * edges[..., None] + pair[:, None]).flatten(1)


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


def match_edges(matches: Matches, top: int, slots: int) -> Int[Tensor, "2 e"]:
    """Every piece with the `top` most probable matches of each of its sides, both ways; pairs may come twice.

    A slot is a side of `first` beside a side of `second`, so slots with the same slot // √slots are of one side.
    """
    sides = math.isqrt(slots)
    side = matches.first * sides + matches.slot // sides
    order = matches.probability.argsort(descending=True, stable=True)
    order = order[side[order].argsort(stable=True)]
    counts = torch.bincount(side)
    start = torch.cumsum(counts, 0) - counts
    rank = torch.arange(len(order), device=order.device) - start[side[order]]
    chosen = order[rank < top]
    pairs = torch.stack([matches.second[chosen], matches.first[chosen]])
    return torch.cat([pairs, pairs.flip(0)], 1)


def sorted_edges(edges: Int[Tensor, "2 e"], count: int) -> Int[Tensor, "2 kept"]:
    """Edges among `count` nodes by receiver, then by sender, each once."""
    key = (edges[1] * count + edges[0]).unique()
    return torch.stack([key % count, key // count])


def expander_edges(puzzle: Int[Tensor, "n"], degree: float, generator: torch.Generator) -> Int[Tensor, "2 e"]:
    """An expander for every puzzle, never across puzzles, and everyone with itself; `puzzle` is sorted.

    Puzzles too small for the degree are joined completely.
    """
    parts, start = [], 0
    for count in torch.bincount(puzzle).tolist():
        neighbours = neighbours_of(degree, count)
        if neighbours == count - 1:
            own = complete_edges(torch.zeros(count, dtype=torch.long, device="cpu"))
        else:
            loops = torch.arange(count, device="cpu").expand(2, -1)
            own = torch.cat([regular_expander(count, neighbours, generator), loops], 1)
        parts.append(own + start)
        start += count
    return torch.cat(parts, 1).to(puzzle.device)


def neighbours_of(degree: float, count: int) -> int:
    """How many neighbours every one of `count` pieces gets.

    A degree of up to 1 is a share of the count − 1 others, more is a number. At least two, since one can't connect
    all; one more where pieces and neighbours are both odd in number, which no graph allows; never more than there are.
    """
    wanted = max(2, round(degree * (count - 1)) if degree <= 1 else int(degree))
    return min(wanted + count * wanted % 2, count - 1)


def regular_expander(count: int, degree: int, generator: torch.Generator) -> Int[Tensor, "2 e"]:
    """A connected random graph in which everyone has `degree` different neighbours; each edge both ways."""
    import networkx  # takes long to import, and only large puzzles need it

    random = Random(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
    graph = networkx.empty_graph(count)
    while not networkx.is_connected(graph):
        graph = networkx.random_regular_graph(min(degree, count - 1 - degree), count, random)
        # Of more than half of all pairs it is what such a graph leaves out.
        graph = networkx.complement(graph) if 2 * degree > count - 1 else graph
    pairs = torch.tensor(list(graph.edges), device="cpu").T
    return torch.cat([pairs, pairs.flip(0)], 1)
