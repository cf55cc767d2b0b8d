"""Which pieces of an answer are right: fragments by Chamfer distance, flat pieces by place and turn.

Fragments: lengths are shares of the whole object's longest side. Flat pieces: lengths are pixels, and scores do not
depend on how the whole is moved.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from diffassemble.core import FragmentPieces, OutlinePieces, Poses
from diffassemble.core.poses import plane_rotations
from diffassemble.core.surfaces import chamfer_distance

RIGHT = 0.01
"""a fragment is right if the Chamfer distance to its true place is below this (Breaking Bad's definition)"""
RIGHT_SHARE, RIGHT_DEGREES = 0.25, 5.0
"""a flat piece is right within this share of its width, and within these degrees"""


def piece_chamfer(points: Float[Tensor, "n p 3"], answer: Poses, truth: Poses) -> Float[Tensor, "n"]:
    """Chamfer distance of each piece's points where they are to where they belong."""
    return chamfer_distance(answer.apply(points).double(), truth.apply(points).double())


def right_pieces(chamfer: Float[Tensor, "n"]) -> Bool[Tensor, "n"]:
    """Part accuracy is the share of these. It is loose for small pieces, which are right whichever way they turn."""
    return chamfer < RIGHT


def anchored(answer: Poses, truth: Poses, piece: int) -> Poses:
    """The answer moved as a whole such that the given piece has its true pose."""
    whole = truth[piece : piece + 1] @ answer[piece : piece + 1].inverse()
    return Poses(whole.rotation.expand(len(answer), 3, 3), whole.translation.expand(len(answer), 3)) @ answer


def piece_sizes(pieces: FragmentPieces) -> Float[Tensor, "n"]:
    """How large each piece is among the others, summing to 1."""
    return pieces.areas / pieces.areas.sum()


class Errors(NamedTuple):
    """How far flat pieces are from where they belong, in pixels and degrees, and which of them are right."""

    apart: Float[Tensor, "n"]
    degrees: Float[Tensor, "n"]
    right: Bool[Tensor, "n"]


def flat_errors(answer: Poses, truth: Poses, width: Float[Tensor, "n"]) -> Errors:
    """Errors without any motion of the whole."""
    apart = (answer.translation - truth.translation).norm(dim=1)
    between = answer.rotation.mT @ truth.rotation
    degrees = torch.atan2(between[:, 1, 0], between[:, 0, 0]).rad2deg().abs()
    return Errors(apart, degrees, (apart < RIGHT_SHARE * width) & (degrees < RIGHT_DEGREES))


def outline_errors(pieces: OutlinePieces, answer: Poses, truth: Poses) -> Errors:
    """Errors after the motion of the whole that makes most pieces right.

    Motions that put one piece exactly right are tried, each once: one wrong piece would bias least squares.
    The best one is then fitted to all that it makes right.
    """
    width = pieces.widths.double()
    given, wanted = exact(answer), exact(truth)
    count = len(given)
    wholes = wanted @ given.inverse()
    tried = (flat_errors(wholes[[index] * count] @ given, wanted, width) for index in range(count))
    best = max(tried, key=lambda errors: (int(errors.right.sum()), -float(errors.apart.median())))
    fitted = flat_errors(_fitted(given, wanted, best.right) @ given, wanted, width)
    return fitted if fitted.right.sum() >= best.right.sum() else best


def exact(poses: Poses) -> Poses:
    """The same poses in double precision on the CPU."""
    return Poses(poses.rotation.detach().cpu().double(), poses.translation.detach().cpu().double())


def _fitted(given: Poses, wanted: Poses, chosen: Bool[Tensor, "n"]) -> Poses:
    """The motion of the whole, for every piece, that brings the chosen ones nearest to where they belong."""
    turn = (wanted.rotation @ given.rotation.mT)[chosen].sum(0)
    angle = torch.atan2(turn[1, 0] - turn[0, 1], turn[0, 0] + turn[1, 1])
    places, goals = given.translation[chosen], wanted.translation[chosen]
    if len(places) > 1:
        first, second = places - places.mean(0), goals - goals.mean(0)
        sine = (first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]).sum()
        angle = torch.atan2(sine, (first * second).sum())
    rotation = plane_rotations(angle[None])
    shift = goals.mean(0) - rotation[0] @ places.mean(0)
    return Poses(rotation.expand(len(given), 2, 2), shift.expand(len(given), 2))


def right_outlines(pieces: OutlinePieces, answer: Poses, truth: Poses) -> Bool[Tensor, "n"]:
    """Which flat pieces are where they belong after the motion of the whole that makes most of them right."""
    return outline_errors(pieces, answer, truth).right
