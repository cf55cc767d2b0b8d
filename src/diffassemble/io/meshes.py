"""Meshes and clouds of points in and out of files; trimesh does the parsing, this module distrusts what it gives."""

from __future__ import annotations

import io
import logging
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import trimesh
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from diffassemble.core import InputError, Mesh, Texture
from diffassemble.core.colours import Colour, to_linear, to_srgb
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.core.surfaces import clean_surface, is_closed, surface_area
from diffassemble.io.gltf import check_counts, check_gltf
from diffassemble.io.pictures import png_bytes
from diffassemble.io.reading import file_size, opened, read_bytes, reason

MESH_ENDINGS = frozenset({".ply", ".obj", ".stl", ".glb", ".gltf", ".off", ".xyz", ".npy"})
MOST_BYTES = LIMITS.mesh_bytes
LEAST_POINTS = 20
"""fewest points of a cloud; the networks look at as many neighbours of each point"""
# Bytes of memory that reading a byte takes: of text, and of numbers.
_TEXT, _BINARY = 12, 6
_HEAD = 100_000
_COLUMNS = (3, 6, 9)


class Arrays(NamedTuple):
    """What a file has: corners (v, 3), triangles (f, 3), and for each corner a normal and a colour, where it has them.

    Normals are those of clouds: triangles have their own. `places` are the corners of triangles on a picture (f, 3, 2).
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]
    normals: NDArray[np.float64] | None = None
    colours: NDArray[np.uint8] | None = None
    places: NDArray[np.float32] | None = None
    picture: Image.Image | None = None


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
    """What the file has, unchecked; raises whatever the parser raises.

    trimesh parses most kinds, NumPy the plain lists of points. Pictures are looked for in the file's folder and below,
    nowhere else; a file whose pictures are missing has no colours.
    """
    ending = path.suffix.lower()[1:]
    with opened(path, "mesh", MOST_BYTES) as file:
        size = os.fstat(file.fileno()).st_size
        text = ending in ("obj", "off", "xyz", "gltf") or b"\0" not in file.peek(_HEAD)
        check_memory((_TEXT if text else _BINARY) * size, "it", "simplify it first")
        if ending == "npy":
            return _listed(_read_array(file, size))
        if ending == "xyz":
            lines = io.TextIOWrapper(file, encoding="utf-8")
            return _listed(np.loadtxt((line.replace(",", " ") for line in lines), comments=("#", "//"), ndmin=2))
        if ending in ("glb", "gltf"):
            check_gltf(file, ending == "glb")
        if ending == "ply":
            _check_ply(file, size)
        scene = trimesh.load_scene(file, file_type=ending, resolver=_Beside(str(path)), process=False)
        found = _joined(scene, linear=ending in ("glb", "gltf"))
        if ending == "obj" and not len(found.faces):
            file.seek(0)
            rows = [
                line.split()[1:4] for line in file.read().decode(errors="replace").splitlines() if line[:3] == "vn "
            ]
            return found._replace(normals=np.array(rows, np.float64) if len(rows) == len(found.vertices) else None)
    return found


class _Beside(trimesh.resolvers.FilePathResolver):
    """Finds what a mesh names in its folder and below: plain files, and no more of them than a mesh may have."""

    read = 0

    def get(self, name: str) -> bytes:
        """The content of a file by its name."""
        content = read_bytes(self.absolute(name), "file that the mesh names", MOST_BYTES - self.read)
        self.read += len(content)
        return content


def _read_array(file: io.BufferedIOBase, size: int) -> NDArray[np.float64]:
    """The numbers of a NumPy file, whose head may not tell more than follows it."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"its version {version} is not known")
    shape, _, kind = read(file)
    if len(shape) != 2 or shape[1] not in _COLUMNS or kind.kind not in "fiu":
        known = "v×3 numbers are read, v×6 with normals, or v×9 with normals and colours"
        raise ValueError(f"its shape is {shape}, of {kind}; {known}")
    if math.prod(shape) * kind.itemsize > size:
        raise ValueError(f"it tells {shape[0]} points, but has {size} bytes")
    file.seek(0)
    return np.load(file, allow_pickle=False).astype(np.float64)


