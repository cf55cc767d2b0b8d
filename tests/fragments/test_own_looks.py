"""Colours, pictures, names and coordinates of scans come out as they went in; the palette is a wish."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.core import FragmentPieces, Mesh, Placements, Poses, Puzzle, Texture
from diffassemble.io.fragments import file_matrices, fragment_pieces, object_contents, read_fragments
from diffassemble.io.meshes import mesh_bytes, read_mesh, textured_files
from diffassemble.io.puzzles import read_puzzle, write_puzzle
from diffassemble.kinds.fragments import FRAGMENTS
from diffassemble.rendering.mesh import draw_assembly, draw_confidence
from diffassemble.rendering.studio import rasterise


def box(size: tuple[float, float, float], place: tuple[float, float, float]) -> Mesh:
    found = trimesh.creation.box(size).apply_translation(place)
    return Mesh(torch.from_numpy(np.array(found.vertices)).float(), torch.from_numpy(np.array(found.faces)))


def four_colours() -> Image.Image:
    """A picture of four plain quarters: red, green (above), blue, white (below)."""
    quarters = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]]], np.uint8)
    return Image.fromarray(quarters.repeat(8, 0).repeat(8, 1))


def textured(mesh: Mesh) -> Mesh:
    """A picture on the mesh, other places of it on every triangle."""
    places = torch.rand(len(mesh.faces), 3, 2, generator=torch.Generator().manual_seed(0))
    return replace(mesh, texture=Texture(places, four_colours()))


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """A folder of three scans: one under a picture, one with colours at its corners, one bare; far from each other."""
    folder = tmp_path / "scans"
    folder.mkdir()
    first = textured(box((1, 2, 3), (50, 0, 0)))
    assert first.texture is not None
    for name, content in textured_files(first, first.texture, "Krug links", "look"):
        (folder / name).write_bytes(content)
    second = box((2, 2, 1), (0, -40, 7))
    levels = torch.arange(24).reshape(8, 3).mul(10).to(torch.uint8)
    (folder / "rim.ply").write_bytes(mesh_bytes(replace(second, colours=levels), ".ply"))
    (folder / "base.ply").write_bytes(mesh_bytes(box((1, 1, 1), (0, 0, 0)), ".ply"))
    return folder


def moved(puzzle: Puzzle) -> Answer:
    """The fragments at places of some kind."""
    turns = torch.linalg.qr(torch.randn(3, 3, 3, generator=torch.Generator().manual_seed(1)))[0]
    turns = turns * torch.linalg.det(turns)[:, None, None]
    poses = Poses(turns, torch.tensor([[0.0, 0, 0], [0.5, 0, 0], [0, 0.5, 0]]))
    return Answer(puzzle, Placements(poses, torch.ones(3)), (), "none", 0.0)


def same_look(one: Mesh, two: Mesh) -> bool:
    assert one.texture is not None
    assert two.texture is not None
    same = np.array_equal(np.asarray(one.texture.picture), np.asarray(two.texture.picture))
    return same and torch.allclose(one.texture.places, two.texture.places, atol=1e-6)


def test_pictures_on_meshes_read_back(tmp_path: Path) -> None:
    mesh = textured(box((1, 2, 3), (4, 5, 6)))
    assert mesh.texture is not None
    for name, content in textured_files(mesh, mesh.texture, "my scan", "look"):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "a.glb").write_bytes(mesh_bytes(mesh, ".glb"))
    for name in ("my scan.obj", "a.glb"):
        again = read_mesh(tmp_path / name)
        assert torch.equal(again.vertices[again.faces], mesh.vertices[mesh.faces]), name
        assert same_look(again, mesh), name
        assert again.colours is not None


def test_a_mesh_inside_out_keeps_its_picture_in_place() -> None:
    mesh = textured(box((1, 2, 3), (0, 0, 0)))
    turned = mesh.inside_out()
    assert mesh.texture is not None
    assert turned.texture is not None
    before = torch.cat([mesh.vertices[mesh.faces], mesh.texture.places], -1)
    after = torch.cat([turned.vertices[turned.faces], turned.texture.places], -1)
    assert torch.equal(after.flip(1), before)


def test_scans_to_every_output(scans: Path, tmp_path: Path) -> None:
    puzzle = read_fragments(scans)
    assert puzzle.names == ("Krug links.obj", "base.ply", "rim.ply")
    write_puzzle(puzzle, tmp_path / "puzzle")
    again = read_puzzle(tmp_path / "puzzle")
    for one, two in zip(puzzle.fragments.meshes, again.fragments.meshes, strict=True):
        assert (one.texture is None) == (two.texture is None)
        assert one.texture is None or same_look(one, two)
    contents = dict(object_contents(moved(puzzle)))
    for name, content in contents.items():
        (tmp_path / Path(name).name).write_bytes(content)
    assert same_look(read_mesh(tmp_path / "Krug links.obj"), puzzle.fragments.meshes[0])
    rim = read_mesh(tmp_path / "rim.ply")
    assert rim.colours is not None
    given = puzzle.fragments.meshes[2].colours
    assert given is not None
    assert torch.equal(rim.colours, given)
    # What is posed can be taken for scans again: the pictures that lie there are no pieces.
    (tmp_path / "posed").mkdir()
    for name in (name for name in contents if name.startswith("posed/")):
        (tmp_path / name).write_bytes(contents[name])
    assert read_fragments(tmp_path / "posed").names == puzzle.names


def test_a_scene_has_meshes_as_given_and_matrices_that_move_them(scans: Path) -> None:
    puzzle = read_fragments(scans)
    assembly = moved(puzzle)
    contents = dict(object_contents(assembly))
    scene = trimesh.load_scene(BytesIO(contents["assembled.glb"]), file_type="glb", process=False)
    matrices = file_matrices(puzzle.fragments, assembly.poses).numpy()
    files = {"Krug links": "Krug links.obj", "base": "base.ply", "rim": "rim.ply"}
    for number, (name, file) in enumerate(files.items()):
        matrix, part = scene.graph[name]
        assert np.allclose(matrix, matrices[number], atol=1e-6)
        before = read_mesh(scans / file).vertices.numpy()
        assert np.allclose(scene.geometry[part].bounds, [before.min(0), before.max(0)], atol=1e-4)
    picture = scene.geometry["Krug links"].visual.material.baseColorTexture
    assert np.array_equal(np.asarray(picture.convert("RGB")), np.asarray(four_colours()))


def test_far_scans_lose_nothing() -> None:
    """Surveyed coordinates are millions of lengths away, beyond what single precision tells."""
    meshes = [box((1, 2, 3), (0, 0, 0)), box((2, 1, 1), (0, 0, 0)), box((1, 1, 1), (0, 0, 0))]
    away = torch.tensor([4.5e6, 5.1e6, 300.0], dtype=torch.double)
    pieces = fragment_pieces([mesh.placed(mesh.vertices.double() + away) for mesh in meshes])
    assembly = moved(Puzzle(pieces, None, ("a.ply", "b.ply", "c.ply")))
    contents = dict(object_contents(assembly))
    scene = trimesh.load_scene(BytesIO(contents["assembled.glb"]), file_type="glb", process=False)
    for name in "abc":
        matrix, part = scene.graph[name]
        placed = trimesh.transform_points(scene.geometry[part].vertices, matrix)
        posed = trimesh.load_mesh(BytesIO(contents[f"posed/{name}.ply"]), file_type="ply", process=False)
        assert np.allclose(np.sort(placed, 0), np.sort(posed.vertices, 0), atol=1e-4)


def test_the_palette_takes_the_place_of_own_colours(scans: Path) -> None:
    assert FRAGMENTS.in_palette is not None
    bare = FRAGMENTS.in_palette(moved(read_fragments(scans)))
    contents = dict(object_contents(bare))
    assert {"posed/Krug links.ply", "posed/base.ply", "posed/rim.ply"} <= set(contents)
    scene = trimesh.load_scene(BytesIO(contents["assembled.glb"]), file_type="glb", process=False)
    assert len({tuple(part.visual.material.baseColorFactor) for part in scene.geometry.values()}) == 3


def shades(picture: Image.Image) -> np.ndarray:
    """How much a picture's pixels have of red, green and blue alone."""
    levels = np.asarray(picture.convert("RGB")).astype(int)
    least = np.sort(levels, -1)[..., 1]
    return np.stack([(levels[..., channel] - least > 130).mean() for channel in range(3)])


