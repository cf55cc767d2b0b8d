"""Mesh files as bare numbers: trimesh parses most kinds, NumPy the plain lists of points."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import trimesh
from numpy.typing import NDArray

Arrays = tuple[NDArray[np.float64], NDArray[np.int64]]


def parse_mesh(path: Path) -> Arrays:
    """Corners (v, 3) and triangles (f, 3) as the file has them, unchecked; raises whatever the parser raises."""
    with _quiet():
        return _parsed(path)


def _parsed(path: Path) -> Arrays:
    """Corners and triangles as the file has them."""
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
    starts = np.cumsum([0, *(len(part.vertices) for part in chosen)])
    corners = np.concatenate([np.asarray(part.vertices, dtype=np.float64).reshape(-1, 3) for part in chosen])
    triangles = [
        np.asarray(part.faces, dtype=np.int64) + start for part, start in zip(meshes, starts[:-1], strict=False)
    ]
    return corners, np.concatenate(triangles) if triangles else np.zeros((0, 3), dtype=np.int64)


@contextmanager
def _quiet() -> Iterator[None]:
    """Parsers tell their troubles by raising, and no other way."""
    logger = logging.getLogger("trimesh")
    before = logger.disabled
    logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.disabled = before