def _check_ply(file: io.BufferedIOBase, size: int) -> None:
    """Refuse a PLY file whose head tells more than follows it."""
    head, end, _ = file.read(_HEAD).partition(b"end_header")
    file.seek(0)
    if not end:
        raise ValueError("its head does not end")
    counts = [words[2] for line in head.splitlines() if len(words := line.split()) == 3 and words[0] == b"element"]
    if any(not word.isdigit() or len(word) > 18 or int(word) > size for word in counts):
        raise ValueError("its head tells more than the file holds")


def _listed(table: NDArray[np.float64]) -> Arrays:
    """A list of points: the next three numbers of each are its normal, three more its colour, or the other way."""
    places, nothing = table[:, :3], np.zeros((0, 3), dtype=np.int64)
    if table.shape[1] not in _COLUMNS[1:]:
        return Arrays(places, nothing)
    directions, colours = table[:, 3:6], table[:, 6:]
    if _are_levels(directions):
        directions, colours = colours, directions
    shares = colours if ((colours >= 0) & (colours <= 1)).all() else colours / 255
    known = colours.size and (shares is colours or _are_levels(colours))
    return Arrays(places, nothing, directions if directions.size else None, _levels(shares) if known else None)


def _are_levels(numbers: NDArray[np.float64]) -> bool:
    """Whether numbers are steps of colours, 0 to 255, and not coordinates of unit vectors."""
    whole = (numbers >= 0) & (numbers <= 255) & (numbers == numbers.round())
    return bool(whole.all() and (numbers > 1).any())


