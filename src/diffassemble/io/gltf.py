"""What a glTF file asks for, counted before anybody allocates it: accessors, instances, and the tree of its nodes."""

from __future__ import annotations

import io
import struct
import sys
from typing import Any

from diffassemble.core import InputError
from diffassemble.core.limits import LIMITS, check_memory
from diffassemble.io.reading import parse_json

# Bytes of a number by its component type, and numbers of an item by its type.
_BYTES = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
_NUMBERS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
# How much more memory than its accessors a scene takes while it is read.
_COPIES = 6
_GLB, _JSON = 0x46546C67, 0x4E4F534A


def check_gltf(file: io.BufferedIOBase, binary: bool) -> None:
    """Refuse a glTF file whose head asks for more than the limits allow, or for what is not there.

    The file is back at its start then. Raises InputError with the reason alone.
    """
    content = _head(file) if binary else file.read(LIMITS.document_bytes + 1)
    file.seek(0)
    if len(content) > LIMITS.document_bytes:
        raise InputError(f"its description has over {LIMITS.document_bytes // 10**6} MB")
    tree = parse_json(content, "its description", "glTF file", sys.float_info.max)
    if not isinstance(tree, dict):
        raise InputError("its description is no record")
    views = [_check_view(view) for view in _records(tree, "bufferViews")]
    accessors = _records(tree, "accessors")
    total = sum(_accessor_bytes(accessor, views) for accessor in accessors)
    check_memory(_COPIES * total, "its numbers", "simplify it first")
    _check_instances(tree, [accessor["count"] for accessor in accessors])


def _head(file: io.BufferedIOBase) -> bytes:
    """The JSON part of a GLB file."""
    head = file.read(20)
    if len(head) < 20:
        raise InputError("it ends within its head")
    magic, _, _, length, kind = struct.unpack("<5I", head)
    if magic != _GLB or kind != _JSON:
        raise InputError("it does not begin as a GLB file does")
    return file.read(min(length, LIMITS.document_bytes + 1))


def _records(tree: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = tree.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InputError(f"its {key} are no list of records")
    return found


def _number(record: dict[str, Any], key: str, default: int | None = None) -> int:
    """A field that must be a whole number, 0 or more."""
    value = record.get(key, default)
    if type(value) is not int or value < 0:
        raise InputError(f"a {key!r} is not 0, 1, 2, …")
    return value


def _check_view(view: dict[str, Any]) -> tuple[int, int]:
    """Bytes of a view and its stride, 0 if items lie close."""
    _number(view, "buffer")
    _number(view, "byteOffset", 0)
    return _number(view, "byteLength"), _number(view, "byteStride", 0)


def _accessor_bytes(accessor: dict[str, Any], views: list[tuple[int, int]]) -> int:
    """Bytes that an accessor becomes; those that reach beyond their view are refused."""
    count, start = _number(accessor, "count"), _number(accessor, "byteOffset", 0)
    each = _BYTES.get(_number(accessor, "componentType"), 0) * _NUMBERS.get(str(accessor.get("type")), 0)
    if not each:
        raise InputError("an accessor is of no known type")
    if "bufferView" in accessor:
        number = _number(accessor, "bufferView")
        if number >= len(views):
            raise InputError("an accessor is of a view that is not there")
        length, stride = views[number]
        if count and start + (count - 1) * (stride or each) + each > length:
            raise InputError(f"an accessor tells {count} items, more than its view holds")
    return count * each


def _check_instances(tree: dict[str, Any], counts: list[int]) -> None:
    """Refuse nodes that are no tree, and more parts, corners and triangles than may be, instances counted each."""
    nodes, meshes = _records(tree, "nodes"), _records(tree, "meshes")
    sizes = [_mesh_size(mesh, counts) for mesh in meshes]
    children = [child for node in nodes for child in node.get("children", ())]
    if len(set(map(str, children))) < len(children):
        raise InputError("a node of it is the child of two others")
    parts = [_number(node, "mesh") for node in nodes if "mesh" in node]
    if any(number >= len(sizes) for number in parts):
        raise InputError("a node of it shows a mesh that is not there")
    check_counts(len(parts), *(sum(sizes[number][k] for number in parts) for k in range(2)))


def _mesh_size(mesh: dict[str, Any], counts: list[int]) -> tuple[int, int]:
    """Corners and triangles of a mesh."""
    vertices = faces = 0
    for primitive in _records(mesh, "primitives"):
        attributes = primitive.get("attributes")
        used = attributes if isinstance(attributes, dict) else {}
        for number in (*used.values(), *((primitive["indices"],) if "indices" in primitive else ())):
            if type(number) is not int or not 0 <= number < len(counts):
                raise InputError("a mesh of it is of an accessor that is not there")
        vertices += max((counts[number] for number in used.values()), default=0)
        faces += counts[primitive["indices"]] // 3 if "indices" in primitive else 0
    return vertices, faces


def check_counts(parts: int, vertices: int, faces: int) -> None:
    """Refuse more than the table of limits has; raises InputError with the reason alone."""
    for found, most, what in (
        (parts, LIMITS.mesh_parts, "parts"),
        (vertices, LIMITS.mesh_vertices, "points"),
        (faces, LIMITS.mesh_faces, "triangles"),
    ):
        if found > most:
            raise InputError(f"it has {found:,} {what}, at most {most:,} are read; simplify it first")
