"""Fragments that were given twice: of the same shape to the last digit, though moved."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float64, Int64
from scipy.spatial import cKDTree

from diffassemble.core import Mesh
from diffassemble.core.surfaces import distinct_rows, sample_surface, triangle_normals

# Corners coincide within this share of the fragment's radius: what files in single precision keep of a moved copy.
_SAME = 2e-5
_ROUNDS = 4
# A surface is compared with its mirror images at so many points, against so many; it is regular if all but this share
# come within so many spacings, or if two of its widths differ by less than this share, so that axes are arbitrary.
_PROBES, _DENSE, _EXCEPT, _NEAR, _ROUND = 400, 20_000, 0.02, 1.5, 0.01
# Triangles of one plane have normals and distances that agree to this; a plane counts from this share of the surface.
_GRAIN, _PLANE = 2e-3, 0.03


def are_copies(first: Mesh, second: Mesh) -> bool:
    """Whether two fragments are one and the same.

    Equal parts of a regular object, sawn apart, are equal as well. So nothing is claimed where a fragment is its own
    mirror image, or where a saw may have cut it and the other lies elsewhere.
    """
    exactly = torch.equal(first.vertices, second.vertices)
    return congruent(first, second) and not is_regular(first) and (exactly or not has_plane(first))


def congruent(first: Mesh, second: Mesh) -> bool:
    """Whether a turn and a shift bring all corners, and with them all triangles, onto those of the other."""
    if first.vertices.shape != second.vertices.shape or first.faces.shape != second.faces.shape:
        return False
    if torch.equal(first.vertices, second.vertices) and torch.equal(first.faces, second.faces):
        return True
    here, there = (mesh.vertices.double().numpy() for mesh in (first, second))
    here, there = here - here.mean(0), there - there.mean(0)
    far, other = np.linalg.norm(here, axis=1), np.linalg.norm(there, axis=1)
    limit = _SAME * max(float(far.max()), 1e-30)
    if np.abs(np.sort(far) - np.sort(other)).max() > limit:
        return False
    order = np.empty(len(far), np.int64)
    order[np.argsort(far, kind="stable")] = np.argsort(other, kind="stable")
    tree = cKDTree(there)
    for partner in (np.arange(len(here)), order):
        for _ in range(_ROUNDS):
            distance, nearest = tree.query(here @ _turn(here, there[partner]).T)
            if distance.max() <= limit:
                return len(np.unique(nearest)) == len(nearest) and _same_triangles(first, second, nearest)
            partner = nearest
    return False


def _turn(here: Float64[np.ndarray, "v 3"], there: Float64[np.ndarray, "v 3"]) -> Float64[np.ndarray, "3 3"]:
    """The rotation that brings centred points onto others best."""
    left, _, right = np.linalg.svd(there.T @ here)
    mirror = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    return left @ mirror @ right


def _same_triangles(first: Mesh, second: Mesh, partner: Int64[np.ndarray, "v"]) -> bool:
    own, other = (np.sort(faces, 1) for faces in (partner[first.faces.numpy()], second.faces.numpy()))
    return np.array_equal(own[np.lexsort(own.T)], other[np.lexsort(other.T)])


def is_regular(mesh: Mesh) -> bool:
    """Whether a fragment looks the same mirrored along, or turned about, some of its axes, or has no axes of its own.

    Breaks never do; what is sawn out of a vessel or a block does.
    """
    points, generator = mesh.vertices.double(), torch.Generator().manual_seed(0)
    if len(mesh.faces):
        corners = points[mesh.faces]
        area = triangle_normals(points, mesh.faces).norm(dim=-1) / 2
        middle = (area[:, None] * corners.mean(1)).sum(0) / area.sum()
        corners, area = corners - middle, area[:, None, None]
        whole = corners.sum(1)[:, :, None]
        spread = (area * (corners.mT @ corners + whole @ whole.mT)).sum(0) / (12 * area.sum())
        dense = sample_surface(points, mesh.faces, _DENSE, generator)[0] - middle
        spacing = float((area.sum() / _DENSE).sqrt())
    else:
        dense = points - points.mean(0)
        spread = dense.T @ dense / len(dense)
        spacing = float(np.median(cKDTree(dense.numpy()).query(dense.numpy(), 2)[0][:, 1]))
    widths, axes = torch.linalg.eigh(spread)
    if bool((widths[1:].sqrt() - widths[:-1].sqrt() < _ROUND * widths[-1].sqrt()).any()):
        return True
    own = dense @ axes
    tree, step = cKDTree(own.numpy()), max(1, len(own) // _PROBES)
    for number in range(1, 8):
        signs = np.array([-1.0 if number >> axis & 1 else 1.0 for axis in range(3)])
        distance = tree.query(own[::step].numpy() * signs)[0]
        if (distance > _NEAR * spacing).mean() < _EXCEPT:
            return True
    return False


def has_plane(mesh: Mesh) -> bool:
    """Whether a plane, such as a saw's, has more of the surface than breaks and curved surfaces can have in one."""
    if not len(mesh.faces):
        return False
    vertices = mesh.vertices.double() - mesh.vertices.double().mean(0)
    normals = triangle_normals(vertices, mesh.faces)
    area = normals.norm(dim=-1)
    normals = normals / area.clamp(min=1e-30)[:, None]
    offset = (normals * vertices[mesh.faces[:, 0]]).sum(1) / vertices.norm(dim=-1).max()
    which = distinct_rows((torch.cat([normals, offset[:, None]], 1) / _GRAIN).round())[1]
    return bool(which.bincount(area).max() > _PLANE * area.sum())
