"""Meshes and clouds of points in and out of files: trimesh parses, and what files claim is checked before and after."""

from __future__ import annotations

import io
import logging
import math
import os
import struct
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import trimesh
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from diffassemble.core import InputError, Mesh, Texture
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.core.pieces import Colour, to_linear, to_srgb
from diffassemble.core.surfaces import clean_surface, is_closed, surface_area
from diffassemble.io.pictures import png_bytes
from diffassemble.io.reading import file_size, opened, parse_json, read_bytes, reason

MESH_ENDINGS = frozenset({".ply", ".obj", ".stl", ".glb", ".gltf", ".off", ".xyz", ".npy"})
LEAST_POINTS = 20
"""fewest points of a cloud; the networks look at as many neighbours of each point"""
_HEAD = 100_000
"""bytes in which the head of a file must end"""
_COLUMNS = (3, 6, 9)
"""numbers of a point in a list: place, and normal or colour or both"""
_BYTES = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
_NUMBERS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
"""of glTF: bytes of a number by its component type, and numbers of an item by its type"""


class Arrays(NamedTuple):
    """Corners (v, 3), triangles (f, 3), normals of clouds, colours, and corners of triangles on a picture (f, 3, 2)."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]
    normals: NDArray[np.float64] | None = None
    colours: NDArray[np.uint8] | None = None
    places: NDArray[np.float32] | None = None
    picture: Image.Image | None = None


@contextmanager
def _quiet() -> Iterator[None]:
    """A block in which parsers report by raising only."""
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
    """What the file has, unchecked; raises whatever the parser raises. Without its pictures it has no colours."""
    ending = path.suffix.lower()[1:]
    with opened(path, "mesh", LIMITS.mesh_bytes) as file:
        size = os.fstat(file.fileno()).st_size
        text = ending in ("obj", "off", "xyz", "gltf") or b"\0" not in file.peek(_HEAD)
        # Bytes of memory that reading a byte takes: of text, and of numbers.
        check_memory((12 if text else 6) * size, "it", "simplify it first")
        if ending == "npy":
            return _listed(_read_array(file, size))
        if ending == "xyz":
            words = (line.replace(",", " ") for line in io.TextIOWrapper(file, encoding="utf-8"))
            return _listed(np.loadtxt(words, comments=("#", "//"), ndmin=2))
        if ending in ("glb", "gltf"):
            _check_gltf(file, ending == "glb")
        if ending == "ply":
            _check_ply(file, size)
        scene = trimesh.load_scene(file, file_type=ending, resolver=_Beside(str(path)), process=False)
        found = _joined(scene, linear=ending in ("glb", "gltf"))
        if ending == "obj" and not len(found.faces):
            file.seek(0)
            lines = file.read().decode(errors="replace").splitlines()
            rows = [line.split()[1:4] for line in lines if line[:3] == "vn "]
            return found._replace(normals=np.array(rows, np.float64) if len(rows) == len(found.vertices) else None)
    return found


class _Beside(trimesh.resolvers.FilePathResolver):
    """Finds what a mesh names in its folder and below: plain files, and no more of them than a mesh may have."""

    read = 0

    def get(self, name: str) -> bytes:
        """The content of a file by its name."""
        content = read_bytes(self.absolute(name), "file that the mesh names", LIMITS.mesh_bytes - self.read)
        self.read += len(content)
        return content


def _read_array(file: io.BufferedIOBase, size: int) -> NDArray[np.float64]:
    """The numbers of a NumPy file, whose head may not claim more than follows it."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"its version {version} is not known")
    shape, _, kind = read(file)
    if len(shape) != 2 or shape[1] not in _COLUMNS or kind.kind not in "fiu":
        known = "v×3 numbers are read, v×6 with normals, or v×9 with normals and colours"
        raise ValueError(f"its shape is {shape}, of {kind}; {known}")
    if math.prod(shape) * kind.itemsize > size:
        raise ValueError(f"it claims {shape[0]} points, but has {size} bytes")
    file.seek(0)
    return np.load(file, allow_pickle=False).astype(np.float64)


def _check_ply(file: io.BufferedIOBase, size: int) -> None:
    """Refuse a PLY file whose head claims more than follows it."""
    head, end, _ = file.read(_HEAD).partition(b"end_header")
    file.seek(0)
    if not end:
        raise ValueError("its head does not end")
    counts = [words[2] for line in head.splitlines() if len(words := line.split()) == 3 and words[0] == b"element"]
    if any(not word.isdigit() or len(word) > 18 or int(word) > size for word in counts):
        raise ValueError("its head claims more than the file holds")


