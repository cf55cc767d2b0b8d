"""Meshes become solids and back; what is no solid is refused in one line."""

import numpy as np
import pytest
import torch
import trimesh
from manifold3d import Manifold

from diffassemble.core import InputError, Mesh
from diffassemble.fragments.solids import bodies, every_edge_joins_two, mesh_of, solid_of


def mesh(shape: trimesh.Trimesh) -> Mesh:
    vertices = torch.from_numpy(np.array(shape.vertices, np.float32))
    return Mesh(vertices, torch.from_numpy(np.array(shape.faces, np.int64)))


BOX = mesh(trimesh.creation.box((1, 2, 3)))


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


def test_cavities_stay_with_their_body() -> None:
    shell = Manifold.sphere(1.0, 24) - Manifold.sphere(0.5, 24)
    both = shell + Manifold.cube((1, 1, 1)).translate((3, 0, 0))
    found = sorted(body.volume() for body in bodies(both))
    assert found == pytest.approx([1.0, shell.volume()])


def test_edges() -> None:
    assert every_edge_joins_two(BOX.faces)
    assert not every_edge_joins_two(BOX.faces[1:])
    assert not every_edge_joins_two(torch.cat([BOX.faces, BOX.faces]))
