"""Answers do not depend on the unit of length that files are in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from diffassemble.core import Mesh, Puzzle, Step
from diffassemble.core.solver import content_order
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.mend import MendSolver
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.shapes import make_solid
from diffassemble.io.fragments import file_matrices, in_file_coordinates, read_fragments


@pytest.fixture(scope="module")
def vase() -> list[Mesh]:
    """Four fragments of a vase as files have them, each turned and elsewhere."""
    generator = torch.Generator().manual_seed(1)
    pieces = scatter(fracture(make_solid("vase", generator), 4, generator), generator).fragments
    return [in_file_coordinates(pieces, index) for index in range(len(pieces))]


def read_scaled(meshes: list[Mesh], factor: float, folder: Path, digits: int) -> Puzzle:
    """Files in another unit, with so many digits: 9 are what single precision keeps, 17 what double precision does."""
    folder.mkdir()
    for number, mesh in enumerate(meshes):
        corners = mesh.vertices.double().numpy() * factor
        corners = corners.astype(np.float32).astype(np.float64) if digits < 10 else corners
        lines = [f"v {x:.{digits}g} {y:.{digits}g} {z:.{digits}g}" for x, y, z in corners]
        lines += [f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist()]
        (folder / f"{number}.obj").write_text("\n".join(lines))
    return read_fragments(folder)


def answer(puzzle: Puzzle, models: FractureModels) -> Step:
    *_, last = MendSolver(models).steps(puzzle, torch.Generator().manual_seed(0))
    return last


def test_units_do_not_matter(vase: list[Mesh], models: FractureModels, tmp_path: Path) -> None:
    """Bit for bit where files are precise; where they are not, other points are sampled: then to 0.06 degrees."""
    plain = read_scaled(vase, 1.0, tmp_path / "plain", 17)
    wanted = answer(plain, models)
    assert wanted.placements.confidence.min() > 0.9
    own = file_matrices(plain.fragments, wanted.poses)
    for factor, digits in ((120.0, 17), (0.05, 17), (120.0, 9), (0.05, 9)):
        puzzle = read_scaled(vase, factor, tmp_path / f"{factor}-{digits}", digits)
        assert puzzle.fragments.unit == pytest.approx(factor * plain.fragments.unit, rel=1e-6)
        assert torch.equal(content_order(puzzle.pieces.content), content_order(plain.pieces.content))
        found = answer(puzzle, models)
        limit = 0.0 if digits > 10 else 1e-3
        assert (found.poses.rotation - wanted.poses.rotation).abs().max() <= limit
        assert (found.poses.translation - wanted.poses.translation).abs().max() <= limit
        sure, expected = found.placements.confidence, wanted.placements.confidence
        assert torch.allclose(sure, expected, rtol=0, atol=0.02 if limit else 0)
        matrices = file_matrices(puzzle.fragments, found.poses)
        assert torch.allclose(matrices[:, :3, 3] / factor, own[:, :3, 3], rtol=0, atol=1e-3)


@pytest.mark.parametrize("factor", [120.0, 0.05, 1e-12, 1e9])
def test_reading_is_the_same_in_any_unit(factor: float, vase: list[Mesh], tmp_path: Path) -> None:
    plain, scaled = (read_scaled(vase, size, tmp_path / f"{size}", 17).fragments for size in (1.0, factor))
    assert (plain.points - scaled.points).abs().max() < 1e-7
    for one, two in zip(plain.meshes, scaled.meshes, strict=True):
        assert torch.equal(one.faces, two.faces)
        assert (one.vertices - two.vertices).abs().max() < 1e-7
