"""Which two fragments may touch along their breaks, and how they then lie to each other."""

from __future__ import annotations

import math
import time

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import FragmentPieces, Matches, Poses
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import IDENTITY
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import Effort
from diffassemble.fragments.surface import facing_outward, spacing_of
from diffassemble.fragments.verification import Match, level_for, match_clusters

_CHANNELS = 3


def prepare(pieces: FragmentPieces, models: FractureModels, seed: int) -> list[Fragment]:
    """Fragments ready for matching; what is drawn for each depends on the seed and its place in the list."""
    spacing = spacing_of(pieces)
    meshes = [facing_outward(mesh) for mesh in pieces.meshes]
    return [Fragment(mesh, spacing, models, seed + number) for number, mesh in enumerate(meshes)]


def fragment_matches(
    pieces: FragmentPieces,
    models: FractureModels,
    generator: torch.Generator,
    effort: Effort | None = None,
    least: float = 0.02,
    budget: float = math.inf,
) -> Matches:
    """The few most probable matings of every two fragments, in both directions; all fragments have slot 0.

    Channels of evidence: the probability that the mating is true, the same over that of the best mating of either
    fragment, and the share of the smaller break that touches. After `budget` seconds pairs are left out.
    """
    until = time.monotonic() + budget
    seed = int(torch.randint(1 << 30, (1,), generator=generator))
    fragments = prepare(pieces, models, seed)
    clusters = [Cluster(fragments, {piece: IDENTITY}) for piece in range(len(fragments))]
    found: list[tuple[int, int, Match]] = []
    for first in range(len(clusters)):
        for second in range(first):
            if time.monotonic() > until:
                break
            one, two = clusters[first], clusters[second]
            matches = match_clusters(
                one, two, level_for(one, two), effort or Effort(), models, seed + 1000 * first + second
            )
            found += [(first, second, match) for match in matches if match.probability >= least]
    return _as_matches(found, len(fragments))


def _as_matches(found: list[tuple[int, int, Match]], pieces: int) -> Matches:
    """Matches in both directions, as core has them."""
    both = [*found, *((second, first, match.reversed()) for first, second, match in found)]
    first = torch.tensor([entry[0] for entry in both], dtype=torch.long)
    second = torch.tensor([entry[1] for entry in both], dtype=torch.long)
    poses = np.array([entry[2].pose for entry in both], np.float32).reshape(-1, 12)
    relative = Poses(torch.from_numpy(poses[:, :9].copy()).view(-1, 3, 3), torch.from_numpy(poses[:, 9:].copy()))
    chance = torch.tensor([entry[2].probability for entry in both], dtype=torch.float32)
    share = torch.tensor([float(entry[2].numbers[4]) for entry in both], dtype=torch.float32).clamp(0, 1)
    evidence = torch.stack([chance, _ranked(chance, first, second, pieces), share], 1).view(-1, _CHANNELS)
    return Matches(first, second, relative, torch.zeros_like(first), evidence)


def _ranked(chance: Float[Tensor, "m"], first: Tensor, second: Tensor, pieces: int) -> Float[Tensor, "m"]:
    """Each probability over the highest that either of its two fragments has."""
    best = torch.zeros(pieces).scatter_reduce(0, first, chance, "amax")
    return chance / torch.maximum(best[first], best[second]).clamp(min=1e-9)
