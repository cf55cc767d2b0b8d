"""Seeds: first hypotheses of how two pieces touch, from every stretch of every rim against every other.

Stretches of several lengths, smoothed as their length allows, become complex numbers about their middle; the product of
one piece's stretches with the reversed ones of all others gives, for each pair, the turn and the residual after it.
Colours along the rim are compared by the same kind of product.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex64, Float32, Int64

from diffassemble.outlines.rims import Rims, smoothed

SAMPLES = 20


@dataclass(frozen=True)
class SeedConfig:
    """One length of stretches, in working pixels; stretches of 24 to 80 pixels find seams of any length."""

    length: float
    smooth: float
    """deviation of the filter that smooths the rim"""
    blur: float
    """residual that costs 1: how far rims of broken pieces stray from each other at this length"""
    colour: float
    """difference of colours that costs 1, in units of `Rims.like`; 0: colours are not compared"""
    step: float = 4.0
    """distance of stretches along the rim; twice as much halves the time of this search and loses short seams"""
    of_pair: int = 60
    """seeds of a pair, at most …"""
    of_piece: int = 1500
    """… and of a piece with all others"""


class Stretches(NamedTuple):
    """Stretches of one length along all rims: s of them; `start[i]` to `start[i + 1]` belong to piece i."""

    start: Int64[np.ndarray, "n+1"]
    shape: Complex64[np.ndarray, "s 20"]
    middle: Complex64[np.ndarray, "s"]
    colour: Float32[np.ndarray, "s 60"]
    bent: Float32[np.ndarray, "s"]


def stretches(rims: Rims, config: SeedConfig) -> Stretches:
    """All stretches of this length; `bent` is the square of how far each strays from a line."""
    shapes, middles, colours, counts = [], [], [], [0]
    for piece in range(len(rims.cells)):
        curve = smoothed(rims.of(piece).astype(float), config.smooth)
        colour = smoothed(rims.near[rims.start[piece] : rims.start[piece + 1]].astype(float), 3.0)
        begins = np.arange(0, len(curve), config.step)
        places = begins[:, None] + np.linspace(-config.length / 2, config.length / 2, SAMPLES)
        along = places.round().astype(int) % len(curve)
        plane = curve[along, 0] + 1j * curve[along, 1]
        middle = plane.mean(1)
        shapes.append(plane - middle[:, None])
        middles.append(middle)
        colours.append(colour[along].reshape(len(begins), -1))
        counts.append(len(begins))
    shape = np.concatenate(shapes)
    bent = ((np.abs(shape) ** 2).sum(1) - np.abs((shape**2).sum(1))) / 2 / SAMPLES
    return Stretches(
        np.cumsum(counts),
        shape.astype(np.complex64),
        np.concatenate(middles).astype(np.complex64),
        np.concatenate(colours).astype(np.float32),
        bent.astype(np.float32),
    )


def seed_poses(found: Stretches, first: int, rims: Rims, config: SeedConfig) -> list[Float32[np.ndarray, "k 4"]]:
    """For each piece after `first`, the best poses of `first` in its frame, with rims laid `rims.gap` apart."""
    own, rest = slice(found.start[first], found.start[first + 1]), slice(found.start[first + 1], None)
    there = found.shape[rest][:, ::-1]
    product = found.shape[own].conj() @ there.T
    power = (np.abs(found.shape[own]) ** 2).sum(1)[:, None] + (np.abs(there) ** 2).sum(1)
    left = np.maximum(power - 2 * np.abs(product), 0) / SAMPLES
    bent = np.minimum(found.bent[own][:, None], found.bent[rest])
    cost = left / (config.blur**2 + 0.3 * bent)
    if config.colour > 0:
        mine = found.colour[own]
        theirs = found.colour[rest].reshape(-1, SAMPLES, 3)[:, ::-1].reshape(-1, SAMPLES * 3)
        unlike = (mine**2).sum(1)[:, None] + (theirs**2).sum(1) - 2 * mine @ theirs.T
        cost = cost + np.maximum(unlike, 0) / SAMPLES / (config.colour * rims.like) ** 2
    turn = product / np.maximum(np.abs(product), 1e-9)
    middle = found.middle[own]
    bounds = found.start[first + 1 :] - found.start[first + 1]
    parts = [slice(begin, end) for begin, end in itertools.pairwise(bounds)]
    chosen = [_local_minima(cost[:, part])[: config.of_pair] for part in parts]
    costs = [cost[:, part][at[:, 0], at[:, 1]] for part, at in zip(parts, chosen, strict=True)]
    every = np.concatenate(costs)
    limit = np.inf if len(every) <= config.of_piece else np.partition(every, config.of_piece)[config.of_piece]
    poses = []
    for part, at, paid in zip(parts, chosen, costs, strict=True):
        a, b = at[paid < limit].T
        turned = turn[:, part][a, b]
        chord = there[part][b, 0] - there[part][b, -1]  # reversed: from the first point to the last
        outward = -1j * chord / np.maximum(np.abs(chord), 1e-9)
        shift = found.middle[rest][part][b] + rims.gap * outward - turned * middle[a]
        poses.append(np.stack([turned.real, turned.imag, shift.real, shift.imag], 1).astype(np.float32))
    return poses


def _local_minima(cost: Float32[np.ndarray, "a b"]) -> Int64[np.ndarray, "k 2"]:
    """Rows and columns of the entries that no neighbour undercuts, the lowest first; rows and columns close to rings.

    Neighbours across are those in which both stretches advance: one rim runs clockwise, the other one back.
    """
    shifts = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
    found = np.argwhere(cost <= np.minimum.reduce([np.roll(cost, shift, (0, 1)) for shift in shifts]))
    return found[np.argsort(cost[found[:, 0], found[:, 1]], kind="stable")]
