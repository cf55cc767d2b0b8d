"""Learned comparison of the long sides of strips: which two continue each other, and shifted by how much.

Each side is read twice, as the right side of its strip and, turned by half, as a left side; two small networks turn its
rows into vectors. How well a right side continues in a left one is the sum of products over the rows that come beside
each other, so all shifts of all pairs are one correlation. Empty paper gives products of about zero: no evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from scipy.fft import next_fast_len
from torch import Tensor, nn

from diffassemble.core.settings import Width
from diffassemble.network.pretrained import Pretrained
from diffassemble.outlines.strip_sides import CHANNELS


@dataclass(frozen=True)
class ShiftConfig:
    """How far strips are shifted along each other; estimated on shredded pages, on which the networks were trained."""

    level: float = 0.45
    """share of pairs whose strips begin together, and of those that end together"""
    jitter: float = 2.0
    """mean distance by which they then miss it, in pixels"""
    anyhow: float = 0.1
    """share of all other pairs"""
    farthest: float = 0.1
    """largest shift beyond beginning or ending together, as a share of a strip's length"""
    block: int = 2**24
    """products of rows that are computed at once, which limits memory"""


SHIFTS = ShiftConfig()


@dataclass(frozen=True)
class StripModelConfig:
    """The size of the two networks."""

    hidden: Width = 32
    width: Width = 24
    """features of a row"""
    rows: Width = 7
    """rows that one layer reads; an odd number"""


class Comparison(NamedTuple):
    """How well sides continue each other, symmetric; within one strip never.

    `fits` are log odds but for a constant, summed over all shifts. With the first side on the right of its strip, the
    other strip's first row fits best at row `shifts` of the first strip. `alone` is the fit of no neighbour at all.
    """

    fits: Float[Tensor, "s s"]
    shifts: Int[Tensor, "s s"]
    alone: Float[Tensor, ""]


class StripModel(Pretrained):
    """Two networks, of sides seen as right and as left ones."""

    config_class = StripModelConfig
    odds: Tensor

    def __init__(self, config: StripModelConfig) -> None:
        super().__init__()
        self.config = config
        self.right, self.left = self._network(), self._network()
        self.alone = nn.Parameter(torch.zeros(()))
        # Shift and slope of the calibration of log odds.
        self.register_buffer("odds", torch.tensor([0.0, 1.0]))

    def _network(self) -> nn.Sequential:
        hidden, rows = self.config.hidden, self.config.rows
        return nn.Sequential(
            nn.Conv1d(CHANNELS, hidden, rows, padding=rows // 2),
            nn.GELU(),
            nn.Conv1d(hidden, hidden, rows, padding=rows // 2),
            nn.GELU(),
            nn.Conv1d(hidden, self.config.width, rows, padding=rows // 2),
        )

    def calibrated(self, odds: Float[Tensor, "s s"]) -> Float[Tensor, "s s"]:
        """Calibrated log odds."""
        return self.odds[0] + self.odds[1] * odds

    def forward(self, bands: Float[Tensor, "n 2 channels l"], lengths: Int[Tensor, "n"]) -> Comparison:
        """Compare all sides, numbered strip by strip: 2 · strip + side."""
        sides = bands.flatten(0, 1)
        own = lengths.repeat_interleave(2)
        rows = torch.arange(sides.shape[-1])
        inside = (rows < own[:, None])[:, None]
        upwards = (own[:, None] - 1 - rows).clamp(min=0)[:, None].expand_as(sides)
        right = self.right(sides).tanh() * (inside & (sides[:, -1:] > 0)) / 8
        turned = sides.gather(2, upwards) * inside
        left = self.left(turned).tanh() * (inside & (turned[:, -1:] > 0)) / 8
        longest, shortest = int(lengths.max()), int(lengths.min())
        most = longest - shortest + round(SHIFTS.farthest * longest)
        period = next_fast_len(longest + most + 1, real=True)
        waves, others = torch.fft.rfft(right, period), torch.fft.rfft(left, period).conj()
        shifts = torch.arange(-most, most + 1)
        # One and the same placement, seen upright and upside down, has these two shifts.
        difference = own[None] - own[:, None]
        fits, best = [], []
        for some in torch.arange(len(sides)).split(max(1, SHIFTS.block // (len(sides) * period))):
            one = torch.fft.irfft(torch.einsum("akf,bkf->abf", waves[some], others), period)
            two = torch.fft.irfft(torch.einsum("akf,bkf->baf", waves, others[some]), period)
            upright = one[..., shifts % period]
            about = (shifts + difference[some][..., None]) % period
            seen = (upright + two.gather(2, about)) / 2 + _prior(shifts, -difference[some], longest)
            best.append(shifts[seen.detach().argmax(-1)])
            fits.append(seen.logsumexp(-1))
        strip = torch.arange(len(sides)) // 2
        every = torch.cat(fits).masked_fill(strip[:, None] == strip, -1e4)
        return Comparison((every + every.T) / 2, torch.cat(best), self.alone)


def _prior(shifts: Int[Tensor, "k"], ends: Int[Tensor, "r s"], longest: int) -> Float[Tensor, "r s k"]:
    """Log probabilities of shifts, where a shift of `ends` lets two strips end together."""
    own = SHIFTS
    near = [(-(shifts - place[..., None]).abs() / own.jitter).exp() / (2 * own.jitter) for place in (0 * ends, ends)]
    return (own.level * (near[0] + near[1]) + own.anyhow / len(shifts)).log()


@cache
def load_strip_model() -> StripModel:
    """The bundled model, read once."""
    return StripModel.from_pretrained("strips").requires_grad_(False)
