"""Which two fragments may touch along their breaks, and how they then lie to each other."""

from __future__ import annotations

import math
import time

import numpy as np
import torch

from diffassemble.core import FragmentPieces, Matches, Puzzle
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY, poses_of
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import Effort
from diffassemble.fragments.surface import facing_outward, spacing_of
from diffassemble.fragments.verification import Match, level_for, match_clusters

# Matches of a lower probability are left out.
_LEAST = 0.02


def prepare(pieces: FragmentPieces, models: FractureModels, seed: int) -> list[Fragment]:
    """Fragments ready for matching; what is drawn for each depends on the seed and its place in the list."""
    spacing = spacing_of(pieces)
    meshes = [facing_outward(mesh) for mesh in pieces.meshes]
    return [Fragment(mesh, spacing, models, seed + number) for number, mesh in enumerate(meshes)]


def find_matches(
    puzzle: Puzzle, models: FractureModels, generator: torch.Generator, budget: float = math.inf
) -> Matches:
    """The few most probable matches of every two fragments, in both directions; all fragments have slot 0.

    Channels of evidence: the probability that the match is true, the same over that of the best match of either
    fragment, and the share of the smaller fracture surface that touches. After `budget` seconds pairs are left out.
    """
    until = time.monotonic() + budget
    seed = int(torch.randint(1 << 30, (1,), generator=generator))
    fragments = prepare(puzzle.fragments, models, seed)
    clusters = [Cluster(fragments, {piece: IDENTITY}) for piece in range(len(fragments))]
    found: list[tuple[int, int, Match]] = []
    for first, one in enumerate(clusters):
        for second, two in enumerate(clusters[:first]):
            if time.monotonic() > until:
                break
            level, own = level_for(one, two), seed + 1000 * first + second
            matches = match_clusters(one, two, level, Effort(), models, own)
            found += [(first, second, match) for match in matches if match.probability >= _LEAST]
    both = [*found, *((second, first, match.reversed()) for first, second, match in found)]
    numbers = torch.tensor([(first, second) for first, second, _ in both]).long().view(-1, 2)
    chance = torch.tensor([match.probability for _, _, match in both])
    share = torch.tensor([float(match.numbers[4]) for _, _, match in both]).clamp(0, 1)
    best = torch.zeros(len(puzzle)).scatter_reduce(0, numbers[:, 0], chance, "amax")
    rank = chance / best[numbers].amax(1).clamp(min=1e-9)
    relative = poses_of(np.array([match.pose for _, _, match in both]).reshape(-1, 12))
    evidence = torch.stack([chance, rank, share], 1)
    return Matches(numbers[:, 0], numbers[:, 1], relative, torch.zeros(len(both), dtype=torch.long), evidence)
