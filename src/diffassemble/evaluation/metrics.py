"""How good an answer is: pictures by cells and turns, objects as Breaking Bad defines it, flat pieces by their poses.

Metrics of pictures take the answer and the truth as cells and quarter turns per piece; pieces may be missing, those
that are given are scored on the full board. Errors of objects are given per piece; nothing else depends on the order
of the pieces. Lengths are shares of the whole object's longest side, angles are degrees, rotations must be orthogonal.
For flat pieces lengths are pixels, and scores do not depend on how the whole is moved.

`*_pairs_agree` compare relative poses: entry (i, j) of the symmetric matrix is whether pieces i and j have the same
pose relative to each other in the answer as in truth, by the criterion of the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.assembly.scoring import (
    RIGHT_DEGREES,
    RIGHT_SHARE,
    anchored,
    exact,
    flat_errors,
    piece_chamfer,
    right_pieces,
)
from diffassemble.core import Board, OutlinePieces, Poses, turn_matrix
from diffassemble.core.placements import Placements
from diffassemble.core.surfaces import chamfer_distance
from diffassemble.core.thresholds import SURE

Ints = Int[Tensor, "n"]


def placed_right(
    board: Board, cells: Ints, turns: Ints, true_cells: Ints, true_turns: Ints, *, wholes: Sequence[int] = (0,)
) -> Bool[Tensor, "n"]:
    """Which pieces have their right cell and turn, once the whole is turned by the best of `wholes` quarter turns."""
    turned = [board.turned(cells, turns, by) for by in wholes]
    right = [(cell == true_cells) & (turn == true_turns % 4) for _, cell, turn in turned]
    return max(right, key=lambda one: int(one.sum()))


def direct_comparison(board: Board, *placement: Ints) -> float:
    """Percent of the pieces that have their right cell and turn."""
    return _percent(placed_right(board, *placement))


def direct_comparison_free(board: Board, *placement: Ints) -> float:
    """Direct comparison at the best turn of the whole: all four on a square board, 0° and 180° on others."""
    return _percent(placed_right(board, *placement, wholes=board.fitting_turns()))


def neighbour_accuracy(board: Board, cells: Ints, turns: Ints, true_cells: Ints, true_turns: Ints) -> float:
    """Percent of the true neighbour pairs, both given, whose relative pose in the answer is right.

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
    """The second piece of each pair in the frame of the first: cells right, cells down, turn."""
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
    """Which pairs have the relative pose of the truth, seen from the first piece."""
    width = pieces.widths[pairs].amin(1).double()
    given, wanted = (exact[pairs[:, 0]].inverse() @ exact[pairs[:, 1]] for exact in (exact(answer), exact(truth)))
    return flat_errors(given, wanted, width).right


def board_pairs_agree(
    board: Board, cells: Ints, turns: Ints, true_cells: Ints, true_turns: Ints
) -> Bool[Tensor, "n n"]:
    """Pairs with the same step between their cells and the same turn between them as in truth, seen from the first."""
    count = len(cells)
    first, second = torch.arange(count).repeat_interleave(count), torch.arange(count).repeat(count)
    answer = _seen_from_first(board, cells, turns, first, second)
    truth = _seen_from_first(board, true_cells, true_turns, first, second)
    return (answer == truth).all(-1).view(count, count)


def flat_pairs_agree(width: Float[Tensor, "n"], answer: Poses, truth: Poses) -> Bool[Tensor, "n n"]:
    """Pairs of flat pieces that are both right after the motion that lays the line between their centres on that of
    the truth: half the difference of the two lengths is under a quarter of the smaller width, both angles under 5°."""
    angles, lengths, own = [], [], []
    for poses in (exact(answer), exact(truth)):
        line = poses.translation[None] - poses.translation[:, None]
        angles.append(torch.atan2(line[..., 1], line[..., 0]))
        lengths.append(line.norm(dim=-1))
        own.append(torch.atan2(poses.rotation[:, 1, 0], poses.rotation[:, 0, 0]))
    turned = (own[1] - own[0])[:, None] - (angles[1] - angles[0])
    off = torch.atan2(turned.sin(), turned.cos()).rad2deg().abs()
    near = (lengths[1] - lengths[0]).abs() / 2 < RIGHT_SHARE * torch.minimum(width[:, None], width[None]).double()
    return near & (torch.maximum(off, off.mT) < RIGHT_DEGREES)


