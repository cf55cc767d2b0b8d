"""Everyday solids by name: endlessly many of each, watertight, in one body, upright, of length 1."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from manifold3d import Error, Manifold

from diffassemble.core import InputError, Mesh, Puzzle
from diffassemble.core.seeds import check_seed
from diffassemble.core.surfaces import clean_surface
from diffassemble.fragments.breaking import bounds, every_edge_joins_two, fracture_puzzle, mesh_of, surface_solid
from diffassemble.fragments.shapes import figures, vessels
from diffassemble.fragments.shapes.tools import Dice
from diffassemble.io.meshes import MESH_ENDINGS, read_mesh

ATTEMPTS = 20
FEWEST_TRIANGLES, MOST_TRIANGLES = 2000, 8000
LEAST_VOLUME = 1e-4
SOLIDS: dict[str, Callable[[Dice], Manifold]] = {
    "BeerBottle": vessels.beer_bottle,
    "Bottle": vessels.bottle,
    "Bowl": vessels.bowl,
    "Cookie": figures.cookie,
    "Cup": vessels.cup,
    "DrinkBottle": vessels.drink_bottle,
    "DrinkingUtensil": vessels.drinking_utensil,
    "Mirror": figures.mirror,
    "Mug": vessels.mug,
    "PillBottle": vessels.pill_bottle,
    "Plate": vessels.plate,
    "Ring": figures.ring,
    "Spoon": figures.spoon,
    "Statue": figures.statue,
    "Teacup": vessels.teacup,
    "Teapot": vessels.teapot,
    "ToyFigure": figures.toy_figure,
    "Vase": vessels.vase,
    "WineBottle": vessels.wine_bottle,
    "WineGlass": vessels.wine_glass,
}


def _is_sound(mesh: Mesh) -> bool:
    """Whether a mesh with rounded corners, those at one place joined, is still one body with a volume."""
    vertices, faces, *_ = clean_surface(mesh.vertices, mesh.faces)
    if not every_edge_joins_two(faces):
        return False
    solid = surface_solid(vertices.numpy(), faces.numpy())
    return solid.status() == Error.NoError and solid.volume() > LEAST_VOLUME and len(solid.decompose()) == 1


def _fitted(solid: Manifold) -> Manifold:
    """The solid with its box centred on the origin, its longest side 1, and neither too few nor too many triangles."""
    low, high = bounds(solid)
    size = float((high - low).max())
    fitted = solid.translate(tuple(-(low + high) / 2)).scale((1 / size,) * 3).simplify(1e-5)
    tolerance = 2.5e-4
    while fitted.num_tri() > MOST_TRIANGLES and tolerance < 0.01:
        fitted, tolerance = fitted.simplify(tolerance), 2 * tolerance
    length = 0.25
    while fitted.num_tri() < FEWEST_TRIANGLES:
        fitted, length = fitted.refine_to_length(length), 0.8 * length
    return fitted


def solid_name(word: str) -> str | None:
    """The class that a word means, whatever its capitals, dashes and spaces; none if it means none."""
    plain = word.lower().translate(str.maketrans("", "", "-_ "))
    return next((name for name in SOLIDS if name.lower() == plain), None)


def make_solid(name: str, generator: torch.Generator) -> Mesh:
    """A solid of the class with this name, another one with every draw; nearly always the first is sound."""
    known = solid_name(name)
    if known is None:
        raise InputError(f"unknown solid {name!r}; use one of: {', '.join(SOLIDS)}")
    for _ in range(ATTEMPTS):
        drawn = SOLIDS[known](Dice(generator))
        if drawn.status() != Error.NoError or drawn.is_empty():
            continue
        mesh = mesh_of(_fitted(drawn))
        if _is_sound(mesh):
            return mesh
    raise RuntimeError(f"no sound solid in {ATTEMPTS} attempts")


def fracture_file(source: Path | str, pieces: int, seed: int = 0, missing: float = 0.0, chips: float = 0.0) -> Puzzle:
    """Break the solid of a mesh file, or a made-up one if `source` is the name of a class and no file.

    The same seed gives the same puzzle.
    """
    check_seed(seed)
    generator, path = torch.Generator().manual_seed(seed), Path(source)
    if not path.exists() and solid_name(str(path)) is not None:
        mesh = make_solid(str(path), generator)
    elif not path.exists() and path.suffix.lower() not in MESH_ENDINGS:
        raise InputError(f"{path}: is neither a mesh file nor the name of a solid; solids are: {', '.join(SOLIDS)}")
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an open mesh is refused a moment later, in one line
            mesh = read_mesh(path)
    try:
        return fracture_puzzle(mesh, pieces, generator, missing, chips)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
