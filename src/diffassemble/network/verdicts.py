"""The network's verdict on each match: how probable it is that it is true, given all else that is heard."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import Matches, Poses
from diffassemble.core.matches import CHANNELS
from diffassemble.network.spatial import OPINIONS, Opinions, residuals


@dataclass(frozen=True)
class VerdictConfig:
    """Angles, in radians, and distances, in units; the weights were trained with these numbers."""

    close: tuple[float, float] = (0.1, 0.03)
    """within which an opinion bears a match out closely"""
    rough: tuple[float, float] = (0.4, 0.15)
    """within which it does so roughly"""
    true: tuple[float, float] = (0.2, 0.08)
    """within which a match is true"""
    hidden: int = 48
    """width of the hidden layers"""


DEFAULT = VerdictConfig()


class Verdicts(nn.Module):
    """Log odds of matches: those that they came with, and a correction.

    It is made of what the nodes of both pieces say, and of how closely each opinion about their poses shows the match:
    if those that others made without it do, it closes a loop.
    """

    def __init__(self, width: int, config: VerdictConfig = DEFAULT) -> None:
        super().__init__()
        self.config, hidden = config, config.hidden
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.own = nn.Linear(CHANNELS + 1 + 2 * OPINIONS, hidden)
        correction = nn.Linear(hidden, 1)
        nn.init.zeros_(correction.weight)
        nn.init.zeros_(correction.bias)
        self.last = nn.Sequential(nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), correction)

    def forward(
        self, nodes: Float[Tensor, "n k w"], matches: Matches, said: Opinions, unit: Float[Tensor, "n"]
    ) -> Float[Tensor, "m k"]:
        """Log odds of every match in every sample."""
        angle, far = residuals(matches, said.rotation, said.place)
        far = far / unit[matches.first, None, None]
        seen = [
            torch.exp(-0.5 * ((angle / turn).square() + (far / shift).square()))
            for turn, shift in (self.config.close, self.config.rough)
        ]
        chance = matches.probability.clamp(1e-4, 1 - 1e-4)
        odds = torch.log(chance / (1 - chance))
        known = torch.cat([matches.evidence, odds[:, None] / 4], 1)[:, None].expand(-1, nodes.shape[1], -1)
        own = self.own(torch.cat([known, *seen], -1))
        joined = own + self.first(nodes)[matches.first] + self.second(nodes)[matches.second]
        return odds[:, None] + self.last(joined)[..., 0].float()


def verdict_loss(
    verdict: Float[Tensor, "m k"],
    matches: Matches,
    true: Poses,
    unit: Float[Tensor, "n"],
    config: VerdictConfig = DEFAULT,
) -> Float[Tensor, ""]:
    """Cross-entropy of whether each match is true; `true` has the poses of k samples, piece by piece."""
    samples = verdict.shape[1]
    rotation, place = (part.unflatten(0, (-1, samples))[:, :1] for part in (true.rotation, true.translation))
    angle, far = residuals(matches, rotation, place)
    right = (angle < config.true[0]) & (far < config.true[1] * unit[matches.first, None])
    return nn.functional.binary_cross_entropy_with_logits(verdict, right.float().expand_as(verdict))
