"""Border gradients and a learned judgement of the same sides, weighed to one probability.

The judgement comes from a network that this room knows nothing of. Its weight against the gradients depends on how
many pixels the pieces have lost, so the numbers that weigh them come with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.compatibility.image import (
    FEWEST_ROWS,
    SIDES,
    Borders,
    certainty_evidence,
    mates_of_sides,
    rank_evidence,
)
from diffassemble.puzzle import Mates

# How many scores are computed at once.
_BLOCK = 2**20
_NEVER = -1e4
# Log odds beyond this are not told apart.
_CERTAIN = 12.0
# Added to border scores before their logarithm is taken.
_SOFTENING = 0.02
# Levels that differ by less are the same, whichever way they were computed.
_SAME = 1e-4
TERMS = 18


@dataclass(frozen=True)
class Judgement:
    """What every side foretells and what it shows; their product, both ways, is how much a pair fits.

    Over all sides and `alone`, the case that no partner is there, these are log probabilities but for a constant.
    `odds` are the coefficients of `Candidates.terms`; `gap` is how many pixels pieces are taken to have lost at every
    side.
    """

    foretold: Float[Tensor, "sides w"]
    shown: Float[Tensor, "sides w"]
    alone: Float[Tensor, ""]
    odds: Float[Tensor, "terms"]
    gap: int

    def __len__(self) -> int:
        return len(self.shown)

    def fits(self, rows: Int[Tensor, "r"]) -> Float[Tensor, "r sides"]:
        """How much some sides fit all sides; never within one piece. Symmetric."""
        piece = torch.arange(len(self), device=rows.device) // SIDES
        fits = self.foretold[rows] @ self.shown.T + self.shown[rows] @ self.foretold.T
        return fits.masked_fill(piece[rows][:, None] == piece, _NEVER)

    def normaliser(self, fits: Float[Tensor, "r sides"]) -> Float[Tensor, "r"]:
        """What to subtract from the fits of some sides to get log probabilities."""
        return torch.logaddexp(fits.logsumexp(1), self.alone)


Judge = Callable[[Float[Tensor, "n 3 s s"]], Judgement]


@dataclass(frozen=True)
class Candidates:
    """The most promising partners of every side, with what is known of the pairs.

    `level` is the logarithm of a pair's border score; `lead` and `lead_there` by how much those of its rivals, the
    best others of either side, are higher; `chance` and `chance_there` its log odds as the judge sees it from
    either side.
    """

    side: Int[Tensor, "sides keep"]
    level: Float[Tensor, "sides keep"]
    lead: Float[Tensor, "sides keep"]
    lead_there: Float[Tensor, "sides keep"]
    chance: Float[Tensor, "sides keep"]
    chance_there: Float[Tensor, "sides keep"]

    def terms(self) -> Float[Tensor, "sides keep 18"]:
        """What the log odds of pairs are made of."""
        level, low, high = self.level, *_sorted(self.lead, self.lead_there)
        less, more = _sorted(self.chance, self.chance_there)
        plain = [torch.ones_like(level), level, low, high, less, more]
        squares = [level**2, low**2, high**2, less**2 / 4, more**2 / 4]
        products = [low * high, level * low, level * high]
        shared = [less * more / 4, less * low / 2, more * low / 2, level * less / 2]
        return torch.stack([*plain, *squares, *products, *shared], -1).clamp(-40, 40)

    def evidence(self, odds: Float[Tensor, "terms"]) -> Float[Tensor, "sides keep 3"]:
        """The channels of pairs as border gradients alone give them, but for the probability, which is the judge's."""
        behind = self.lead.clamp(max=0) + self.lead_there.clamp(max=0)
        score = self.level.exp() - _SOFTENING
        return torch.stack([(self.terms() @ odds).sigmoid(), rank_evidence(behind), certainty_evidence(score)], -1)

    def mates(self, odds: Float[Tensor, "terms"], pitch: float) -> Mates:
        """The pairs as matings on a lattice."""
        rows = torch.arange(len(self.side)).repeat_interleave(self.side.shape[1])
        return mates_of_sides(rows, self.side.flatten(), pitch, self.evidence(odds).flatten(0, 1))


def _sorted(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return torch.minimum(one, other), torch.maximum(one, other)


def find_candidates(borders: Borders, judgement: Judgement, keep: int) -> Candidates:
    """The `keep` partners of every side that promise most to both, in blocks; none if there are not two others."""
    every = torch.arange(len(borders))
    keep = min(keep, len(borders) - SIDES)
    # Made beforehand: small pieces of memory kept between large ones that come and go would hold all of it.
    side, (level, fit) = every.new_empty(len(every), keep), torch.empty(2, len(every), keep).unbind()
    best, normaliser = torch.empty(len(every), 2), torch.empty(len(every))
    for rows in every.split(max(FEWEST_ROWS, _BLOCK // len(borders))):
        side[rows], level[rows], fit[rows], best[rows], normaliser[rows] = _look(rows, borders, judgement, keep)
    first, second = best[:, :1], best[:, 1:]
    lead = torch.where(level <= first + _SAME, second, first) - level
    lead_there = torch.where(level <= first[side, 0] + _SAME, second[side, 0], first[side, 0]) - level
    return Candidates(
        side, level, lead, lead_there, _log_odds(fit - normaliser[:, None]), _log_odds(fit - normaliser[side])
    )


def _look(rows: Int[Tensor, "r"], borders: Borders, judgement: Judgement, keep: int) -> tuple[Tensor, ...]:
    """For some sides: their candidates, levels and fits, the two lowest levels of all, and the fits' normaliser."""
    levels = torch.log(borders.scores(rows, torch.arange(len(borders))) + _SOFTENING)
    fits = judgement.fits(rows)
    chosen = (fits - levels).topk(keep).indices
    best = levels.topk(2, largest=False).values
    return chosen, levels.gather(1, chosen), fits.gather(1, chosen), best, judgement.normaliser(fits)


def _log_odds(log_probability: Tensor) -> Tensor:
    probable = log_probability.clamp(max=-1e-6)
    return (probable - torch.log(-torch.expm1(probable))).clamp(-_CERTAIN, _CERTAIN)


def judged_mates(pixels: Float[Tensor, "n 3 s s"], pitch: float, judge: Judge, keep: int = 8) -> Mates:
    """The most promising partners of every side, as matings on a lattice of the given pitch."""
    judgement = judge(pixels)
    return find_candidates(Borders.of(pixels), judgement, keep).mates(judgement.odds, pitch)
