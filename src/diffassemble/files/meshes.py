"""Meshes and clouds of points in and out of files; trimesh does the parsing, this module distrusts what it gives."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import trimesh
from numpy.typing import NDArray

from diffassemble.core import InputError, Mesh
from diffassemble.core.surfaces import clean_surface, is_closed, surface_area
from diffassemble.files.atomic import file_size, one_line
from diffassemble.rendering.picture import Colour, to_linear

Arrays = tuple[NDArray[np.float64], NDArray[np.int64]]
MESH_ENDINGS = frozenset({".ply", ".obj", ".stl", ".glb", ".gltf", ".off", ".xyz", ".npy"})
MOST_BYTES = 2_000_000_000
LEAST_POINTS = 20
"""fewest points of a cloud; the networks look at as many neighbours of each point"""
_MOST_FAR = 1e15


@contextmanager
def _quiet() -> Iterator[None]:
    """Parsers tell their troubles by raising, and no other way."""
    logger = logging.getLogger("trimesh")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.disabled = before


@_quiet()
def parse_mesh(path: Path) -> Arrays:
    """Corners (v, 3) and triangles (f, 3) as the file has them, unchecked; raises whatever the parser raises.

    trimesh parses most kinds, NumPy the plain lists of points.
    """
    ending = path.suffix.lower()[1:]
    nothing = np.zeros((0, 3), dtype=np.int64)
    if ending == "npy":
        table = np.load(path, allow_pickle=False)
        if table.ndim != 2 or table.shape[1] not in (3, 6) or table.dtype.kind not in "fiu":
            raise ValueError(f"its shape is {table.shape}, of {table.dtype}; v×3 numbers are read, or v×6 with normals")
        return table[:, :3].astype(np.float64), nothing
    if ending == "xyz":
        with path.open(encoding="utf-8") as lines:
            table = np.loadtxt((line.replace(",", " ") for line in lines), comments=("#", "//"), ndmin=2)
        return table[:, :3], nothing
    resolver = trimesh.resolvers.FilePathResolver(str(path)) if ending == "gltf" else None
    options = {"skip_materials": True} if ending == "obj" else {}
    with path.open("rb") as content:
        scene = trimesh.load_scene(content, file_type=ending, resolver=resolver, process=False, **options)
    return _joined(scene.dump())


def _joined(parts: list[trimesh.parent.Geometry]) -> Arrays:
    """All meshes of a scene as one, or, if it has none, all its points."""
    meshes = [part for part in parts if isinstance(part, trimesh.Trimesh) and len(part.faces)]
    chosen = meshes or [part for part in parts if hasattr(part, "vertices") and len(part.vertices)]
    if not chosen:
        raise ValueError("it has neither triangles nor points")
    corners = [np.asarray(part.vertices, dtype=np.float64).reshape(-1, 3) for part in chosen]
    starts = np.cumsum([0, *map(len, corners)])
    triangles = [np.asarray(part.faces, dtype=np.int64) + start for part, start in zip(meshes, starts, strict=False)]
    return np.concatenate(corners), np.concatenate([np.zeros((0, 3), dtype=np.int64), *triangles])


def read_mesh(path: Path | str) -> Mesh:
    """A mesh or cloud from a PLY, OBJ, STL, GLB, GLTF, OFF, XYZ or NPY file, in the file's own coordinates.

    Equal corners are merged, doubled inner walls cancelled; the parts of a scene stand where the scene puts them.
    An open surface is taken with a warning.
    """
    mesh = read_precisely(path)
    if len(mesh.faces) and not is_closed(mesh.faces):
        warnings.warn(f"{path}: the mesh is open; going on with its surface", stacklevel=2)
    return Mesh(mesh.vertices.float(), mesh.faces)


def read_precisely(path: Path | str) -> Mesh:
    """What `read_mesh` reads, as float64 and without a word on open surfaces."""
    path = Path(path)
    check_size(path)
    try:
        corners, triangles = parse_mesh(path)
    # Parsers fail on broken files in every way there is.
    except Exception as error:
        raise InputError(f"{path}: is no {path.suffix[1:].upper()} file, or broken ({one_line(error)})") from error
    vertices = torch.from_numpy(np.array(corners, dtype=np.float64))
    faces = torch.from_numpy(np.array(triangles, dtype=np.int64))
    _check_numbers(path, vertices, faces)
    mesh, count = Mesh(*clean_surface(vertices, faces)), len(faces)
    if count and not (len(mesh.faces) and surface_area(mesh.vertices, mesh.faces) > 0):
        raise InputError(f"{path}: its triangles have no area; give a mesh with a surface")
    if not count and (points := len(mesh.vertices)) < LEAST_POINTS:
        raise InputError(f"{path}: is a cloud of {points} different points; it needs {LEAST_POINTS} or more")
    return mesh


def check_size(path: Path) -> int:
    """Bytes of a file that can be read as a mesh by its name and size; any other is refused."""
    if path.suffix.lower() not in MESH_ENDINGS:
        known = " ".join(sorted(MESH_ENDINGS))
        raise InputError(f"{path}: is not a kind of mesh file known here; give one ending in {known}")
    size = file_size(path, "mesh")
    if size >= MOST_BYTES:
        raise InputError(f"{path}: has {size / 1e9:.1f} GB, at most {MOST_BYTES / 1e9:.0f} are read; simplify it first")
    return size


def mesh_bytes(mesh: Mesh, suffix: str, colour: Colour | None = None) -> bytes:
    """The content of a .ply, .obj, .stl or .glb file (float32) that reads back as the same mesh.

    `colour` is that of the whole mesh, 0…255 each; STL has none.
    """
    if suffix not in (known := (".ply", ".obj", ".stl", ".glb")):
        raise InputError(f"cannot write meshes as {suffix!r}; choose one of {', '.join(known)}")
    if suffix == ".glb":
        return scene_bytes([mesh], ["mesh"], [colour])
    if suffix == ".obj":
        paint = "" if colour is None else "".join(f" {level / 255:.6g}" for level in colour)
        # Nine digits are what a float32 needs.
        lines = ["v {:.9g} {:.9g} {:.9g}".format(*corner) + paint for corner in mesh.vertices.tolist()]
        lines += [f"f {first + 1} {second + 1} {third + 1}" for first, second, third in mesh.faces.tolist()]
        return ("\n".join(lines) + "\n").encode()
    if suffix == ".stl" and not len(mesh.faces):
        raise InputError("STL has no clouds of points; choose .ply")
    return _trimesh(mesh, None if suffix == ".stl" else colour).export(file_type=suffix[1:])


def scene_bytes(meshes: Sequence[Mesh], names: Sequence[str], colours: Sequence[Colour | None]) -> bytes:
    """The content of a .glb file with one named node a mesh, each of its own colour."""
    scene = trimesh.Scene()
    for mesh, name, colour in zip(meshes, names, colours, strict=True):
        part = _trimesh(mesh, colour)
        if colour is not None and len(mesh.faces):
            # A dull surface, seen from both sides; glTF counts light where others count steps of grey.
            light, dull = to_linear(np.array(colour) / 255), {"metallicFactor": 0.0, "roughnessFactor": 0.8}
            look = {"baseColorFactor": [*light.tolist(), 1.0], **dull, "doubleSided": True}
            material = trimesh.visual.material.PBRMaterial(name=name, **look)
            part.visual = trimesh.visual.TextureVisuals(material=material)
        scene.add_geometry(part, node_name=name, geom_name=name)
    return scene.export(file_type="glb")


def _trimesh(mesh: Mesh, colour: Colour | None) -> trimesh.Trimesh | trimesh.PointCloud:
    vertices, faces = mesh.vertices.cpu().numpy(), mesh.faces.cpu().numpy()
    paint = None if colour is None else np.tile(np.array([*colour, 255], dtype=np.uint8), (len(vertices), 1))
    if not len(faces):
        return trimesh.PointCloud(vertices, colors=paint)
    return trimesh.Trimesh(vertices, faces, vertex_colors=paint, process=False)


def _check_numbers(path: Path, vertices: torch.Tensor, faces: torch.Tensor) -> None:
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InputError(f"{path}: its points have {vertices.shape[-1]} numbers each; 3 are needed")
    unsound = int((~vertices.isfinite().all(1)).sum())
    if unsound:
        raise InputError(f"{path}: {unsound} of {len(vertices)} points are not finite (NaN or inf); repair the mesh")
    if len(vertices) and float(vertices.abs().max()) > _MOST_FAR:
        raise InputError(f"{path}: has points over {_MOST_FAR:.0e} away from the origin; repair the mesh")
    if len(faces) and (int(faces.min()) < 0 or int(faces.max()) >= len(vertices)):
        raise InputError(f"{path}: has triangles whose corners are not there; repair the mesh")
