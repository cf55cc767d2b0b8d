"""Meshes as solids that can be cut and joined, and back."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from manifold3d import Error, Manifold
from manifold3d import Mesh as Surface
from manifold3d import Mesh64 as FineSurface
from torch import Tensor

from diffassemble.core import InputError, Mesh
from diffassemble.core.surfaces import clean_surface

# Files keep 24 bits of a number: what lies closer to each other than this share of the largest one is one place.
_GRAIN = 2.0**-22


def solid_of(mesh: Mesh) -> Manifold:
    """The solid within a closed surface, outside and inside told apart by which of them is finite."""
    if len(mesh.faces) == 0:
        raise InputError("has no triangles; give the surface of a solid")
    if not bool(mesh.vertices.isfinite().all()):
        raise InputError("has corners that are not finite numbers; repair it and try again")
    solid = surface_solid(mesh.vertices.numpy(), mesh.faces.numpy())
    if solid.status() != Error.NoError:
        raise InputError("not watertight; close its holes, for example with MeshLab, and try again")
    size = float((mesh.vertices.amax(0) - mesh.vertices.amin(0)).max())
    if solid.is_empty() or abs(solid.volume()) <= 1e-9 * size**3:
        raise InputError("encloses no volume; give a solid with thickness")
    return solid if solid.volume() > 0 else solid_of(Mesh(mesh.vertices, mesh.faces.flip(1)))


def surface_solid(vertices: Float[np.ndarray, "v 3"], faces: np.ndarray) -> Manifold:
    """The solid of corners and triangles; corners that files list once for each triangle are joined."""
    # manifold3d takes nothing but writable arrays of these very types.
    surface = Surface(np.array(vertices, np.float32, order="C"), np.array(faces, np.uint32, order="C"))
    solid = Manifold(surface)
    if solid.status() == Error.NotManifold and surface.merge():
        solid = Manifold(surface)
    return solid


def mesh_of(solid: Manifold, unit: float = 1.0, middle: Float[Tensor, "3"] | None = None) -> Mesh:
    """The surface of a solid, made `unit` times as large and moved to `middle`.

    Corners that files could hardly tell apart are one, if every edge still joins two triangles then.
    """
    surface = solid.to_mesh64()
    vertices = torch.from_numpy(np.array(surface.vert_properties[:, :3])) * unit
    vertices = vertices if middle is None else vertices + middle
    faces = torch.from_numpy(np.array(surface.tri_verts, np.int64))
    grain = float(vertices.abs().max()) * _GRAIN
    rounded = (vertices / grain).round() * grain
    welded, triangles = clean_surface(rounded.float(), faces)
    return Mesh(welded, triangles) if every_edge_joins_two(triangles) else Mesh(rounded.float(), faces)


def every_edge_joins_two(faces: Int[Tensor, "f 3"]) -> bool:
    """Whether each edge of each triangle is run along by exactly one other, the opposite way."""
    count = int(faces.max()) + 1
    start, end = faces.flatten(), faces.roll(-1, 1).flatten()
    there, back = (start * count + end).sort().values, (end * count + start).sort().values
    return bool((there[1:] > there[:-1]).all() and torch.equal(there, back))


def bounds(solid: Manifold) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]]:
    """The least and greatest coordinates of a solid."""
    box = np.array(solid.bounding_box())
    return box[:3], box[3:]


def bodies(solid: Manifold) -> list[Manifold]:
    """The connected parts of a solid, each with the cavities that lie within it."""
    parts = solid.decompose()
    full = [part for part in parts if part.volume() > 0]
    for cavity in (part for part in parts if part.volume() < 0):
        low, high = bounds(cavity)
        around = [i for i, body in enumerate(full) if _holds(body, low, high)]
        if around:
            nearest = min(around, key=lambda i: full[i].volume())
            full[nearest] = _with_cavity(full[nearest], cavity)
    return full


def _with_cavity(body: Manifold, cavity: Manifold) -> Manifold:
    """Both surfaces as one: that of the cavity faces inwards already."""
    outer, inner = body.to_mesh64(), cavity.to_mesh64()
    vertices = np.concatenate([outer.vert_properties[:, :3], inner.vert_properties[:, :3]])
    faces = np.concatenate([outer.tri_verts, inner.tri_verts + len(outer.vert_properties)])
    return Manifold(FineSurface(vertices.astype(np.float64), faces.astype(np.uint64)))


def _holds(body: Manifold, low: Float[np.ndarray, "3"], high: Float[np.ndarray, "3"]) -> bool:
    least, greatest = bounds(body)
    return bool((least <= low).all() and (high <= greatest).all())
