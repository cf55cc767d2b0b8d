"""How good an assembly of fragments is, by the definitions of the Breaking Bad benchmark.

Errors are told piece by piece, in the order in which the pieces are listed; nothing else depends on that order.
Lengths are shares of the whole object's longest side, angles are degrees, rotations must be orthogonal.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.spatial import cKDTree
from torch import Tensor

from diffassemble.geometry import Poses
from diffassemble.geometry.surfaces import surface_area
from diffassemble.puzzle import FragmentPieces, Mesh

# A piece whose Chamfer distance to its true place is below this counts as right.
RIGHT = 0.01


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


def chamfer_distance(first: Float[Tensor, "p 3"], second: Float[Tensor, "q 3"]) -> float:
    """Mean squared distance to the nearest point of the other cloud, there plus back."""
    one, two = first.double().numpy(), second.double().numpy()
    there, back = cKDTree(two).query(one)[0], cKDTree(one).query(two)[0]
    return float(np.square(there).mean() + np.square(back).mean())


def piece_chamfer(points: Float[Tensor, "n p 3"], answer: Poses, truth: Poses) -> Float[Tensor, "n"]:
    """Chamfer distance of each piece's points where they are to where they belong."""
    pairs = zip(answer.apply(points), truth.apply(points), strict=True)
    return torch.tensor([chamfer_distance(*pair) for pair in pairs], dtype=torch.double)


def right_pieces(chamfer: Float[Tensor, "n"]) -> Bool[Tensor, "n"]:
    """Part accuracy is the share of these. It is loose for small pieces, which are right whichever way they turn."""
    return chamfer < RIGHT


def shape_chamfer(points: Float[Tensor, "n p 3"], answer: Poses, truth: Poses) -> float:
    """Chamfer distance of all points together: how like the whole is, whichever piece is where."""
    return chamfer_distance(answer.apply(points).flatten(0, 1), truth.apply(points).flatten(0, 1))


def anchored(answer: Poses, truth: Poses, piece: int) -> Poses:
    """The answer moved as a whole such that the given piece stands at its true pose."""
    whole = truth[piece : piece + 1] @ answer[piece : piece + 1].inverse()
    return Poses(whole.rotation.expand(len(answer), 3, 3), whole.translation.expand(len(answer), 3)) @ answer


def piece_sizes(pieces: FragmentPieces) -> Float[Tensor, "n"]:
    """How large each piece is among the others, summing to 1: by area, or where triangles lack by squared radius."""
    areas = torch.tensor([_area(mesh) for mesh in pieces.meshes], dtype=torch.double)
    if not bool((areas > 0).all()):
        areas = pieces.points.double().square().sum(-1).mean(-1).clamp(min=1e-12)
    return areas / areas.sum()


def _area(mesh: Mesh) -> float:
    return surface_area(mesh.vertices, mesh.faces)
