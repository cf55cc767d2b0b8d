"""Which sides of pieces on a grid continue each other.

Mahalanobis gradient compatibility (Gallagher 2012): side i predicts the pixels beyond itself, c = edge + mean
gradient, with the covariance S of its own gradients; side j is scored by Σ_r (x_r − c_r)ᵀ S⁻¹ (x_r − c_r).
Expanded, all pairs of sides are one matrix product.

Sides of a piece, clockwise from the right: 0 right, 1 bottom, 2 left, 3 top. Side a of piece i has index 4i + a.
Oblong pieces fit at half turns only: upright sides touch upright ones, level sides touch level ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.core import Matches, Poses, turn_matrix
from diffassemble.core.board import SIDES
from diffassemble.core.matches import CHANNELS


@dataclass(frozen=True)
class EdgeConfig:
    """Numbers of border scores and of the probabilities that follow from them."""

    variance: float = 2 / 255**2
    """added to the variances of a side's gradients, in squared colours (two squared grey levels), so that sides whose
    own pixels hardly vary do not trust themselves without limit; the best of several tried"""
    softening: float = 0.02
    """added to scores (true neighbours: near 1) before logarithms or ratios are taken, for flat pieces score 0"""
    odds: tuple[float, ...] = (-1.3761, -0.0054, -0.0881, 1.8372, 2.5002, -0.1255, -0.5875, 0.4203, -0.1426, -0.2626)
    """log odds that two sides are neighbours, by `odds_terms`: constant, level, level², low, high, low², high²,
    low·high, level·low, level·high; fitted by benchmarks/calibrate_borders.py on training pictures"""
    bound: float = 20.0
    """largest absolute value of every one of these terms"""
    rank_slope: float = 3.0
    """how fast the rank channel falls with the logarithm of the score behind the best"""
    rank_softening: float = 0.001
    """added to scores before that logarithm is taken"""
    certain: float = 2.0
    """score at which the quality channel is ½"""
    block: int = 2**20
    """scores computed at once when only the best are kept"""
    fewest_rows: int = 104
    """least sides at once: products of fewer rows take more than twice as long a row"""


DEFAULT = EdgeConfig()
NEVER = 1e9
"""the score of an upright side against a level one of oblong pieces"""


def side_lines(pixels: Float[Tensor, "n 3 h w"], sides: Sequence[int] = range(SIDES)) -> Float[Tensor, "m two l 3"]:
    """Outermost and second line of pixels of these sides of every piece, read clockwise around it."""
    views = torch.stack([torch.rot90(pixels, side, (-2, -1))[..., -2:] for side in sides], 1)
    lines = torch.stack([views[..., -1], views[..., -2]], 2)  # n, side, line, colour, along
    return lines.transpose(-1, -2).flatten(0, 1)


@dataclass(frozen=True)
class Partners:
    """The best partners of every side, best first, and their scores."""

    side: Int[Tensor, "sides keep"]
    score: Float[Tensor, "sides keep"]


@dataclass(frozen=True)
class Borders:
    """What every side predicts and what it shows, so that the scores of any pairs are one matrix product.

    A score is the both-way Mahalanobis gradient compatibility over its expected value: near 1 for true neighbours,
    several times that for others. Symmetric.
    """

    predicted: Float[Tensor, "sides w"]
    observed: Float[Tensor, "sides w"]
    oblong: bool = False

    @staticmethod
    def of(pixels: Float[Tensor, "n 3 h w"], config: EdgeConfig = DEFAULT) -> Borders:
        """The borders of pieces; side a of piece i is number 4i + a."""
        if pixels.shape[-1] == pixels.shape[-2]:
            return Borders._of_lines(side_lines(pixels), config)
        upright, level = (Borders._of_lines(side_lines(pixels, sides), config) for sides in ((0, 2), (1, 3)))
        widest = max(upright.predicted.shape[1], level.predicted.shape[1])
        tables = []
        for names, apart in (("predicted", (0.0, NEVER)), ("observed", (1.0, 0.0))):
            padded = [
                F.pad(getattr(part, names), (0, widest - getattr(part, names).shape[1])) for part in (upright, level)
            ]
            # Two more columns, whose products add up to NEVER if one side is upright and the other is not.
            marks = padded[0].new_tensor([apart, apart[::-1]])
            marked = [torch.cat([part, mark.expand(len(part), 2)], 1) for part, mark in zip(padded, marks, strict=True)]
            # Sides 0 and 2, 1 and 3 of each piece, back in their order.
            tables.append(torch.stack([part.unflatten(0, (-1, 2)) for part in marked], 2).flatten(0, 2))
        return Borders(tables[0], tables[1], oblong=True)

    @staticmethod
    def _of_lines(lines: Float[Tensor, "sides two l 3"], config: EdgeConfig) -> Borders:
        lines = lines.double() - 0.5
        edge, inner = lines[:, 0], lines[:, 1]
        facing = edge.flip(1)  # the neighbour reads the common border the other way
        gradient = edge - inner
        mean = gradient.mean(1, keepdim=True)
        size = edge.shape[1]
        covariance = (gradient - mean).transpose(1, 2) @ (gradient - mean) / size
        precision = torch.linalg.inv(covariance + config.variance * torch.eye(3).to(covariance))
        continued = edge + mean
        weighted = continued @ precision
        constant = (weighted * continued).sum((1, 2))[:, None]
        predicted = torch.cat([precision.flatten(1), -2 * weighted.flatten(1), constant], 1) / (6 * size)
        moments = (facing.transpose(1, 2) @ facing).flatten(1)
        return Borders(predicted, torch.cat([moments, facing.flatten(1), torch.ones_like(constant)], 1))

    def __len__(self) -> int:
        return len(self.observed)

    def __getitem__(self, sides: Int[Tensor, "k"]) -> Borders:
        return Borders(self.predicted[sides], self.observed[sides], self.oblong)

    @property
    def rivals(self) -> int:
        """How many sides of other pieces may touch a side."""
        return (len(self) - SIDES) // (2 if self.oblong else 1)

    def against(self, other: Borders) -> Float[Tensor, "r c"]:
        """The scores of all these sides with all those of other pieces."""
        there = (self.predicted @ other.observed.T).clamp_(min=0)
        return there.add_((self.observed @ other.predicted.T).clamp_(min=0)).float()

    def scores(self, rows: Int[Tensor, "r"], cols: Int[Tensor, "c"]) -> Float[Tensor, "r c"]:
        """The scores of all pairs of some sides with some others; infinite within one piece."""
        same = (rows // SIDES)[:, None] == cols // SIDES
        return self[rows].against(self[cols]).masked_fill_(same, torch.inf)

    def best(self, keep: int, config: EdgeConfig = DEFAULT) -> Partners:
        """The `keep` best partners of every side, in blocks, so that the whole matrix is never in memory."""
        every = torch.arange(len(self), device=self.observed.device)
        keep = min(keep, self.rivals)
        # Allocated first: small results between large temporary arrays would fragment the heap.
        side, score = every.new_empty(len(self), keep), self.observed.new_empty(len(self), keep, dtype=torch.float32)
        for rows in every.split(max(config.fewest_rows, config.block // len(self))):
            same = (rows // SIDES)[:, None] == every // SIDES
            scores = self[rows].against(self).masked_fill_(same, torch.inf)
            score[rows], side[rows] = scores.topk(keep, largest=False)
        return Partners(side, score)


def odds_terms(partners: Partners, config: EdgeConfig = DEFAULT) -> Float[Tensor, "sides keep 10"]:
    """The regressors of a pair's log odds: the logarithm of its score, and its lower and higher lead over its rivals.

    A pair's rivals are the best other partner of each of its two sides.
    """
    logs = torch.log(partners.score + config.softening)
    best, second = logs[:, :1], logs[:, 1:2]
    own_rival = torch.cat([second, best.expand(-1, logs.shape[1] - 1)], 1)
    everyone = torch.arange(len(logs), device=logs.device)[:, None]
    mutual = partners.side[partners.side, 0] == everyone
    their_rival = torch.where(mutual, second[partners.side, 0], best[partners.side, 0])
    leads = own_rival - logs, their_rival - logs
    low, high = torch.minimum(*leads), torch.maximum(*leads)
    products = [low**2, high**2, low * high, logs * low, logs * high]
    return torch.stack([torch.ones_like(logs), logs, logs**2, low, high, *products], -1).clamp(
        -config.bound, config.bound
    )


def evidence(partners: Partners, config: EdgeConfig = DEFAULT) -> Float[Tensor, "sides keep 3"]:
    """The channels of pairs: probability of being neighbours, rank among rivals, quality whatever the rivals."""
    if not partners.side.numel():
        return partners.score.new_zeros(*partners.side.shape, CHANNELS)
    probability = (odds_terms(partners, config) @ partners.score.new_tensor(config.odds)).sigmoid()
    levels = torch.log(partners.score + config.rank_softening)
    behind = levels[:, :1] + levels[partners.side, 0] - 2 * levels
    return torch.stack([probability, rank_evidence(behind, config), quality_evidence(partners.score, config)], -1)


def rank_evidence(behind: Float[Tensor, "*s"], config: EdgeConfig = DEFAULT) -> Float[Tensor, "*s"]:
    """exp(slope · behind): 1 for pairs that are both sides' best, less by the logarithm they are behind the best."""
    return (config.rank_slope * behind).exp()


