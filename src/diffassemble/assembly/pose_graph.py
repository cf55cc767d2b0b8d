"""Poses in the plane that agree with all matches between them at once, so that errors don't accumulate.

A match gives the relative pose of two pieces. It holds where they touch, which is taken to be halfway between their
centres, along a seam as long as the centres are apart: seen from there, a turn by one radian moves the seam's points by
their root mean square distance from its middle. So shifts and turns are both measured in the poses' unit of length.

Turns and places are complex numbers here: multiplying by a turn of modulus 1 rotates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Complex128, Float, Float64, Int64
from torch import Tensor

from diffassemble.core import Matches, Poses


@dataclass(frozen=True)
class RelaxationConfig:
    """Numbers of the robust least squares; they decide how fast it converges, not where to."""

    tolerance: float = 3.0
    """pixels; larger errors count by their length instead of its square: matches that contradict most others yield"""
    steps: int = 30
    damping: float = 1e-9
    """relative to the stiffness of each piece: directions that no match decides stay"""


RELAXATION = RelaxationConfig()


def relax(
    poses: Poses,
    matches: Matches,
    held: Bool[Tensor, "n"],
    weights: Float[Tensor, "m"],
    tolerance: float = RELAXATION.tolerance,
) -> Poses:
    """The poses nearest to all matches at once, by robust steps of Gauss and Newton; `held` pieces stay.

    Starts from `poses`, which should be right but for drift. Pieces without matches keep theirs, and groups without
    held pieces keep their place as wholes. Lengths are those of poses and matches; rotations come back orthogonal.
    """
    if len(matches) == 0 or bool(held.all()):
        return poses
    first, second = matches.first.numpy(), matches.second.numpy()
    (turn, place), (turned, shift) = complex_of(poses), complex_of(matches.pose)
    lever = np.maximum(np.abs(shift) / math.sqrt(12), 1.0)
    touch = shift / 2  # in the frame of the second piece
    seen = np.conj(turned) * (touch - shift)  # the same point in the frame of the first
    groups = _loose_groups(len(poses), first, second, held.numpy())
    free = ~held.numpy()
    # The gauge is fixed: the whole could turn freely, and steps along a turn's tangent would make it grow.
    free[[group[0] for group in groups]] = False
    before = turn, place
    for _ in range(RELAXATION.steps):
        apart = place[first] + turn[first] * seen - place[second] - turn[second] * touch
        twist = lever * np.angle(turn[first] * np.conj(turn[second] * turned))
        error = np.sqrt(np.abs(apart) ** 2 + twist**2)
        trust = weights.double().numpy() * np.minimum(1.0, tolerance / np.maximum(error, 1e-12))
        arms = {1.0: (first, 1j * turn[first] * seen), -1.0: (second, 1j * turn[second] * touch)}
        step = _step(arms, lever, np.stack([apart.real, apart.imag, twist], 1), trust, free)
        place = place + step[:, 0] + 1j * step[:, 1]
        turn = turn * np.exp(1j * step[:, 2])
        if np.abs(step).max() < 1e-9:
            break
    for group in groups:  # back to where it was as a whole
        old = before[1][group] - before[1][group].mean()
        new = place[group] - place[group].mean()
        spread = float(np.mean(np.abs(old) ** 2)) or 1.0
        about = np.sum(before[0][group] * np.conj(turn[group])) * spread + np.sum(old * np.conj(new))
        about = about / abs(about)
        turn[group], place[group] = about * turn[group], about * new + before[1][group].mean()
    found = poses_of(turn, place)
    return Poses(
        torch.where(held[:, None, None], poses.rotation, found.rotation.to(poses.rotation)),
        torch.where(held[:, None], poses.translation, found.translation.to(poses.translation)),
    )


def _loose_groups(
    count: int, first: Int64[np.ndarray, "m"], second: Int64[np.ndarray, "m"], held: Bool[np.ndarray, "n"]
) -> list[Int64[np.ndarray, "k"]]:
    """Groups that matches connect and that have no held piece, each with the piece of most matches first."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    edges = coo_matrix((np.ones(len(first)), (first, second)), shape=(count, count))
    label = connected_components(edges, directed=False)[1]
    degree = np.bincount(np.concatenate([first, second]), minlength=count)
    loose = np.setdiff1d(label, label[held])
    members = [np.flatnonzero(label == group) for group in loose]
    return [group[np.argsort(-degree[group], kind="stable")] for group in members]


def _step(
    arms: dict[float, tuple[Int64[np.ndarray, "m"], Complex128[np.ndarray, "m"]]],
    lever: Float64[np.ndarray, "m"],
    residual: Float64[np.ndarray, "m 3"],
    trust: Float64[np.ndarray, "m"],
    free: Bool[np.ndarray, "n"],
) -> Float64[np.ndarray, "n 3"]:
    """One step: how far each free piece moves along x, along y, and turns.

    `arms` has the pieces and the derivatives by their turns, for the first (sign 1) and the second ones (−1).
    """
    from scipy.sparse import coo_matrix, diags
    from scipy.sparse.linalg import spsolve

    count, three = len(free), np.arange(3)
    blocks, columns = np.zeros((2, len(lever), 3, 3)), np.zeros((2, len(lever), 3, 3), np.int64)
    for block, column, (sign, (pieces, arm)) in zip(blocks, columns, arms.items(), strict=True):
        block[:, 0, 0] = block[:, 1, 1] = sign
        block[:, :, 2] = sign * np.stack([arm.real, arm.imag, lever], 1)
        column[:] = (3 * pieces[:, None] + three)[:, None]
    row = np.broadcast_to(3 * np.arange(len(lever))[:, None, None] + three[:, None], blocks.shape)
    shape = 3 * len(lever), 3 * count
    slope = coo_matrix((blocks.ravel(), (row.ravel(), columns.ravel())), shape=shape).tocsr()
    weighed = diags(np.repeat(trust, 3)) @ slope
    moving = np.repeat(free, 3).nonzero()[0]
    inner = (slope.T @ weighed).tocsr()[moving][:, moving]
    own = inner.diagonal()
    damped = inner + diags(RELAXATION.damping * own + 1e-12 * max(float(own.max()), 1.0))
    step = np.zeros(3 * count)
    step[moving] = -spsolve(damped.tocsc(), (weighed.T @ residual.ravel())[moving])
    return step.reshape(count, 3)


def complex_of(poses: Poses) -> tuple[Complex128[np.ndarray, "n"], Complex128[np.ndarray, "n"]]:
    """Turns and shifts in the plane as complex numbers."""
    rotation, translation = poses.rotation.double().numpy(), poses.translation.double().numpy()
    turn = rotation[:, 0, 0] + rotation[:, 1, 1] + 1j * (rotation[:, 1, 0] - rotation[:, 0, 1])
    return turn / np.abs(turn), translation[:, 0] + 1j * translation[:, 1]


def poses_of(turn: Complex128[np.ndarray, "n"], place: Complex128[np.ndarray, "n"]) -> Poses:
    """Poses in the plane from complex numbers."""
    rotation = np.stack([turn.real, -turn.imag, turn.imag, turn.real], 1).reshape(-1, 2, 2)
    return Poses(torch.from_numpy(rotation), torch.from_numpy(np.stack([place.real, place.imag], 1)))
