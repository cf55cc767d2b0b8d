"""A mesh file, or a solid made up by name, becomes a puzzle of fragments."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from diffassemble.cutting.mesh import fracture_puzzle
from diffassemble.datasets.synthetic.catalogue import SOLIDS, make_solid, solid_name
from diffassemble.files import MESH_ENDINGS, read_mesh
from diffassemble.puzzle import InputError, Mesh, Puzzle


def fracture_file(source: Path | str, pieces: int, seed: int = 0, missing: float = 0.0, chips: float = 0.0) -> Puzzle:
    """Break the solid of a mesh file, or a made-up one if `source` is the name of a class and no file.

    The same seed gives the same puzzle.
    """
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is out of range; give a number from 0 to 2^63 − 1")
    generator = torch.Generator().manual_seed(seed)
    mesh = _mesh(Path(source), generator)
    try:
        return fracture_puzzle(mesh, pieces, generator, missing, chips)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _mesh(source: Path, generator: torch.Generator) -> Mesh:
    if not source.exists() and solid_name(str(source)) is not None:
        return make_solid(str(source), generator)
    if not source.exists() and source.suffix.lower() not in MESH_ENDINGS:
        raise InputError(f"{source}: is neither a mesh file nor the name of a solid; solids are: {', '.join(SOLIDS)}")
    with warnings.catch_warnings():
        # An open mesh is refused a moment later, in one line.
        warnings.simplefilter("ignore")
        return read_mesh(source)
