"""Made-up solids are sound, upright, of length 1, and differ with every draw."""

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
from diffassemble.fragments.shapes.catalogue import SOLIDS, fracture_file, make_solid, solid_name
from diffassemble.fragments.shapes.figures import Limb, blended
from diffassemble.fragments.shapes.tools import (
    Dice,
    ball,
    bar,
    bumpy,
    hollow,
    lathe,
    moulded,
    rectangle,
    smooth,
)


def dice(seed: int = 0) -> Dice:
    return Dice(torch.Generator().manual_seed(seed))


SEGMENTS = 64
# A polygon with so many corners covers this much of its circle.
SHARE = SEGMENTS / (2 * math.pi) * math.sin(2 * math.pi / SEGMENTS)


def test_upright_cylinder_and_pipe() -> None:
    full = lathe(rectangle(-0.5, 0, 0.5, 2), dice(), SEGMENTS)
    assert full.bounding_box() == pytest.approx((-0.5, 0, -0.5, 0.5, 2, 0.5), abs=1e-3)
    assert full.volume() == pytest.approx(SHARE * math.pi / 2, rel=1e-4)
    assert full.genus() == 0
    pipe = lathe(rectangle(0.25, 0, 0.5, 2), dice(), SEGMENTS)
    assert pipe.volume() == pytest.approx(0.75 * full.volume(), rel=1e-4)
    assert pipe.genus() == 1


def test_hollow_leaves_wall_and_floor() -> None:
    outline = rectangle(-0.5, 0, 0.5, 1)
    room = hollow(outline, 0.1, 0.2, 0.5)
    assert (outline ^ room).area() == pytest.approx(0.8 * 0.8, rel=1e-3)
    pot = lathe(outline - room, dice(), SEGMENTS)
    assert pot.volume() == pytest.approx(SHARE * math.pi * (0.25 - 0.16 * 0.8), rel=1e-3)
    assert len(pot.decompose()) == 1


def test_smooth_keeps_ends_and_stays_within() -> None:
    line = smooth([(0, 0), (1, 0), (1, 1), (0, 1)])
    assert line[0].tolist() == [0, 0]
    assert line[-1].tolist() == [0, 1]
    assert line.min() >= 0
    assert line.max() <= 1
    assert np.abs(line - (1, 0)).sum(1).min() > 0.1
    sharp = smooth([(0, 0), (1, 0), (1, 0), (1, 1)], 2)
    assert np.abs(sharp - (1, 0)).sum(1).min() == 0


def test_straight_bar_is_an_elliptic_cylinder() -> None:
    path = np.array([(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)])
    solid = bar(path, np.full(3, 0.1), np.full(3, 0.3), 64)
    assert solid.status() == Error.NoError
    assert solid.volume() == pytest.approx(math.pi * 0.1 * 0.3 * 2, rel=0.01)
    assert solid.bounding_box() == pytest.approx((0, -0.1, -0.3, 2, 0.1, 0.3), abs=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_moulds_and_bumps_keep_one_sound_body(seed: int) -> None:
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


def drawn(name: str, count: int = 3) -> list[Manifold]:
    """A few solids of a class as they are built, neither centred nor scaled."""
    return [SOLIDS[name](dice(seed)) for seed in range(count)]


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("Plate", lambda x, y, z: y < 0.4 * x),
        ("WineGlass", lambda x, y, z: y > 1.5 * x),
        ("Cookie", lambda x, y, z: y < 0.5 * x),
        ("Mirror", lambda x, y, z: y > z),
        ("Ring", lambda x, y, z: y > z),
        ("Spoon", lambda x, y, z: z > 2 * max(x, y)),
        *((name, lambda x, y, z: y == max(x, y, z)) for name in SOLIDS if name.endswith("Bottle")),
    ],
)
def test_solids_stand_or_lie_as_they_are_used(name: str, holds: Callable[[float, float, float], bool]) -> None:
    for low, high in map(bounds, drawn(name)):
        assert holds(*(high - low))


def test_bowls_are_hollow_from_above() -> None:
    for solid in drawn("Bowl"):
        low, high = bounds(solid)
        middle = (low + high)[1] / 2
        column = Manifold.cube((0.02, high[1] - middle + 1, 0.02)).translate((0, middle, 0))
        assert (solid ^ column).volume() == pytest.approx(0, abs=1e-9)
        assert solid.volume() < 0.6 * solid.hull().volume()


def test_some_bottles_are_empty() -> None:
    filled = [solid.volume() / solid.hull().volume() for solid in drawn("BeerBottle", 12)]
    assert min(filled) < 0.45
    assert max(filled) > 0.7


@pytest.mark.parametrize("name", ["Mug", "Teacup", "Ring"])
def test_handles_and_rings_have_a_hole(name: str) -> None:
    assert [solid.genus() for solid in drawn(name)] == [1] * 3


def test_teapots_reach_out_on_both_sides() -> None:
    for solid in drawn("Teapot"):
        low, high = bounds(solid)
        assert high[0] > 1.2 * high[2]
        assert low[0] < 1.2 * low[2]
        assert solid.genus() >= 1


def test_a_single_limb_is_a_capsule_and_limbs_that_touch_become_one() -> None:
    solid = blended([Limb((0, 0, 0), (0, 1, 0), 0.2, 0.2)], 0.02)
    assert solid.status() == Error.NoError
    assert solid.volume() == pytest.approx(math.pi * 0.04 + 4 / 3 * math.pi * 0.008, rel=0.03)
    limbs = [Limb((0, 0, 0), (0, 1, 0), 0.1, 0.1), Limb((0, 0.5, 0), (0.6, 0.5, 0), 0.1, 0.05)]
    assert len(blended(limbs, 0.03).decompose()) == 1


def test_statues_stand_on_something_wide() -> None:
    for seed in (0, 1, 3):
        solid = SOLIDS["Statue"](dice(seed))
        low = solid.bounding_box()[1]
        foot = solid.trim_by_plane((0, -1, 0), -low - 0.03)
        assert foot.hull().volume() == pytest.approx(foot.volume(), rel=0.05)


def test_a_file_keeps_its_unit_and_a_name_will_do(tmp_path: Path) -> None:
    trimesh.creation.box((30, 20, 10)).export(tmp_path / "box.stl")
    puzzle = fracture_file(tmp_path / "box.stl", 3)
    assert len(puzzle) == 3
    assert puzzle.fragments.unit == pytest.approx(30)
    assert len(fracture_file("pill-bottle", 4, missing=0.5)) == 2


@pytest.mark.parametrize(
    ("source", "seed", "words"),
    [
        ("anvil", 0, "anvil: is neither a mesh file nor the name of a solid; solids are: BeerBottle"),
        ("none.ply", 0, "none.ply: cannot be read"),
        ("bowl", -1, "seed -1 is out of range"),
    ],
)
def test_refusals(source: str, seed: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fracture_file(source, 2, seed)


def test_open_meshes_are_refused_by_name(tmp_path: Path) -> None:
    box = trimesh.creation.box()
    box.update_faces([True] * 11 + [False])
    box.export(tmp_path / "open.ply")
    with pytest.raises(InputError, match=r"open\.ply: not watertight; close its holes"):
        fracture_file(tmp_path / "open.ply", 2)
