"""Pairwise evidence: which two pieces may touch, and how they then lie to each other."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core.poses import Poses

# Channels of evidence: probability, rank, absolute quality.
CHANNELS = 3


@dataclass(frozen=True)
class Matches:
    """If `second` stands at T, then `first` stands at T @ relative.

    `slot` tells the ways in which one pair may touch apart (2D: 4·side of first + side of second);
    `evidence` holds the channels, all in [0, 1], that say how well the two fit: the probability that
    they really touch, how highly the fit ranks among all others, and how good it is in absolute terms.
    """

    first: Int[Tensor, "m"]
    second: Int[Tensor, "m"]
    relative: Poses
    slot: Int[Tensor, "m"]
    evidence: Float[Tensor, "m channels"]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def weight(self) -> Float[Tensor, "m"]:
        """How probable each match is: the first channel."""
        return self.evidence[:, 0]

    def __getitem__(self, index: Tensor) -> Matches:
        return Matches(
            self.first[index], self.second[index], self.relative[index], self.slot[index], self.evidence[index]
        )
