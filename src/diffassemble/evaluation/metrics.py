"""How good an answer is: pictures by cells and turns, objects as Breaking Bad defines it, flat pieces by their poses.

Metrics of pictures take the answer and the truth as cells and quarter turns per piece; pieces may be missing, those
that are given are scored on the full board. Errors of objects are told piece by piece, in the order in which pieces are
listed; nothing else depends on that order. Lengths are shares of the whole object's longest side, angles are degrees,
rotations must be orthogonal. Of flat pieces lengths are pixels, and nobody asks how the whole stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.assembly.scoring import exact, flat_errors
from diffassemble.core import Board, OutlinePieces, Poses, turn_matrix
from diffassemble.core.surfaces import chamfer_distance

Ints = Int[Tensor, "n"]


def direct_comparison(
    board: Board, cells: Ints, turns: Ints, true_cells: Ints, true_turns: Ints, *, wholes: Sequence[int] = (0,)
) -> float:
    """Percent of the pieces that have their right place and turn once the whole is turned, the best way of `wholes`."""
    turned = [board.turned(cells, turns, by) for by in wholes]
    return max(_percent((cell == true_cells) & (turn == true_turns % 4)) for _, cell, turn in turned)


def direct_comparison_free(board: Board, *placement: Ints) -> float:
    """Direct comparison at the best turn of the whole: all four on a square board, 0° and 180° on others."""
    return direct_comparison(board, *placement, wholes=board.fitting_turns())


def neighbour_accuracy(board: Board, cells: Ints, turns: Ints, true_cells: Ints, true_turns: Ints) -> float:
    """Percent of the true neighbour pairs, both given, that lie to each other in the answer as they should.

    Turning or shifting the whole answer changes nothing; 100 where no two pieces are neighbours.
    """
    first, second = _neighbour_pairs(board, true_cells)
    answer = _seen_from_first(board, cells, turns, first, second)
    truth = _seen_from_first(board, true_cells, true_turns, first, second)
    return _percent((answer == truth).all(-1))


def _percent(right: Bool[Tensor, "k"]) -> float:
    return 100.0 * int(right.sum()) / len(right) if len(right) else 100.0


def _neighbour_pairs(board: Board, cells: Int[Tensor, "n"]) -> tuple[Int[Tensor, "k"], Int[Tensor, "k"]]:
    """Pieces that share a side, each pair once: (left, right) and (upper, lower)."""
    piece = torch.full((board.rows, board.cols), -1)
    piece[cells // board.cols, cells % board.cols] = torch.arange(len(cells))
    first = torch.cat([piece[:, :-1].flatten(), piece[:-1].flatten()])
    second = torch.cat([piece[:, 1:].flatten(), piece[1:].flatten()])
    given = (first >= 0) & (second >= 0)
    return first[given], second[given]


def _seen_from_first(board: Board, cells: Tensor, turns: Tensor, first: Tensor, second: Tensor) -> Int[Tensor, "k 3"]:
    """Where the second piece of each pair stands in the frame of the first: cells right, cells down, turn."""
    place = torch.stack([cells % board.cols, cells // board.cols], -1)
    step = (place[second] - place[first]).float()
    own = (turn_matrix(-turns[first]) @ step[..., None])[..., 0].round().long()
    return torch.cat([own, ((turns[second] - turns[first]) % 4)[:, None]], -1)


def euler_angles(rotation: Float[Tensor, "n 3 3"]) -> Float[Tensor, "n 3"]:
    """Angles (x, y, z) in degrees about the fixed axes, x first: R = R_z R_y R_x; y lies within ±90°."""
    matrix = rotation.double()
    x = torch.atan2(matrix[:, 2, 1], matrix[:, 2, 2])
    y = torch.asin((-matrix[:, 2, 0]).clamp(-1, 1))
    z = torch.atan2(matrix[:, 1, 0], matrix[:, 0, 0])
    return torch.stack([x, y, z], -1).rad2deg()


def euler_error(answer: Poses, truth: Poses) -> Float[Tensor, "n"]:
    """RMSE(R) of each piece: root mean square difference of its three Euler angles, each the short way round.

    Not a metric of rotations: the same rotation apart may count more or less. `geodesic_error` is one.
    """
    apart = (euler_angles(answer.rotation) - euler_angles(truth.rotation)).abs()
    return torch.minimum(apart, 360 - apart).square().mean(-1).sqrt()


def geodesic_error(answer: Poses, truth: Poses) -> Float[Tensor, "n"]:
    """The angle of the one turn that leads from answer to truth: acos((tr(R₁ᵀ R₂) − 1) / 2).

    Taken from sine and cosine together, since the cosine alone is blind to small angles.
    """
    between = answer.rotation.double().transpose(-1, -2) @ truth.rotation.double()
    cosine = (between.diagonal(dim1=-2, dim2=-1).sum(-1) - 1) / 2
    sine = (between - between.transpose(-1, -2)).flatten(1).norm(dim=-1) / 8**0.5
    return torch.atan2(sine, cosine).rad2deg()


def translation_error(answer: Poses, truth: Poses) -> Float[Tensor, "n"]:
    """RMSE(T) of each piece: root mean square of Δx, Δy, Δz; tables show it × 100."""
    return (answer.translation.double() - truth.translation.double()).square().mean(-1).sqrt()


def shape_chamfer(points: Float[Tensor, "n p 3"], answer: Poses, truth: Poses) -> float:
    """Chamfer distance of all points together: how like the whole is, whichever piece is where."""
    clouds = (poses.apply(points).double().flatten(0, 1)[None] for poses in (answer, truth))
    return float(chamfer_distance(*clouds))


def right_pairs(pieces: OutlinePieces, answer: Poses, truth: Poses, pairs: Int[Tensor, "m 2"]) -> Bool[Tensor, "m"]:
    """Which pairs stand to each other as in truth, wherever they stand."""
    width = pieces.widths[pairs].amin(1).double()
    given, wanted = (exact[pairs[:, 0]].inverse() @ exact[pairs[:, 1]] for exact in (exact(answer), exact(truth)))
    return flat_errors(given, wanted, width).right


def bootstrap_interval(values: Sequence[float], *, resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """95 % percentile-bootstrap interval of the mean, resampling whole puzzles, in whatever order they come."""
    sample = np.sort(np.asarray(values, dtype=float))
    generator = np.random.default_rng(seed)
    means = [generator.choice(sample, len(sample)).mean() for _ in range(resamples)]
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)