def fragment_pairs_agree(points: Float[Tensor, "n p 3"], answer: Poses, truth: Poses) -> Bool[Tensor, "n n"]:
    """Pairs of fragments of which one is right, by its Chamfer distance, once the other stands at its true pose."""
    count = len(points)
    right = torch.zeros(count, count, dtype=torch.bool)
    for index in range(count):
        moved = anchored(answer, truth, index)
        # A point's distance to its own place bounds that to the nearest one, and costs no search.
        bound = 2 * (moved.apply(points) - truth.apply(points)).double().square().sum(-1).mean(-1)
        right[index] = right_pieces(bound)
        open_ = (~right[index]).nonzero()[:, 0]
        if len(open_):
            right[index, open_] = right_pieces(piece_chamfer(points[open_], moved[open_], truth[open_]))
    return right | right.mT


class Confirmed(NamedTuple):
    """Pieces at confidence ≥ 0.9, how many of them are right, and false joins: pairs of them with a wrong relative
    pose in one object."""

    sure: int
    right: int
    false_joins: int


def confirmed(
    found: Placements, agree: Callable[[Ints], Bool[Tensor, "m m"]], right: Bool[Tensor, "n"] | None = None
) -> Confirmed:
    """Count what is confirmed; `agree` compares the poses of the pieces with the given indices.

    Without `right`, right are the largest number of confirmed pieces that agree with one of them.
    """
    member = found.numbers.cpu()
    chosen = ((found.confidence.cpu() >= SURE) & (member >= 0)).nonzero()[:, 0]
    if not len(chosen):
        return Confirmed(0, 0, 0)
    together, same = member[chosen][:, None] == member[chosen], agree(chosen)
    count = int((together & same).sum(1).max()) if right is None else int(right[chosen].sum())
    return Confirmed(len(chosen), count, int((together & ~same).triu(1).sum()))


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """95 % Wilson interval of a share, in percent: (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)."""
    share, z = right / count, 1.959964
    middle = share + z * z / (2 * count)
    half = z * (share * (1 - share) / count + (z / (2 * count)) ** 2) ** 0.5
    scale = 100 / (1 + z * z / count)
    return max(0.0, scale * (middle - half)), min(100.0, scale * (middle + half))


def class_means(values: np.ndarray, classes: Sequence[str], counts: np.ndarray | None = None) -> np.ndarray:
    """Mean over classes of the means over their puzzles: (k,) of values (n, k), or (r, k) with `counts` (r, n), how
    often each puzzle is drawn."""
    one_hot = (np.array(classes)[:, None] == np.unique(classes)).astype(float)
    drawn = np.ones((1, len(values))) if counts is None else counts
    sums = np.einsum("rn,nc,nk->rck", drawn, one_hot, values, optimize=True)
    sizes = drawn @ one_hot
    means = np.where(sizes[..., None] > 0, sums / np.maximum(sizes, 1)[..., None], 0)
    found = means.sum(1) / (sizes > 0).sum(1)[:, None]
    return found[0] if counts is None else found


def bootstrap_intervals(
    values: np.ndarray, classes: Sequence[str] = (), *, resamples: int = 2000, seed: int = 0
) -> np.ndarray:
    """95 % percentile-bootstrap intervals (2, k) of the means over classes of values (n, k), resampling puzzles.

    The order of the puzzles does not matter.
    """
    names = np.array(classes or [""] * len(values))
    order = np.lexsort((*values.T[::-1], names))
    counts = np.random.default_rng(seed).multinomial(len(values), [1 / len(values)] * len(values), resamples)
    means = class_means(values[order], names[order].tolist(), counts.astype(float))
    return np.percentile(means, (2.5, 97.5), axis=0)
