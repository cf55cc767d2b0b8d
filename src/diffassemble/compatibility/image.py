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


def evidence(
    scores: Float[Tensor, "sides sides"],
    best: Float[Tensor, "sides"],
    second: Float[Tensor, "sides"],
    rows: Int[Tensor, "m"],
    cols: Int[Tensor, "m"],
) -> Float[Tensor, "m 3"]:
    """The three channels of chosen pairs: rank among rivals, rank × distinctness, rank × certainty."""
    own = scores[rows, cols] + 1e-3
    rank = ((best[rows] + 1e-3) * (best[cols] + 1e-3) / own**2) ** 3
    distinct = 1 - (best + 1e-3) / (second + 1e-3)
    certainty = 1 / (1 + (own / 2) ** 2)
    return torch.stack([rank, rank * (distinct[rows] * distinct[cols]).sqrt(), rank * certainty], -1)


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
    channels = evidence(scores, chosen.values[:, 0], chosen.values[:, 1], rows, cols)
    return mates_of_sides(rows, cols, pitch, channels)


def mates_of_sides(
    first_side: Int[Tensor, "m"], second_side: Int[Tensor, "m"], pitch: float, channels: Float[Tensor, "m c"]
) -> Mates:
    """Matings of side pairs: side a of first lies against side b of second, one pitch away from its centre."""
    a, b = first_side % SIDES, second_side % SIDES
    outward = turn_matrix(b)[:, :, 0]  # where the right side's direction, (1, 0), is turned to
    relative = Poses(turn_matrix(b + 2 - a), pitch * outward)
    return Mates(first_side // SIDES, second_side // SIDES, relative, SIDES * a + b, channels)
