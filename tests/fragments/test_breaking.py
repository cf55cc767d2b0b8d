"""Solids break into sound fragments that fill them, and these become a puzzle whose truth puts them back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import trimesh
from manifold3d import Error, Manifold

from diffassemble.core import InputError, Mesh
from diffassemble.core.poses import random_rotations
from diffassemble.fragments.breaking import (
    across,
    block_below,
    every_edge_joins_two,
    fracture,
    fracture_puzzle,
    mesh_of,
    scatter,
    solid_of,
)


def mesh(shape: trimesh.Trimesh) -> Mesh:
    return Mesh(torch.tensor(shape.vertices.copy()).float(), torch.tensor(shape.faces.copy()).long())


BALL = mesh(trimesh.creation.icosphere(3))
BOX = mesh(trimesh.creation.box((1, 2, 3)))
PIPE = mesh(trimesh.creation.annulus(0.4, 0.5, 1.0))


def shapes(fragments: list[Mesh]) -> list[trimesh.Trimesh]:
    return [trimesh.Trimesh(part.vertices.numpy(), part.faces.numpy(), process=False) for part in fragments]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("pieces", [2, 3, 8, 20])
@pytest.mark.parametrize("whole", [BALL, PIPE], ids=["ball", "pipe"])
def test_exactly_so_many_sound_fragments(whole: Mesh, pieces: int) -> None:
    fragments = shapes(fracture(whole, pieces, generator(pieces)))
    assert len(fragments) == pieces
    assert all(part.is_watertight and part.body_count == 1 and part.volume > 0 for part in fragments)
    volume = shapes([whole])[0].volume
    assert sum(part.volume for part in fragments) == pytest.approx(volume, rel=1e-4)


def test_fragments_keep_their_places_at_any_scale_and_the_seed_decides() -> None:
    moved = Mesh(BALL.vertices * 250 + torch.tensor([900.0, 0, -40]), BALL.faces)
    fragments = fracture(moved, 5, generator())
    corners = torch.cat([part.vertices for part in fragments])
    assert torch.allclose(corners.amin(0), moved.vertices.amin(0), atol=0.1)
    assert torch.allclose(corners.amax(0), moved.vertices.amax(0), atol=0.1)
    assert all(part.is_watertight for part in shapes(fragments))
    again, other = fracture(moved, 5, generator()), fracture(moved, 5, generator(4))
    assert all(torch.equal(one.vertices, two.vertices) for one, two in zip(fragments, again, strict=True))
    assert any(one.vertices.shape != two.vertices.shape for one, two in zip(fragments, other, strict=True))


def test_chips_are_small_and_the_others_large() -> None:
    fragments = shapes(fracture(BALL, 6, generator(), chips=0.5))
    mean = sum(part.volume for part in fragments) / 6
    assert sum(part.volume < 0.12 * mean for part in fragments) == 3
    assert len(fragments) == 6
    assert all(part.is_watertight for part in fragments)


@pytest.mark.parametrize(
    ("pieces", "chips", "words"),
    [(1, 0.0, "into 1 pieces; ask for 2 to 200"), (201, 0.0, "ask for 2 to 200"), (4, 1.0, "share of chips 1.0")],
)
def test_wrong_numbers(pieces: int, chips: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fracture(BALL, pieces, generator(), chips)


def test_separate_parts_count_as_pieces() -> None:
    faces = torch.cat([BALL.faces, BALL.faces + len(BALL.vertices), BALL.faces + 2 * len(BALL.vertices)])
    three = Mesh(torch.cat([BALL.vertices + torch.tensor([4.0 * i, 0, 0]) for i in range(3)]), faces)
    assert len(fracture(three, 4, generator())) == 4
    with pytest.raises(InputError, match="has 3 separate parts; ask for at least 3 pieces"):
        fracture(three, 2, generator())


def test_cavities_are_kept() -> None:
    hole = Mesh(BALL.vertices * 0.5, BALL.faces.flip(1) + len(BALL.vertices))
    hollow = Mesh(torch.cat([BALL.vertices, hole.vertices]), torch.cat([BALL.faces, hole.faces]))
    fragments = shapes(fracture(hollow, 5, generator()))
    assert len(fragments) == 5
    assert all(part.is_watertight for part in fragments)
    assert sum(part.volume for part in fragments) == pytest.approx(7 / 8 * shapes([BALL])[0].volume, rel=1e-4)


def test_puzzles_lose_a_share_and_keep_the_size_of_the_whole() -> None:
    full = fracture_puzzle(BALL, 6, generator(), points=200)
    part = fracture_puzzle(BALL, 6, generator(), missing=0.5, points=200)
    assert (len(full), len(part)) == (6, 3)
    assert part.fragments.unit == full.fragments.unit == pytest.approx(2)
    assert part.fragments.points.shape == (3, 200, 3)
    assert part.names == ("fragment_00", "fragment_01", "fragment_02")
    assert part.truth is not None
    assert full.truth is not None
    stands = torch.cdist(part.truth.translation, full.truth.translation).amin(1)
    assert stands.max() < 1e-6
    with pytest.raises(InputError, match=r"missing share 1\.0"):
        fracture_puzzle(BALL, 6, generator(), missing=1.0)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_solid_and_reach_below_everything(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = np.random.default_rng(seed).uniform(-0.5, 0.5, (200, 3)) * (1, 0.3, 0.1)
    sheet = across(np.array([1.0, 0.2, 0.1]), np.zeros(3), generator)
    assert sheet.frame @ sheet.frame.T == pytest.approx(np.eye(3), abs=1e-9)
    assert np.linalg.det(sheet.frame) == pytest.approx(1)
    block = block_below(sheet, points, generator)
    assert block.status() == Error.NoError
    assert block.volume() > 0
    assert len(block.decompose()) == 1
    corners = (np.array(block.to_mesh().vert_properties)[:, :3] - sheet.centre) @ sheet.frame.T
    local = (points - sheet.centre) @ sheet.frame.T
    assert (corners.min(0) < local.min(0)).all()
    assert (corners.max(0)[:2] > local.max(0)[:2]).all()
    top = corners[corners[:, 2] > corners[:, 2].min() + 1e-4]
    assert top[:, 2].std() > 1e-3


def test_there_and_back() -> None:
    solid = solid_of(BOX)
    assert solid.volume() == pytest.approx(6)
    again = mesh_of(solid, 2.0, torch.tensor([5.0, 0, 0]))
    assert trimesh.Trimesh(again.vertices.numpy(), again.faces.numpy()).volume == pytest.approx(48)
    assert again.vertices.mean(0).tolist() == pytest.approx([5, 0, 0], abs=1e-5)


def test_inside_out_and_unjoined_corners_are_understood() -> None:
    assert solid_of(Mesh(BOX.vertices, BOX.faces.flip(1))).volume() == pytest.approx(6)
    soup = Mesh(BOX.vertices[BOX.faces].reshape(-1, 3), torch.arange(36).reshape(-1, 3))
    assert solid_of(soup).volume() == pytest.approx(6)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Mesh(BOX.vertices, BOX.faces[:-1]), "not watertight; close its holes"),
        (Mesh(BOX.vertices, BOX.faces[:0]), "has no triangles"),
        (Mesh(BOX.vertices * float("nan"), BOX.faces), "not finite"),
        (Mesh(BOX.vertices * torch.tensor([1.0, 1, 0]), BOX.faces), "encloses no volume"),
    ],
)
def test_refusals(broken: Mesh, words: str) -> None:
    with pytest.raises(InputError, match=words):
        solid_of(broken)


def test_edges() -> None:
    assert every_edge_joins_two(BOX.faces)
    assert not every_edge_joins_two(BOX.faces[1:])
    assert not every_edge_joins_two(torch.cat([BOX.faces, BOX.faces]))


def standing(count: int) -> list[Mesh]:
    """Boxes of different sizes in a row."""
    return [Mesh((1 + i) * BOX.vertices + torch.tensor([3.0 * i, 0, 0]), BOX.faces) for i in range(count)]


def test_the_truth_puts_fragments_back_into_a_whole_of_length_one() -> None:
    puzzle = scatter(standing(3), torch.Generator().manual_seed(0), points=500)
    assert puzzle.fragments.points.shape == (3, 500, 3)
    assert puzzle.fragments.points.mean(1).abs().max() < 1e-5
    assert puzzle.truth is not None
    vertices = torch.stack([mesh.vertices for mesh in puzzle.fragments.meshes])
    whole = puzzle.truth.apply(vertices).flatten(0, 1)
    extent = whole.amax(0) - whole.amin(0)
    assert torch.allclose(extent.max(), torch.tensor(1.0), atol=1e-5)
    assert torch.allclose(whole.amax(0) + whole.amin(0), torch.zeros(3), atol=1e-5)
    wanted = torch.cat([mesh.vertices for mesh in standing(3)]) / puzzle.fragments.unit
    wanted = wanted - (wanted.amax(0) + wanted.amin(0)) / 2
    assert torch.cdist(whole, wanted).amin(1).max() < 1e-5


def test_breaks_are_rough_and_without_roughness_plane() -> None:
    block = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True))
    for roughness in (0.0, 1.0):
        first, second = fracture(block, 2, torch.Generator().manual_seed(3), roughness=roughness)
        shared = first.vertices[torch.cdist(first.vertices, second.vertices).amin(1) < 1e-5].double()
        spread = float(torch.linalg.svdvals(shared - shared.mean(0))[-1]) / len(shared) ** 0.5
        assert (spread > 0.01) == (roughness > 0)


def test_random_rotations_are_rotations_and_forget_directions() -> None:
    turns = random_rotations(5000, torch.Generator().manual_seed(0))
    assert torch.allclose(turns @ turns.transpose(-1, -2), torch.eye(3).expand_as(turns), atol=1e-5)
    assert torch.allclose(torch.linalg.det(turns), torch.ones(5000), atol=1e-5)
    assert turns.mean(0).abs().max() < 0.03
