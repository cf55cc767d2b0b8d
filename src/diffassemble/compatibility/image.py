"""Which sides of square pieces continue each other.

Mahalanobis gradient compatibility (Gallagher 2012): side i predicts the pixels beyond itself, c = edge + mean
gradient, with the covariance S of its own gradients; side j is judged by Σ_r (x_r − c_r)ᵀ S⁻¹ (x_r − c_r).
Expanded, all pairs of sides are one matrix product.

Sides of a piece, clockwise from the right: 0 right, 1 bottom, 2 left, 3 top. Side a of piece i has index 4i + a.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.geometry import Poses, turn_matrix
from diffassemble.puzzle import Mates

SIDES = 4
CHANNELS = 3
# A side whose own pixels hardly vary would trust itself without limit. Two squared grey levels measured best.
_VARIANCE_FLOOR = 2 / 255**2
# Log odds that two sides are true neighbours, fitted by `benchmarks/calibrate_borders.py` on training pictures:
# constant, level, level², low, high, low², high², low·high, level·low, level·high (see `odds_terms`).
_ODDS = (-1.3761, -0.0054, -0.0881, 1.8372, 2.5002, -0.1255, -0.5875, 0.4203, -0.1426, -0.2626)


def side_lines(pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "sides two s 3"]:
    """Outermost and second line of pixels of every side, read clockwise around the piece."""
    views = torch.stack([torch.rot90(pixels, side, (-2, -1)) for side in range(SIDES)], 1)
    lines = torch.stack([views[..., -1], views[..., -2]], 2)  # n, side, line, colour, along
    return lines.transpose(-1, -2).flatten(0, 1)


def border_scores(pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "sides sides"]:
    """Both-way Mahalanobis gradient compatibility of all side pairs over its expected value.

    Near 1 for true neighbours, several times that for others; infinite within one piece. Symmetric.
    """
    lines = side_lines(pixels.double() - 0.5)
    edge, inner = lines[:, 0], lines[:, 1]
    facing = edge.flip(1)  # the neighbour reads the common border the other way
    gradient = edge - inner
    mean = gradient.mean(1, keepdim=True)
    size = edge.shape[1]
    covariance = (gradient - mean).transpose(1, 2) @ (gradient - mean) / size
    precision = torch.linalg.inv(covariance + _VARIANCE_FLOOR * torch.eye(3).to(covariance))
    predicted = edge + mean
    weighted = predicted @ precision
    quadratic = torch.cat([precision.flatten(1), -2 * weighted.flatten(1)], 1)
    moments = torch.cat([(facing.transpose(1, 2) @ facing).flatten(1), facing.flatten(1)], 1)
    constant = (weighted * predicted).sum((1, 2))
    one_way = (quadratic @ moments.T + constant[:, None]).clamp(min=0)
    both_ways = ((one_way + one_way.T) / (6 * size)).float()
    piece = torch.arange(len(edge), device=pixels.device) // SIDES
    return both_ways.masked_fill(piece[:, None] == piece, torch.inf)


def odds_terms(
    scores: Float[Tensor, "sides sides"],
    chosen: Int[Tensor, "sides keep"],
    rows: Int[Tensor, "m"],
    cols: Int[Tensor, "m"],
) -> Float[Tensor, "m 10"]:
    """What the log odds of pairs are made of: a pair's own level, and its lower and higher lead over its rivals.

    A pair's rivals are the best other partner of each of its two sides; `chosen` lists partners, best first.
    """
    best, second = scores.gather(1, chosen[:, :2]).unbind(-1)
    row_rival = torch.where(chosen[rows, 0] == cols, second[rows], best[rows])
    col_rival = torch.where(chosen[cols, 0] == rows, second[cols], best[cols])
    level = torch.log(scores[rows, cols] + 0.02)
    lead = torch.stack([torch.log(row_rival + 0.02) - level, torch.log(col_rival + 0.02) - level], -1)
    low, high = lead.amin(-1), lead.amax(-1)
    terms = [torch.ones_like(level), level, level**2, low, high, low**2, high**2, low * high, level * low, level * high]
    return torch.stack(terms, -1).clamp(-20, 20)


def evidence(
    scores: Float[Tensor, "sides sides"],
    chosen: Int[Tensor, "sides keep"],
    rows: Int[Tensor, "m"],
    cols: Int[Tensor, "m"],
) -> Float[Tensor, "m 3"]:
    """The channels of chosen pairs: probability of being neighbours, rank among rivals, absolute certainty."""
    odds = odds_terms(scores, chosen, rows, cols) @ scores.new_tensor(_ODDS)
    own, best = scores[rows, cols], scores.gather(1, chosen[:, :1])[:, 0]
    rank = ((best[rows] + 1e-3) * (best[cols] + 1e-3) / (own + 1e-3) ** 2) ** 3
    return torch.stack([odds.sigmoid(), rank, 1 / (1 + (own / 2) ** 2)], -1)


def image_mates(pixels: Float[Tensor, "n 3 s s"], pitch: float, keep: int = 8) -> Mates:
    """The `keep` best partners of every side of every piece, as matings on a lattice of the given pitch."""
    sides = SIDES * len(pixels)
    if sides == SIDES:
        nobody = torch.zeros(0, dtype=torch.long, device=pixels.device)
        return mates_of_sides(nobody, nobody, pitch, pixels.new_zeros(0, CHANNELS))
    scores = border_scores(pixels)
    chosen = scores.topk(min(keep, sides - SIDES), largest=False)
    rows = torch.arange(sides, device=pixels.device).repeat_interleave(chosen.indices.shape[1])
    cols = chosen.indices.flatten()
    channels = evidence(scores, chosen.indices, rows, cols)
    return mates_of_sides(rows, cols, pitch, channels)


def mates_of_sides(
    first_side: Int[Tensor, "m"], second_side: Int[Tensor, "m"], pitch: float, channels: Float[Tensor, "m c"]
) -> Mates:
    """Matings of side pairs: side a of first lies against side b of second, one pitch away from its centre."""
    a, b = first_side % SIDES, second_side % SIDES
    outward = turn_matrix(b)[:, :, 0]  # where the right side's direction, (1, 0), is turned to
    relative = Poses(turn_matrix(b + 2 - a), pitch * outward)
    return Mates(first_side // SIDES, second_side // SIDES, relative, SIDES * a + b, channels)
