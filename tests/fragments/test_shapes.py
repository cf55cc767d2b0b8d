"""Procedural solids are sound, upright, of length 1, and differ with every draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from manifold3d import Error, Manifold

from diffassemble.core import InputError
from diffassemble.fragments.breaking import bounds
from diffassemble.fragments.shapes import (
    SOLIDS,
    Dice,
    ball,
    bar,
    blended,
    bumpy,
    fracture_file,
    hollow,
    lathe,
    make_solid,
    moulded,
    rectangle,
    smooth,
    solid_name,
)


def dice(seed: int = 0) -> Dice:
    return Dice(torch.Generator().manual_seed(seed))


def drawn(name: str, count: int = 3) -> list[Manifold]:
    """A few solids of a class as they are built, neither centred nor scaled."""
    return [SOLIDS[name](dice(seed)) for seed in range(count)]


def test_the_lathe_turns_cylinders_pipes_and_pots() -> None:
    share = 64 / (2 * math.pi) * math.sin(2 * math.pi / 64)  # of a circle that a polygon with 64 corners covers
    full = lathe(rectangle(-0.5, 0, 0.5, 2), 64)
    assert full.bounding_box() == pytest.approx((-0.5, 0, -0.5, 0.5, 2, 0.5), abs=1e-3)
    assert full.volume() == pytest.approx(share * math.pi / 2, rel=1e-4)
    pipe = lathe(rectangle(0.25, 0, 0.5, 2), 64)
    assert pipe.volume() == pytest.approx(0.75 * full.volume(), rel=1e-4)
    assert (full.genus(), pipe.genus()) == (0, 1)
    room = hollow(rectangle(-0.5, 0, 0.5, 1), 0.1, 0.2, 0.5)
    pot = lathe(rectangle(-0.5, 0, 0.5, 1) - room, 64)
    assert pot.volume() == pytest.approx(share * math.pi * (0.25 - 0.16 * 0.8), rel=1e-3)
    assert len(pot.decompose()) == 1


def test_smooth_lines_and_bars() -> None:
    line = smooth([(0, 0), (1, 0), (1, 1), (0, 1)])
    assert line[[0, -1]].tolist() == [[0, 0], [0, 1]]
    assert np.abs(line - (1, 0)).sum(1).min() > 0.1
    assert np.abs(smooth([(0, 0), (1, 0), (1, 0), (1, 1)], 2) - (1, 0)).sum(1).min() == 0
    solid = bar(np.array([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)]), np.full(3, 0.1), np.full(3, 0.3), 64)
    assert solid.volume() == pytest.approx(math.pi * 0.1 * 0.3 * 2, rel=0.01)
    assert solid.bounding_box() == pytest.approx((0, -0.1, -0.3, 2, 0.1, 0.3), abs=1e-3)


def test_limbs_grow_together_and_moulds_and_bumps_keep_one_sound_body() -> None:
    foot, top, side = np.eye(3)[0] * 0, np.eye(3)[1], np.array([0.6, 0.5, 0.0])
    capsule = blended([(foot, top, 0.2, 0.2)], 0.02)
    assert capsule.volume() == pytest.approx(math.pi * 0.04 + 4 / 3 * math.pi * 0.008, rel=0.03)
    assert len(blended([(foot, top, 0.1, 0.1), (top / 2, side, 0.1, 0.05)], 0.03).decompose()) == 1
    for seed in range(4):
        solid = bumpy(moulded(ball((0, 0, 0), (0.5, 0.5, 0.5), 32), dice(seed)), 0.02, 9.0, dice(seed))
        assert solid.status() == Error.NoError
        assert solid.volume() > 0.1
        assert len(solid.decompose()) == 1


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_sound(name: str) -> None:
    volumes = set()
    for seed in range(2):
        mesh = make_solid(name, torch.Generator().manual_seed(seed))
        assert 2000 <= len(mesh.faces) <= 8000
        whole = trimesh.Trimesh(mesh.vertices.numpy(), mesh.faces.numpy(), process=True)
        assert whole.is_watertight
        assert whole.body_count == 1
        assert whole.volume > 1e-4
        assert whole.extents.max() == pytest.approx(1, abs=1e-5)
        assert whole.bounds.sum(0) == pytest.approx(0, abs=1e-5)
        volumes.add(round(whole.volume, 6))
    assert len(volumes) == 2


def test_names_and_seeds_decide() -> None:
    first, second = (make_solid("Mug", torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first.vertices[first.faces], second.vertices[second.faces])
    assert len(SOLIDS) == 20
    assert solid_name("wine-glass") == solid_name("Wine glass") == solid_name("wineglass") == "WineGlass"
    assert solid_name("anvil") is None
    with pytest.raises(InputError, match="unknown solid 'anvil'; use one of: BeerBottle, Bottle"):
        make_solid("anvil", torch.Generator())


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("Plate", lambda x, y, z: y < 0.4 * x),
        ("WineGlass", lambda x, y, z: y > 1.5 * x),
        ("Cookie", lambda x, y, z: y < 0.5 * x),
        ("Mirror", lambda x, y, z: y > z),
        ("Ring", lambda x, y, z: y > z),
        ("Spoon", lambda x, y, z: z > 2 * max(x, y)),
        ("Teapot", lambda x, y, z: x > 1.2 * z),
        *((name, lambda x, y, z: y == max(x, y, z)) for name in SOLIDS if name.endswith("Bottle")),
    ],
)
def test_solids_have_the_orientation_and_proportions_of_use(
    name: str, holds: Callable[[float, float, float], bool]
) -> None:
    for low, high in map(bounds, drawn(name)):
        assert holds(*(high - low))


def test_vessels_are_hollow_and_handles_and_rings_have_a_hole() -> None:
    for solid in drawn("Bowl"):
        low, high = bounds(solid)
        middle = (low + high)[1] / 2
        column = Manifold.cube((0.02, high[1] - middle + 1, 0.02)).translate((0, middle, 0))
        assert (solid ^ column).volume() == pytest.approx(0, abs=1e-9)
        assert solid.volume() < 0.7 * solid.hull().volume()
    filled = [solid.volume() / solid.hull().volume() for solid in drawn("BeerBottle", 12)]
    assert min(filled) < 0.45
    assert max(filled) > 0.7
    assert {solid.genus() for name in ("Mug", "Teacup") for solid in drawn(name)} == {1}
    assert all(solid.genus() >= 1 for name in ("Ring", "Teapot") for solid in drawn(name))


def test_a_file_keeps_its_unit_and_a_name_will_do(tmp_path: Path) -> None:
    trimesh.creation.box((30, 20, 10)).export(tmp_path / "box.stl")
    puzzle = fracture_file(tmp_path / "box.stl", 3)
    assert len(puzzle) == 3
    assert puzzle.fragments.unit == pytest.approx(30)
    assert len(fracture_file("pill-bottle", 4, missing=0.5)) == 2


def test_refusals(tmp_path: Path) -> None:
    box = trimesh.creation.box()
    box.update_faces([True] * 11 + [False])
    box.export(tmp_path / "open.ply")
    for source, seed, words in (
        ("anvil", 0, "anvil: is neither a mesh file nor the name of a solid; solids are: BeerBottle"),
        ("none.ply", 0, "none.ply: cannot be read"),
        ("bowl", -1, "seed -1 is out of range"),
        (tmp_path / "open.ply", 0, r"open\.ply: not watertight; close its holes"),
    ):
        with pytest.raises(InputError, match=words):
            fracture_file(source, 2, seed)