def test_pictures_show_own_colours_but_confidence_does_not() -> None:
    plain = box((1, 1, 1), (0, 0, 0))
    blue = replace(plain, colours=torch.tensor([[0, 0, 255]], dtype=torch.uint8).repeat(8, 1))
    red_corner = torch.full((len(plain.faces), 3, 2), 0.25) + torch.tensor([0.0, 0.5])
    red = replace(plain, texture=Texture(red_corner, four_colours()))
    nothing = torch.zeros(0, 3, dtype=torch.long)
    points = torch.rand(400, 3, generator=torch.Generator().manual_seed(0)) - 0.5
    green = Mesh(points, nothing, None, torch.tensor([[0, 255, 0]], dtype=torch.uint8).repeat(400, 1))
    own = torch.stack([points] * 3)
    pieces = FragmentPieces(own, (blue, red, green), torch.zeros(3, 3))
    poses = Poses(torch.eye(3).repeat(3, 1, 1), torch.tensor([[-1.2, 0, 0], [0.0, 0, 0], [1.2, 0, 0]]))
    assembly = Answer(Puzzle(pieces, None, ("a", "b", "c")), Placements(poses, torch.ones(3)), (), "none", 0.0)
    assert (shades(draw_assembly(assembly)) > 0.02).all()
    assert (shades(draw_confidence(assembly)) < 0.01).all()
    assert FRAGMENTS.in_palette is not None
    assert (shades(draw_assembly(FRAGMENTS.in_palette(assembly))) < 0.01).all()


def test_paint_is_linear_on_the_surface_and_not_on_the_picture() -> None:
    """Half way between a corner at distance 1 and two at distance 3 appears at a quarter of the way back."""
    corners = np.array([[[0, 0, 1], [0, 40, 1 / 3], [40, 0, 1 / 3]]], np.float32)
    paint = np.zeros((1, 3, 3), np.float32)
    paint[0, 1:] = 1
    layers = rasterise(corners, np.zeros_like(corners), np.zeros(1, np.int64), (40, 40), paint)
    # At (x, y) nearness is 1 − (x + y) / 60, and distances run from 1 to 3 as paint from 0 to 1.
    for place in (2, 7, 15):
        distance = 1 / (1 - (place + 0.5) / 30)
        assert layers.paint[place, place, 0] == pytest.approx((distance - 1) / 2, abs=1e-4)
    assert (layers.paint[30:, 30:] == -1).all()
