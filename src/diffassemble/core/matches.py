"""Candidate matches: which two pieces may touch, their relative pose, and how probable that is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from diffassemble.core.poses import Poses

CHANNELS = 3
"""channels of evidence: probability, rank, quality"""
_TINY = 1e-6
"""probabilities are kept this far from 0 and 1 before their logarithm is taken"""


@dataclass(frozen=True)
class Matches:
    """m candidate matches of two pieces each: if `second` has pose T, then `first` has pose T @ `pose`.

    Arguments:
        first, second: indices of the pieces.
        pose: pose of `first` in the frame of `second`; D = 2 (pixels, or cells on a board) or 3 (units of the object).
        slot: which parts of the two pieces touch, where a pair may touch in several ways; 4·side of first + side of
            second for pieces with four sides, 0 for all others.
        evidence: channels in [0, 1]: probability that the two touch so, against all rivals; rank of the match, as its
            odds over those of the best rival of either piece; quality of the fit whatever the rivals.
        ceiling: the highest confidence that a piece joined by this match alone may have; 1 if not given.
        contact: length (plane) or area (space) along which the two touch, in units of a piece; unknown if not given.

    Example:
        >>> matches[matches.log_odds > 0]   # those more probable than not
    """

    first: Int[Tensor, "m"]
    second: Int[Tensor, "m"]
    pose: Poses
    slot: Int[Tensor, "m"]
    evidence: Float[Tensor, "m channels"]
    ceiling: Float[Tensor, "m"] | None = field(default=None)
    contact: Float[Tensor, "m"] | None = field(default=None)

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"Matches({len(self)} candidates, {int((self.probability >= 0.9).sum())} of them at 0.9 or more)"

    def __getitem__(self, index: Tensor) -> Matches:
        return replace(self, **{name: value[index] for name, value in vars(self).items() if value is not None})

    @staticmethod
    def none(dimension: int) -> Matches:
        """No candidates at all."""
        empty = torch.zeros(0, dtype=torch.long)
        return Matches(empty, empty, Poses.identity(0, dimension), empty, torch.zeros(0, CHANNELS))

    @property
    def probability(self) -> Float[Tensor, "m"]:
        """Probability of each match against all its rivals: the first channel."""
        return self.evidence[:, 0]

    @property
    def log_odds(self) -> Float64[Tensor, "m"]:
        """log(p / (1 − p)) of the probability."""
        return self.probability.double().clamp(_TINY, 1 - _TINY).logit()

    @property
    def quality_log_odds(self) -> Float64[Tensor, "m"]:
        """log(p / (1 − p)) of the quality, the third channel: how well two sides fit, whatever else would fit them."""
        return self.evidence[:, 2].double().clamp(_TINY, 1 - _TINY).logit()