def _check_gltf(file: io.BufferedIOBase, binary: bool) -> None:
    """Refuse a glTF file that claims more than the limits allow, or what is not there; raises the reason alone."""
    # 1. The description.
    length = most = LIMITS.document_bytes + 1
    if binary:
        head = file.read(20)
        if len(head) < 20:
            raise InputError("it ends within its head")
        magic, _, _, length, kind = struct.unpack("<5I", head)
        if magic != 0x46546C67 or kind != 0x4E4F534A:
            raise InputError("it does not begin as a GLB file does")
    content = file.read(min(length, most))
    file.seek(0)
    if len(content) == most:
        raise InputError(f"its description has over {LIMITS.document_bytes // 10**6} MB")
    tree = parse_json(content, "its description", "glTF file", sys.float_info.max)
    if not isinstance(tree, dict):
        raise InputError("its description is no record")
    # 2. Accessors: arrays of `count` items within views of buffers, or of zeros.
    numbers = ("byteLength", "byteStride", "byteOffset", "buffer")
    views = [[_whole(view, key, 0) for key in numbers] for view in _records(tree, "bufferViews")]
    counts, total = [], 0
    for accessor in _records(tree, "accessors"):
        count, start, number = (_whole(accessor, key, 0) for key in ("count", "byteOffset", "bufferView"))
        each = _BYTES.get(_whole(accessor, "componentType"), 0) * _NUMBERS.get(str(accessor.get("type")), 0)
        if not each or ("bufferView" in accessor and number >= len(views)):
            raise InputError("an accessor is of no known type or view")
        if "bufferView" in accessor and count:
            length, stride, *_ = views[number]
            if start + (count - 1) * (stride or each) + each > length:
                raise InputError(f"an accessor has {count} items, more than its view holds")
        counts.append(count)
        total += count * each
    # A scene takes several times the memory of its accessors while it is read.
    check_memory(6 * total, "its numbers", "simplify it first")
    # 3. Meshes of accessors, shown by nodes, which must be a tree.
    sizes = []
    for mesh in _records(tree, "meshes"):
        vertices = faces = 0
        for part in _records(mesh, "primitives"):
            used = list(part["attributes"].values()) if isinstance(part.get("attributes"), dict) else []
            corners = [part["indices"]] if "indices" in part else []
            if not all(type(number) is int and 0 <= number < len(counts) for number in (*used, *corners)):
                raise InputError("a mesh of it is of an accessor that is not there")
            vertices += max((counts[number] for number in used), default=0)
            faces += sum(counts[number] // 3 for number in corners)
        sizes.append((vertices, faces))
    nodes = _records(tree, "nodes")
    children = [str(child) for node in nodes for child in node.get("children", ())]
    if len(set(children)) < len(children):
        raise InputError("a node of it is the child of two others")
    shown = [_whole(node, "mesh") for node in nodes if "mesh" in node]
    if any(number >= len(sizes) for number in shown):
        raise InputError("a node of it shows a mesh that is not there")
    _check_counts(len(shown), *(sum(sizes[number][k] for number in shown) for k in range(2)))


def _records(tree: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = tree.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InputError(f"its {key} are no list of records")
    return found


def _whole(record: dict[str, Any], key: str, default: int | None = None) -> int:
    """A field that must be a whole number, 0 or more."""
    value = record.get(key, default)
    if type(value) is not int or value < 0:
        raise InputError(f"a {key!r} is not 0, 1, 2, …")
    return value


def _check_counts(parts: int, vertices: int, faces: int) -> None:
    """Refuse more than the table of limits has; raises InputError with the reason alone."""
    for found, most, what in (
        (parts, LIMITS.mesh_parts, "parts"),
        (vertices, LIMITS.mesh_vertices, "points"),
        (faces, LIMITS.mesh_faces, "triangles"),
    ):
        if found > most:
            raise InputError(f"it has {found:,} {what}, at most {most:,} are read; simplify it first")


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
    """A colour for each corner of a part, from its picture or else of its own, which glTF stores as linear light."""
    visual, count = part.visual, len(part.vertices)
    try:
        if (picture := _picture_of(part)) is not None:
            return trimesh.visual.color.uv_to_color(visual.uv, picture)[:, :3]
        found = np.asarray(visual.vertex_attributes["color"] if visual.kind == "texture" else visual.vertex_colors)
    # A picture that is broken, or none of those that Pillow knows, gives no colours.
    except Exception:
        return None
    if visual.kind is None or found.ndim != 2 or len(found) != count:
        return None
    most = 1 if found.dtype.kind == "f" else np.iinfo(found.dtype).max
    shares = np.nan_to_num(found[:, :3].astype(np.float64) / most).clip(0, 1)
    return _levels(to_srgb(shares) if linear else shares)


def _picture_of(part: trimesh.parent.Geometry) -> Image.Image | None:
    """The picture of a part, if each of its corners has a place there."""
    visual = part.visual
    if visual.kind != "texture" or visual.uv is None or len(visual.uv) != len(part.vertices):
        return None
    picture = getattr(visual.material, "image", None) or getattr(visual.material, "baseColorTexture", None)
    # Where there is none, trimesh may make one up, which has no format; those that are too large are ignored.
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
    colours_by_name = {
        name: _colours_of(part, linear) for name, part in scene.geometry.items() if hasattr(part, "visual")
    }
    # A picture is kept if it covers all, and could be read for the colours of corners.
    pictures = {}
    for name, part in scene.geometry.items():
        if isinstance(part, trimesh.Trimesh):
            if colours_by_name[name] is not None and (picture := _picture_of(part)) is not None:
                pictures[name] = part.visual.uv, picture
            # Copies are made below, and a picture that is broken can't be copied.
            part.visual = trimesh.visual.ColorVisuals()
    instances = [scene.geometry[scene.graph[node][1]] for node in scene.graph.nodes_geometry]
    sizes = ([len(getattr(part, name, ())) for part in instances] for name in ("vertices", "faces"))
    _check_counts(len(instances), *map(sum, sizes))
    parts = scene.dump()
    meshes = [part for part in parts if isinstance(part, trimesh.Trimesh) and len(part.faces)]
    chosen = meshes or [part for part in parts if hasattr(part, "vertices") and len(part.vertices)]
    if not chosen:
        raise ValueError("it has neither triangles nor points")
    corners = [np.asarray(part.vertices, dtype=np.float64).reshape(-1, 3) for part in chosen]
    starts = np.cumsum([0, *map(len, corners)])
    triangles = [np.asarray(part.faces, dtype=np.int64) + start for part, start in zip(meshes, starts, strict=False)]
    colours = [paint for part in chosen if (paint := colours_by_name.get(part.metadata["name"])) is not None]
    normals = _normals_of(chosen[0]) if len(chosen) == 1 and not meshes else None
    known = [pictures[name] for part in meshes if (name := part.metadata["name"]) in pictures]
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


def read_mesh(path: Path | str) -> Mesh:
    """A mesh or cloud from a PLY, OBJ, STL, GLB, GLTF, OFF, XYZ or NPY file, in the file's own coordinates.

    Equal corners are merged, doubled inner walls cancelled; an open surface is read with a warning.
    """
    mesh = read_precisely(path)
    if len(mesh.faces) and not is_closed(mesh.faces):
        warnings.warn(f"{path}: the mesh is open; going on with its surface", stacklevel=2)
    return mesh.placed(mesh.vertices.float())


def read_precisely(path: Path | str) -> Mesh:
    """What `read_mesh` reads, as float64 and without a warning of open surfaces."""
    path = Path(path)
    check_size(path)
    try:
        found = parse_mesh(path)
        _check_counts(1, len(found.vertices), len(found.faces))
    # Parsers fail on broken files in every way there is.
    except Exception as error:
        if isinstance(error, InputError):
            raise InputError(f"{path}: {error}") from error
        raise InputError(f"{path}: is no {path.suffix[1:].upper()} file, or broken ({reason(error)})") from error
    corners = torch.from_numpy(np.array(found.vertices, dtype=np.float64))
    triangles = torch.from_numpy(np.array(found.faces, dtype=np.int64))
    _check_numbers(path, corners, triangles)
    clean = clean_surface(corners, triangles)
    kept, normals, texture = clean.given_vertices, None, None
    if found.normals is not None:
        # Unit vectors, or none at all where one of them is no direction.
        length = (given := torch.from_numpy(found.normals)[kept]).norm(dim=-1, keepdim=True)
        normals = (given / length).float() if bool((length.isfinite() & (length > 0)).all()) else None
    colours = None if found.colours is None else torch.from_numpy(found.colours)[kept]
    if found.places is not None and found.picture is not None:
        texture = Texture(torch.from_numpy(found.places)[clean.given_faces], found.picture.convert("RGB"))
    mesh = Mesh(clean.vertices, clean.faces, normals, colours, texture)
    if len(triangles) and not (len(mesh.faces) and surface_area(mesh.vertices, mesh.faces) > 0):
        raise InputError(f"{path}: its triangles have no area; give a mesh with a surface")
    if not len(triangles) and (points := len(mesh.vertices)) < LEAST_POINTS:
        raise InputError(f"{path}: is a cloud of {points} different points; it needs {LEAST_POINTS} or more")
    return mesh


def _check_numbers(path: Path, vertices: Tensor, faces: Tensor) -> None:
    """Refuse corners that are no points of space, and triangles of corners that are not there."""
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InputError(f"{path}: its points have {vertices.shape[-1]} numbers each; 3 are needed")
    if unsound := int((~vertices.isfinite().all(1)).sum()):
        raise InputError(f"{path}: {unsound} of {len(vertices)} points are not finite (NaN or inf); repair the mesh")
    if len(vertices) and float(vertices.abs().max()) > LIMITS.document_number:
        raise InputError(f"{path}: has points over {LIMITS.document_number:.0e} away from the origin; repair the mesh")
    if len(faces) and (int(faces.min()) < 0 or int(faces.max()) >= len(vertices)):
        raise InputError(f"{path}: has triangles whose corners are not there; repair the mesh")


def check_size(path: Path) -> int:
    """Bytes of a file that can be read as a mesh by its name and size; any other is refused."""
    if path.suffix.lower() not in MESH_ENDINGS:
        known = " ".join(sorted(MESH_ENDINGS))
        raise InputError(f"{path}: is not a kind of mesh file known here; give one ending in {known}")
    return file_size(path, "mesh", LIMITS.mesh_bytes)


def mesh_bytes(mesh: Mesh, suffix: str, colour: Colour | None = None) -> bytes:
    """The content of a .ply, .obj, .stl or .glb file (float32); `colour`, 0…255 each, is for meshes without colours.

    STL has no colours; normals of clouds are kept in PLY and OBJ, the picture on a mesh in GLB.
    """
    if suffix not in (known := (".ply", ".obj", ".stl", ".glb")):
        raise InputError(f"cannot write meshes as {suffix!r}; choose one of {', '.join(known)}")
    if suffix == ".stl" and not len(mesh.faces):
        raise InputError("STL has no clouds of points; choose .ply")
    if suffix == ".glb":
        return scene_bytes([mesh], ["mesh"], [colour])
    paint = _paint(mesh, colour)
    if suffix == ".obj":
        lines = _text_rows("v", mesh.vertices)
        if paint is not None:
            lines = [line + shares for line, shares in zip(lines, _text_rows("", paint / 255, 6), strict=True)]
        lines += [] if mesh.normals is None else _text_rows("vn", mesh.normals)
        return ("\n".join([*lines, *_text_rows("f", mesh.faces + 1)]) + "\n").encode()
    if suffix == ".ply" and mesh.normals is not None and not len(mesh.faces):
        return _cloud_bytes(mesh, mesh.normals, paint)
    return _trimesh(mesh, None if suffix == ".stl" else paint).export(file_type=suffix[1:])


def _text_rows(word: str, table: Tensor | NDArray[Any], digits: int = 9) -> list[str]:
    """Lines of a word and the numbers of a row; nine digits are what a float32 needs."""
    return [" ".join([word, *(f"{number:.{digits}g}" for number in row)]) for row in table.tolist()]


def textured_files(mesh: Mesh, texture: Texture, name: str, aside: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of an .obj file, and of its material and picture, called `aside`, a name without spaces."""
    rows, which = np.unique(texture.places.reshape(-1, 2).numpy(), axis=0, return_inverse=True)
    corners = zip((mesh.faces + 1).tolist(), (which.reshape(-1, 3) + 1).tolist(), strict=True)
    faces = [f"f {a}/{d} {b}/{e} {c}/{f}" for (a, b, c), (d, e, f) in corners]
    lines = [f"mtllib {aside}.mtl", "usemtl surface", *_text_rows("v", mesh.vertices), *_text_rows("vt", rows), *faces]
    yield f"{name}.obj", ("\n".join(lines) + "\n").encode()
    material = ["newmtl surface", "Ka 1 1 1", "Kd 1 1 1", "Ks 0 0 0", "d 1", f"map_Kd {aside}.png"]
    yield f"{aside}.mtl", ("\n".join(material) + "\n").encode()
    yield f"{aside}.png", png_bytes(texture.picture)


def _cloud_bytes(mesh: Mesh, normals: Tensor, paint: NDArray[np.uint8] | None) -> bytes:
    """The content of a .ply file of points with normals, which trimesh does not write."""
    columns = [(name, "<f4", "float") for name in ("x", "y", "z", "nx", "ny", "nz")]
    columns += [] if paint is None else [(name, "u1", "uchar") for name in ("red", "green", "blue")]
    numbers = [*mesh.vertices.cpu().numpy().T, *normals.cpu().numpy().T, *(() if paint is None else paint.T)]
    table = np.rec.fromarrays(numbers, [(name, kind) for name, kind, _ in columns])
    lines = ["ply", "format binary_little_endian 1.0", f"element vertex {len(table)}"]
    lines += [f"property {word} {name}" for name, _, word in columns]
    return "\n".join([*lines, "end_header", ""]).encode() + table.tobytes()


def scene_bytes(
    meshes: Sequence[Mesh],
    names: Sequence[str],
    colours: Sequence[Colour | None],
    matrices: NDArray[np.float64] | None = None,
) -> bytes:
    """A .glb file with one named node a mesh, in its own or a given colour; `matrices` (n, 4, 4) move the nodes."""
    scene = trimesh.Scene()
    moves = [None] * len(meshes) if matrices is None else list(matrices)
    for mesh, name, colour, move in zip(meshes, names, colours, moves, strict=True):
        # glTF stores linear light where others store sRGB levels.
        paint = None if mesh.texture is not None else _paint(mesh, colour)
        light = None if paint is None else to_linear(paint / 255)
        plain = None if light is None or mesh.colours is not None else [*light[0].tolist(), 1.0]
        # A dull surface, seen from both sides.
        dull = {"metallicFactor": 0.0, "roughnessFactor": 0.8, "doubleSided": True}
        material = trimesh.visual.material.PBRMaterial(name=name, baseColorFactor=plain, **dull)
        part = _trimesh(mesh, None if light is None else _levels(light))
        if mesh.texture is not None:
            # Where the picture has a seam, corners are there twice.
            keyed = np.column_stack([mesh.faces.reshape(-1).numpy(), mesh.texture.places.reshape(-1, 2).numpy()])
            rows, which = np.unique(keyed, axis=0, return_inverse=True)
            material.baseColorTexture = mesh.texture.picture
            visual = trimesh.visual.TextureVisuals(uv=rows[:, 1:], material=material)
            corners = mesh.vertices.cpu().numpy()[rows[:, 0].astype(np.int64)]
            part = trimesh.Trimesh(corners, which.reshape(-1, 3), visual=visual, process=False)
        elif light is not None and len(mesh.faces):
            painted = part.visual.vertex_colors
            part.visual = trimesh.visual.TextureVisuals(material=material)
            if mesh.colours is not None:
                part.visual.vertex_attributes["color"] = painted
        scene.add_geometry(part, node_name=name, geom_name=name, transform=move)
    return scene.export(file_type="glb")


def _paint(mesh: Mesh, colour: Colour | None) -> NDArray[np.uint8] | None:
    """The colours of a mesh's corners: its own, or else the one given for all."""
    if mesh.colours is not None:
        return mesh.colours.cpu().numpy()
    return None if colour is None else np.tile(np.array(colour, dtype=np.uint8), (len(mesh.vertices), 1))


def _trimesh(mesh: Mesh, paint: NDArray[np.uint8] | None) -> trimesh.Trimesh | trimesh.PointCloud:
    """The same mesh or cloud for trimesh, with colours (v, 3) of its corners."""
    vertices, faces = mesh.vertices.cpu().numpy(), mesh.faces.cpu().numpy()
    if paint is not None:
        paint = np.column_stack([paint, np.full(len(paint), 255, np.uint8)])
    if not len(faces):
        return trimesh.PointCloud(vertices, colors=paint)
    return trimesh.Trimesh(vertices, faces, vertex_colors=paint, process=False)
