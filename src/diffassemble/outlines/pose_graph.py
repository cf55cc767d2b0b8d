"""Poses in the plane that agree with all matches between them at once, so that nothing drifts.

A match says how two pieces lie to each other. It holds where they touch, which is taken to be halfway between their
centres, along a seam as long as the centres lie apart: seen from there, a turn by one radian moves the seam's points by
their root mean square distance from its middle. So shifts and turns are both counted in pixels.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Bool, Complex128, Float, Float64
from torch import Tensor

from diffassemble.core import Matches, Poses

# Errors beyond so many pixels count by their length instead of its square: matches that contradict most others yield.
TOLERANCE = 3.0
STEPS = 30
# Relative to the pieces' own stiffness: what no match decides stays where it is.
DAMPING = 1e-9


def relax(
    poses: Poses, matches: Matches, held: Bool[Tensor, "n"], weights: Float[Tensor, "m"], tolerance: float = TOLERANCE
) -> Poses:
    """The poses nearest to all matches at once, by weighted least squares; `held` pieces stay where they are.

    Starts from `poses`, which should be right but for drift. Pieces without matches keep theirs, and groups in which
    nobody is held keep their place as wholes. Lengths are pixels; rotations come back orthogonal.
    """
    count = len(poses)
    if len(matches) == 0 or bool(held.all()):
        return poses
    first, second = matches.first.numpy(), matches.second.numpy()
    turn, place = complex_of(poses)
    turned, shift = complex_of(matches.pose)
    lever = np.maximum(np.abs(shift) / math.sqrt(12), 1.0)
    touch = shift / 2  # in the frame of the second piece
    seen = np.conj(turned) * (touch - shift)  # the same point in the frame of the first
    given = weights.double().numpy()
    groups = _loose_groups(count, first, second, held.numpy())
    free = ~held.numpy()
    # Someone must stand still: the whole could turn freely, and steps along a turn's tangent would make it grow.
    free[[group[0] for group in groups]] = False
    before = turn, place
    for _ in range(STEPS):
        apart = place[first] + turn[first] * seen - place[second] - turn[second] * touch
        twist = lever * np.angle(turn[first] * np.conj(turn[second] * turned))
        error = np.sqrt(np.abs(apart) ** 2 + twist**2)
        trust = given * np.minimum(1.0, tolerance / np.maximum(error, 1e-12))
        rows = (1j * turn[first] * seen, -1j * turn[second] * touch)
        step = _step(count, first, second, rows, lever, apart, twist, trust, free)
        place = place + step[:, 0] + 1j * step[:, 1]
        turn = turn * np.exp(1j * step[:, 2])
        if np.abs(step).max() < 1e-9:
            break
    for group in groups:
        turn[group], place[group] = _moved_back(turn[group], place[group], before[0][group], before[1][group])
    moved = ~held
    found = poses_of(turn, place)
    return Poses(
        torch.where(moved[:, None, None], found.rotation.to(poses.rotation), poses.rotation),
        torch.where(moved[:, None], found.translation.to(poses.translation), poses.translation),
    )


def _loose_groups(count: int, first: np.ndarray, second: np.ndarray, held: np.ndarray) -> list[np.ndarray]:
    """Pieces that matches hold together and of which nobody is held, each group with the one of most matches first."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    edges = coo_matrix((np.ones(len(first)), (first, second)), shape=(count, count))
    _, label = connected_components(edges, directed=False)
    degree = np.bincount(np.concatenate([first, second]), minlength=count)
    loose = [group for group in range(label.max() + 1) if not held[label == group].any()]
    members = [np.flatnonzero(label == group) for group in loose]
    return [group[np.argsort(-degree[group], kind="stable")] for group in members]


def _moved_back(
    turn: Complex128[np.ndarray, "k"],
    place: Complex128[np.ndarray, "k"],
    old_turn: Complex128[np.ndarray, "k"],
    old_place: Complex128[np.ndarray, "k"],
) -> tuple[Complex128[np.ndarray, "k"], Complex128[np.ndarray, "k"]]:
    """A group moved as a whole to where it stood."""
    middle, old_middle = place.mean(), old_place.mean()
    spread = float(np.mean(np.abs(old_place - old_middle) ** 2)) or 1.0
    about = np.sum(old_turn * np.conj(turn)) * spread + np.sum((old_place - old_middle) * np.conj(place - middle))
    about = about / abs(about)
    return about * turn, about * (place - middle) + old_middle


def _step(
    count: int,
    first: np.ndarray,
    second: np.ndarray,
    turns: tuple[Complex128[np.ndarray, "m"], Complex128[np.ndarray, "m"]],
    lever: Float64[np.ndarray, "m"],
    apart: Complex128[np.ndarray, "m"],
    twist: Float64[np.ndarray, "m"],
    trust: Float64[np.ndarray, "m"],
    free: np.ndarray,
) -> Float64[np.ndarray, "n 3"]:
    """One step of Gauss and Newton: how far each piece goes along x, along y, and turns."""
    from scipy.sparse import coo_matrix, diags
    from scipy.sparse.linalg import spsolve

    edges = np.arange(len(first))
    entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for piece, sign, turned in ((first, 1.0, turns[0]), (second, -1.0, turns[1])):
        for axis, part in enumerate((turned.real, turned.imag)):
            entries.append((3 * edges + axis, 3 * piece + axis, np.full(len(edges), sign)))
            entries.append((3 * edges + axis, 3 * piece + 2, part))
        entries.append((3 * edges + 2, 3 * piece + 2, sign * lever))
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    slope = coo_matrix((value, (row, column)), shape=(3 * len(edges), 3 * count)).tocsr()
    left = np.stack([apart.real, apart.imag, twist], 1).ravel()
    weighed = diags(np.repeat(trust, 3)) @ slope
    stiffness = (slope.T @ weighed).tocsr()
    moving = np.repeat(free, 3).nonzero()[0]
    inner = stiffness[moving][:, moving]
    own = inner.diagonal()
    damped = inner + diags(DAMPING * own + 1e-12 * max(float(own.max()), 1.0))
    step = np.zeros(3 * count)
    step[moving] = -spsolve(damped.tocsc(), (weighed.T @ left)[moving])
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