def quality_evidence(score: Float[Tensor, "*s"], config: EdgeConfig = DEFAULT) -> Float[Tensor, "*s"]:
    """1 / (1 + (score / certain)²): near 1 for border scores that only true neighbours have."""
    return 1 / (1 + (score / config.certain) ** 2)


def matches_of_partners(
    partners: Int[Tensor, "sides keep"], channels: Float[Tensor, "sides keep c"], pitch: float
) -> Matches:
    """Every side with each of its partners (none, or two or more), with their channels of evidence."""
    rows = torch.arange(len(partners), device=partners.device).repeat_interleave(partners.shape[1])
    return matches_of_sides(rows, partners.flatten(), pitch, channels.flatten(0, 1))


def matches_of_sides(
    first_side: Int[Tensor, "m"], second_side: Int[Tensor, "m"], pitch: float, channels: Float[Tensor, "m c"]
) -> Matches:
    """Matches of side pairs: side a of first touches side b of second, one pitch away from its centre."""
    a, b = first_side % SIDES, second_side % SIDES
    outward = turn_matrix(b)[:, :, 0]  # where the right side's direction, (1, 0), is turned to
    relative = Poses(turn_matrix(b + 2 - a), pitch * outward)
    return Matches(first_side // SIDES, second_side // SIDES, relative, SIDES * a + b, channels)