def _levels(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    return (shares.clip(0, 1) * 255).round().astype(np.uint8)


def _colours_of(part: trimesh.parent.Geometry, linear: bool) -> NDArray[np.uint8] | None:
    """A colour for each corner of a part, from its picture or else of its own; glTF counts light in the latter."""
    look, count = part.visual, len(part.vertices)
    try:
        if (shown := _picture_of(part)) is not None:
            return trimesh.visual.color.uv_to_color(look.uv, shown)[:, :3]
        found = np.asarray(look.vertex_attributes["color"] if look.kind == "texture" else look.vertex_colors)
    # A picture that is broken, or none of those that Pillow knows, gives no colours.
    except Exception:
        return None
    if look.kind is None or found.ndim != 2 or len(found) != count:
        return None
    most = 1 if found.dtype.kind == "f" else np.iinfo(found.dtype).max
    shares = np.nan_to_num(found[:, :3].astype(np.float64) / most).clip(0, 1)
    return _levels(to_srgb(shares) if linear else shares)


def _picture_of(part: trimesh.parent.Geometry) -> Image.Image | None:
    """The picture that lies on a part, if each of its corners has a place there."""
    look = part.visual
    if look.kind != "texture" or look.uv is None or len(look.uv) != len(part.vertices):
        return None
    picture = getattr(look.material, "image", None) or getattr(look.material, "baseColorTexture", None)
    # Where there is none, trimesh may make one up, which has no format; those that are too large are passed over.
    if picture is None or not picture.format or picture.width * picture.height > LIMITS.texture_pixels:
        return None
    return picture


def _normals_of(part: trimesh.parent.Geometry) -> NDArray[np.float64] | None:
    """The normals of a cloud in a PLY file, which trimesh leaves among what it read."""
    table = part.metadata.get("_ply_raw", {}).get("vertex", {})
    if not {"nx", "ny", "nz"} <= set(table.get("properties", ())):
        return None
    return np.stack([np.asarray(table["data"][axis], np.float64).reshape(-1) for axis in ("nx", "ny", "nz")], 1)


def _joined(scene: trimesh.Scene, linear: bool) -> Arrays:
    """All meshes of a scene as one, or, if it has none, all its points."""
    looks = {name: _colours_of(part, linear) for name, part in scene.geometry.items() if hasattr(part, "visual")}
    # A picture is kept if it is one, lies on all, and could be read for the colours of corners.
    sheets = {
        name: (part.visual.uv, _picture_of(part))
        for name, part in scene.geometry.items()
        if name in looks
        and looks[name] is not None
        and isinstance(part, trimesh.Trimesh)
        and _picture_of(part) is not None
    }
    for part in scene.geometry.values():
        if isinstance(part, trimesh.Trimesh):
            # Copies are made below, and a picture that is broken can't be copied.
            part.visual = trimesh.visual.ColorVisuals()
    _check_scene(scene)
    parts = scene.dump()
    meshes = [part for part in parts if isinstance(part, trimesh.Trimesh) and len(part.faces)]
    chosen = meshes or [part for part in parts if hasattr(part, "vertices") and len(part.vertices)]
    if not chosen:
        raise ValueError("it has neither triangles nor points")
    corners = [np.asarray(part.vertices, dtype=np.float64).reshape(-1, 3) for part in chosen]
    starts = np.cumsum([0, *map(len, corners)])
    triangles = [np.asarray(part.faces, dtype=np.int64) + start for part, start in zip(meshes, starts, strict=False)]
    colours = [paint for part in chosen if (paint := looks.get(part.metadata["name"])) is not None]
    normals = _normals_of(chosen[0]) if len(chosen) == 1 and not meshes else None
    known = [sheets[name] for part in meshes if (name := part.metadata["name"]) in sheets]
    shared = len(known) == len(meshes) > 0 and all(picture is known[0][1] for _, picture in known)
    places = [uv[part.faces][..., :2] for (uv, _), part in zip(known, meshes, strict=True)] if shared else []
    return Arrays(
        np.concatenate(corners),
        np.concatenate([np.zeros((0, 3), dtype=np.int64), *triangles]),
        normals,
        np.concatenate(colours) if len(colours) == len(chosen) else None,
        np.nan_to_num(np.concatenate(places)).astype(np.float32) if shared else None,
        known[0][1] if shared else None,
    )


def _check_scene(scene: trimesh.Scene) -> None:
    """Refuse a scene that instances would make too large."""
    shown = [scene.geometry[scene.graph[node][1]] for node in scene.graph.nodes_geometry]
    sizes = [[len(getattr(part, name, ())) for part in shown] for name in ("vertices", "faces")]
    check_counts(len(shown), *map(sum, sizes))


def read_mesh(path: Path | str) -> Mesh:
    """A mesh or cloud from a PLY, OBJ, STL, GLB, GLTF, OFF, XYZ or NPY file, in the file's own coordinates.

    Equal corners are merged, doubled inner walls cancelled; the parts of a scene stand where the scene puts them.
    Colours of corners are read where there are any, as are normals of clouds. An open surface is taken with a warning.
    """
    mesh = read_precisely(path)
    if len(mesh.faces) and not is_closed(mesh.faces):
        warnings.warn(f"{path}: the mesh is open; going on with its surface", stacklevel=2)
    return mesh.placed(mesh.vertices.float())


def read_precisely(path: Path | str) -> Mesh:
    """What `read_mesh` reads, as float64 and without a word on open surfaces."""
    path = Path(path)
    check_size(path)
    try:
        found = parse_mesh(path)
    # Parsers fail on broken files in every way there is.
    except Exception as error:
        if isinstance(error, InputError):
            raise InputError(f"{path}: {error}") from error
        raise InputError(f"{path}: is no {path.suffix[1:].upper()} file, or broken ({reason(error)})") from error
    try:
        check_counts(1, len(found.vertices), len(found.faces))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    corners = torch.from_numpy(np.array(found.vertices, dtype=np.float64))
    triangles = torch.from_numpy(np.array(found.faces, dtype=np.int64))
    _check_numbers(path, corners, triangles)
    clean = clean_surface(corners, triangles)
    kept = clean.given_vertices
    normals = None if found.normals is None else _unit_vectors(torch.from_numpy(found.normals)[kept])
    colours = None if found.colours is None else torch.from_numpy(found.colours)[kept]
    texture = None
    if found.places is not None and found.picture is not None:
        texture = Texture(torch.from_numpy(found.places)[clean.given_faces], found.picture.convert("RGB"))
    mesh, count = Mesh(clean.vertices, clean.faces, normals, colours, texture), len(triangles)
    if count and not (len(mesh.faces) and surface_area(mesh.vertices, mesh.faces) > 0):
        raise InputError(f"{path}: its triangles have no area; give a mesh with a surface")
    if not count and (points := len(mesh.vertices)) < LEAST_POINTS:
        raise InputError(f"{path}: is a cloud of {points} different points; it needs {LEAST_POINTS} or more")
    return mesh


def _unit_vectors(normals: Tensor) -> Tensor | None:
    """Normals of length 1; none where one of them is no direction."""
    length = normals.norm(dim=-1, keepdim=True)
    return (normals / length).float() if bool((length.isfinite() & (length > 0)).all()) else None


def check_size(path: Path) -> int:
    """Bytes of a file that can be read as a mesh by its name and size; any other is refused."""
    if path.suffix.lower() not in MESH_ENDINGS:
        known = " ".join(sorted(MESH_ENDINGS))
        raise InputError(f"{path}: is not a kind of mesh file known here; give one ending in {known}")
    return file_size(path, "mesh", MOST_BYTES)


def mesh_bytes(mesh: Mesh, suffix: str, colour: Colour | None = None) -> bytes:
    """The content of a .ply, .obj, .stl or .glb file (float32) that reads back as the same mesh.

    `colour`, 0…255 each, is for meshes that have no colours of their own. STL has no colours, GLB has few dark ones;
    normals of clouds are kept in PLY and OBJ, the picture on a mesh in GLB.
    """
    if suffix not in (known := (".ply", ".obj", ".stl", ".glb")):
        raise InputError(f"cannot write meshes as {suffix!r}; choose one of {', '.join(known)}")
    if suffix == ".glb":
        return scene_bytes([mesh], ["mesh"], [colour])
    if suffix == ".obj":
        paint = _paint(mesh, colour)
        shares = (
            [""] * len(mesh.vertices) if paint is None else [" {:.6g} {:.6g} {:.6g}".format(*c) for c in paint / 255]
        )
        # Nine digits are what a float32 needs.
        corners = zip(mesh.vertices.tolist(), shares, strict=True)
        lines = ["v {:.9g} {:.9g} {:.9g}".format(*corner) + share for corner, share in corners]
        if mesh.normals is not None:
            lines += ["vn {:.9g} {:.9g} {:.9g}".format(*normal) for normal in mesh.normals.tolist()]
        lines += [f"f {first + 1} {second + 1} {third + 1}" for first, second, third in mesh.faces.tolist()]
        return ("\n".join(lines) + "\n").encode()
    if suffix == ".stl" and not len(mesh.faces):
        raise InputError("STL has no clouds of points; choose .ply")
    if suffix == ".ply" and mesh.normals is not None and not len(mesh.faces):
        return _cloud_bytes(mesh, mesh.normals, _paint(mesh, colour))
    return _trimesh(mesh, None if suffix == ".stl" else _paint(mesh, colour)).export(file_type=suffix[1:])


def textured_files(mesh: Mesh, texture: Texture, name: str, aside: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of an .obj file, and of the material and the picture that it names, which are called `aside`.

    Their name must be plain: programs read spaces there in different ways.
    """
    lines = ["v {:.9g} {:.9g} {:.9g}".format(*corner) for corner in mesh.vertices.tolist()]
    rows, which = np.unique(texture.places.reshape(-1, 2).numpy(), axis=0, return_inverse=True)
    lines += ["vt {:.9g} {:.9g}".format(*row) for row in rows.tolist()]
    corners = zip((mesh.faces + 1).tolist(), (which.reshape(-1, 3) + 1).tolist(), strict=True)
    lines += [f"f {a}/{d} {b}/{e} {c}/{f}" for (a, b, c), (d, e, f) in corners]
    head = [f"mtllib {aside}.mtl", "usemtl surface"]
    yield f"{name}.obj", ("\n".join([*head, *lines]) + "\n").encode()
    material = ["newmtl surface", "Ka 1 1 1", "Kd 1 1 1", "Ks 0 0 0", "d 1", f"map_Kd {aside}.png"]
    yield f"{aside}.mtl", ("\n".join(material) + "\n").encode()
    yield f"{aside}.png", png_bytes(texture.picture)


def _cloud_bytes(mesh: Mesh, normals: Tensor, paint: NDArray[np.uint8] | None) -> bytes:
    """The content of a .ply file of points with normals, which trimesh does not write."""
    columns = [(name, "<f4", "float") for name in ("x", "y", "z", "nx", "ny", "nz")]
    columns += [] if paint is None else [(name, "u1", "uchar") for name in ("red", "green", "blue")]
    numbers = [*mesh.vertices.cpu().numpy().T, *normals.cpu().numpy().T, *(() if paint is None else paint.T)]
    table = np.zeros(len(mesh.vertices), [(name, kind) for name, kind, _ in columns])
    for (name, _, _), column in zip(columns, numbers, strict=True):
        table[name] = column
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(table)}"]
    lines += [f"property {word} {name}" for name, _, word in columns]
    return "\n".join([*lines, "end_header", ""]).encode() + table.tobytes()


def scene_bytes(
    meshes: Sequence[Mesh],
    names: Sequence[str],
    colours: Sequence[Colour | None],
    matrices: NDArray[np.float64] | None = None,
) -> bytes:
    """The content of a .glb file with one named node a mesh, each in its own colours, or in one that is given.

    `matrices` (n, 4, 4) are what the nodes move their meshes by; the meshes stay as they are.
    """
    scene = trimesh.Scene()
    # A dull surface, seen from both sides.
    dull = {"metallicFactor": 0.0, "roughnessFactor": 0.8, "doubleSided": True}
    moves = [None] * len(meshes) if matrices is None else list(matrices)
    for mesh, name, colour, move in zip(meshes, names, colours, moves, strict=True):
        if mesh.texture is not None:
            part = _with_picture(mesh, mesh.texture, trimesh.visual.material.PBRMaterial(name=name, **dull))
            scene.add_geometry(part, node_name=name, geom_name=name, transform=move)
            continue
        # glTF counts light where others count steps of grey.
        paint = _paint(mesh, colour)
        light = None if paint is None else to_linear(paint / 255)
        part = _trimesh(mesh, None if light is None else _levels(light))
        if light is not None and len(mesh.faces):
            plain = [*light[0].tolist(), 1.0] if mesh.colours is None else None
            material = trimesh.visual.material.PBRMaterial(name=name, baseColorFactor=plain, **dull)
            painted, part.visual = part.visual.vertex_colors, trimesh.visual.TextureVisuals(material=material)
            if mesh.colours is not None:
                part.visual.vertex_attributes["color"] = painted
        scene.add_geometry(part, node_name=name, geom_name=name, transform=move)
    return scene.export(file_type="glb")


def _with_picture(mesh: Mesh, texture: Texture, material: trimesh.visual.material.PBRMaterial) -> trimesh.Trimesh:
    """A mesh under its picture; where that has a seam, corners are there twice."""
    keyed = np.column_stack([mesh.faces.reshape(-1).numpy(), texture.places.reshape(-1, 2).numpy()])
    rows, which = np.unique(keyed, axis=0, return_inverse=True)
    material.baseColorTexture = texture.picture
    look = trimesh.visual.TextureVisuals(uv=rows[:, 1:], material=material)
    corners = mesh.vertices.cpu().numpy()[rows[:, 0].astype(np.int64)]
    return trimesh.Trimesh(corners, which.reshape(-1, 3), visual=look, process=False)


def _paint(mesh: Mesh, colour: Colour | None) -> NDArray[np.uint8] | None:
    """The colours of a mesh's corners: its own, or else the one given for all."""
    if mesh.colours is not None:
        return mesh.colours.cpu().numpy()
    return None if colour is None else np.tile(np.array(colour, dtype=np.uint8), (len(mesh.vertices), 1))


def _trimesh(mesh: Mesh, paint: NDArray[np.uint8] | None) -> trimesh.Trimesh | trimesh.PointCloud:
    vertices, faces = mesh.vertices.cpu().numpy(), mesh.faces.cpu().numpy()
    if paint is not None:
        paint = np.column_stack([paint, np.full(len(paint), 255, np.uint8)])
    if not len(faces):
        return trimesh.PointCloud(vertices, colors=paint)
    return trimesh.Trimesh(vertices, faces, vertex_colors=paint, process=False)


def _check_numbers(path: Path, vertices: torch.Tensor, faces: torch.Tensor) -> None:
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InputError(f"{path}: its points have {vertices.shape[-1]} numbers each; 3 are needed")
    unsound = int((~vertices.isfinite().all(1)).sum())
    if unsound:
        raise InputError(f"{path}: {unsound} of {len(vertices)} points are not finite (NaN or inf); repair the mesh")
    if len(vertices) and float(vertices.abs().max()) > LIMITS.document_number:
        raise InputError(f"{path}: has points over {LIMITS.document_number:.0e} away from the origin; repair the mesh")
    if len(faces) and (int(faces.min()) < 0 or int(faces.max()) >= len(vertices)):
        raise InputError(f"{path}: has triangles whose corners are not there; repair the mesh")
