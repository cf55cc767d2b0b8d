"""First guesses at how two pieces touch: every stretch of every rim against every other.

Stretches of several lengths, smoothed as their length allows, become complex numbers about their middle; the product of
one piece's stretches with the reversed ones of all others gives, for each pair, the turn and what is left after it.
Colours along the rim are compared by the same kind of product.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Complex64, Float32, Int64
from numba import njit

from diffassemble.outlines.rims import Rims, smoothed

SAMPLES = 20


class Stretches(NamedTuple):
    """Stretches of one length along all rims: s of them; `start[i]` to `start[i + 1]` belong to piece i."""

    start: Int64[np.ndarray, "n+1"]
    shape: Complex64[np.ndarray, "s 20"]
    middle: Complex64[np.ndarray, "s"]
    colour: Float32[np.ndarray, "s 60"]
    bent: Float32[np.ndarray, "s"]


def stretches(rims: Rims, length: float, smooth: float, step: float) -> Stretches:
    """All stretches of this length, a new one every `step`; those longer than half of the rim are cut down to it."""
    shapes, middles, colours, counts = [], [], [], [0]
    for piece in range(len(rims.cells)):
        part = slice(rims.start[piece], rims.start[piece + 1])
        curve = smoothed(rims.points[part].astype(float), smooth)
        colour = smoothed(rims.near[part].astype(float), 3.0)
        whole = len(curve)
        begins = np.arange(0, whole, step)
        along = (begins[:, None] + np.linspace(0, length, SAMPLES) - length / 2).round().astype(int) % whole
        plane = curve[along, 0] + 1j * curve[along, 1]
        middle = plane.mean(1)
        shapes.append(plane - middle[:, None])
        middles.append(middle)
        colours.append(colour[along].reshape(len(begins), -1))
        counts.append(len(begins))
    shape = np.concatenate(shapes)
    # The square of how far a stretch strays from a line.
    square, plain = (shape**2).sum(1), (np.abs(shape) ** 2).sum(1)
    bent = (plain - np.abs(square)) / 2 / SAMPLES
    return Stretches(
        np.cumsum(counts),
        shape.astype(np.complex64),
        np.concatenate(middles).astype(np.complex64),
        np.concatenate(colours).astype(np.float32),
        bent.astype(np.float32),
    )


def seed_poses(
    found: Stretches, first: int, blur: float, colour: float, gap: float, most: int, whole: int
) -> list[Float32[np.ndarray, "k 4"]]:
    """For each piece after `first`, up to `most` poses of `first` in its frame, about `whole` in all, best first.

    `blur` is how far rims may stray (working pixels), `colour` the difference of colours that counts as much, and `gap`
    how far apart the rims are laid.
    """
    own = slice(found.start[first], found.start[first + 1])
    rest = slice(found.start[first + 1], None)
    there = found.shape[rest][:, ::-1]
    product = found.shape[own].conj() @ there.T
    power = (np.abs(found.shape[own]) ** 2).sum(1)[:, None] + (np.abs(there) ** 2).sum(1)
    left = np.maximum(power - 2 * np.abs(product), 0) / SAMPLES
    bent = np.minimum(found.bent[own][:, None], found.bent[rest])
    cost = left / (blur**2 + 0.3 * bent)
    if colour > 0:
        mine = found.colour[own]
        theirs = found.colour[rest].reshape(-1, SAMPLES, 3)[:, ::-1].reshape(-1, SAMPLES * 3)
        unlike = (mine**2).sum(1)[:, None] + (theirs**2).sum(1) - 2 * mine @ theirs.T
        cost = cost + np.maximum(unlike, 0) / SAMPLES / colour**2
    turn = product / np.maximum(np.abs(product), 1e-9)
    middle = found.middle[own]
    bounds = found.start[first + 1 :] - found.start[first + 1]
    parts = [slice(begin, end) for begin, end in itertools.pairwise(bounds)]
    chosen = [_lowest(cost[:, part], most) for part in parts]
    costs = [cost[:, part][at[:, 0], at[:, 1]] for part, at in zip(parts, chosen, strict=True)]
    every = np.concatenate(costs)
    limit = np.inf if len(every) <= whole else np.partition(every, whole)[whole]
    poses = []
    for part, at, paid in zip(parts, chosen, costs, strict=True):
        a, b = at[paid < limit].T
        turned = turn[:, part][a, b]
        chord = there[part][b, 0] - there[part][b, -1]  # reversed: from the first point to the last
        outward = -1j * chord / np.maximum(np.abs(chord), 1e-9)
        shift = found.middle[rest][part][b] + gap * outward - turned * middle[a]
        poses.append(np.stack([turned.real, turned.imag, shift.real, shift.imag], 1).astype(np.float32))
    return poses


@njit(cache=True)
@no_type_check
def _lowest(cost, most):
    """The lowest entries that no neighbour, rows and columns closing to rings, undercuts; up to `most`."""
    rows, columns = cost.shape
    where = np.zeros((rows * columns, 2), np.int64)
    value = np.zeros(rows * columns, np.float32)
    count = 0
    for row in range(rows):
        above, below = (row - 1) % rows, (row + 1) % rows
        for column in range(columns):
            here = cost[row, column]
            before, after = (column - 1) % columns, (column + 1) % columns
            if (
                here <= cost[above, column]
                and here <= cost[below, column]
                and here <= cost[row, before]
                and here <= cost[row, after]
                and here <= cost[above, after]
                and here <= cost[below, before]
            ):
                where[count, 0], where[count, 1] = row, column
                value[count] = here
                count += 1
    order = np.argsort(value[:count])[:most]
    return where[:count][order]
