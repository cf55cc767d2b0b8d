"""Mesh files of all kinds are read as the same shape, and what is no mesh is refused in one line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh

from diffassemble.core import InputError, Mesh
from diffassemble.core.surfaces import is_closed
from diffassemble.files.meshes import LEAST_POINTS, MOST_BYTES, mesh_bytes, read_mesh, read_precisely, scene_bytes
from diffassemble.files.pictures import write_picture


@pytest.fixture
def solid() -> Mesh:
    ball = trimesh.creation.icosphere(subdivisions=1)
    generator = torch.Generator().manual_seed(0)
    vertices = torch.from_numpy(ball.vertices).float() + 0.1 * torch.rand(len(ball.vertices), 3, generator=generator)
    return Mesh(vertices, torch.from_numpy(np.array(ball.faces)))


@pytest.fixture
def cloud(solid: Mesh) -> Mesh:
    return Mesh(solid.vertices, torch.zeros(0, 3, dtype=torch.long))


def refused(path: Path, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_mesh(path)
    for word in (str(path), *words):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("colour", [None, (200, 10, 30)])
@pytest.mark.parametrize("suffix", [".ply", ".obj", ".stl", ".glb"])
def test_what_is_written_reads_back(
    solid: Mesh, tmp_path: Path, suffix: str, colour: tuple[int, int, int] | None
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = read_mesh(written(tmp_path / f"a{suffix}", mesh_bytes(solid, suffix, colour)))
    assert again.vertices.dtype == torch.float32
    assert len(again.vertices) == len(solid.vertices)
    assert torch.equal(again.vertices[again.faces], solid.vertices[solid.faces])
    assert mesh_bytes(solid, suffix, colour) == mesh_bytes(solid, suffix, colour)


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".glb"])
def test_clouds_read_back(cloud: Mesh, tmp_path: Path, suffix: str) -> None:
    again = read_mesh(written(tmp_path / f"a{suffix}", mesh_bytes(cloud, suffix, (1, 2, 3))))
    assert torch.equal(again.vertices, cloud.vertices)
    assert len(again.faces) == 0


def test_lists_of_points(cloud: Mesh, tmp_path: Path) -> None:
    table = cloud.vertices.numpy()
    np.save(tmp_path / "a.npy", table)
    np.save(tmp_path / "normals.npy", np.hstack([table, table]))
    np.savetxt(tmp_path / "a.xyz", table, header="x y z", fmt="%.9g")
    rows = [",".join(map(repr, [*row, 7.0])) for row in table.tolist()]
    (tmp_path / "komma.XYZ").write_text("// X Y Z\n" + "\n".join(rows))
    for name in ("a.npy", "normals.npy", "a.xyz", "komma.XYZ"):
        again = read_mesh(tmp_path / name)
        assert torch.equal(again.vertices, cloud.vertices), name
        assert len(again.faces) == 0


def test_off_with_squares(tmp_path: Path) -> None:
    corners = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 0 1\n1 0 1\n1 1 1\n0 1 1\n"
    squares = "4 3 2 1 0\n4 4 5 6 7\n4 0 1 5 4\n4 1 2 6 5\n4 2 3 7 6\n4 3 0 4 7\n"
    (tmp_path / "a.off").write_text(f"OFF\n8 6 0\n{corners}{squares}")
    again = read_mesh(tmp_path / "a.off")
    assert again.vertices.shape == (8, 3)
    assert again.faces.shape == (12, 3)
    assert is_closed(again.faces)


def test_parts_of_a_scene_stand_in_their_places(tmp_path: Path) -> None:
    scene = trimesh.Scene()
    box = trimesh.creation.box()
    shift = trimesh.transformations.translation_matrix([5, 0, 0])
    scene.add_geometry(box, node_name="a")
    scene.add_geometry(box, node_name="b", transform=shift)
    scene.export(tmp_path / "a.glb")
    again = read_mesh(tmp_path / "a.glb")
    assert again.vertices.shape == (16, 3)
    assert again.vertices[:, 0].max() == 5.5
    assert again.vertices[:, 0].min() == -0.5


def test_gltf_with_its_numbers_beside(solid: Mesh, tmp_path: Path) -> None:
    scene = trimesh.Scene(trimesh.Trimesh(solid.vertices.numpy(), solid.faces.numpy(), process=False))
    for name, content in scene.export(file_type="gltf").items():
        (tmp_path / name).write_bytes(content)
    again = read_mesh(tmp_path / "model.gltf")
    assert torch.equal(again.vertices[again.faces], solid.vertices[solid.faces])


def test_scene_has_a_named_part_a_mesh(solid: Mesh, cloud: Mesh, tmp_path: Path) -> None:
    names = ["Tonscherbe ä.ply", "b"]
    content = scene_bytes([solid, cloud], names, [(255, 0, 0), (0, 255, 0)])
    scene = trimesh.load_scene(written(tmp_path / "a.glb", content))
    assert sorted(scene.graph.nodes_geometry) == sorted(names)
    assert content == scene_bytes([solid, cloud], names, [(255, 0, 0), (0, 255, 0)])


def test_doubled_inner_walls_are_cancelled(tmp_path: Path) -> None:
    left = trimesh.creation.box(bounds=[[0, 0, 0], [1, 1, 1]])
    right = left.copy()
    right.vertices = right.vertices * [-1, 1, 1]
    right.invert()
    trimesh.util.concatenate([left, right]).export(tmp_path / "a.obj")
    again = read_mesh(tmp_path / "a.obj")
    assert len(again.faces) == 20
    assert trimesh.Trimesh(again.vertices.numpy(), again.faces.numpy(), process=False).is_watertight


def test_tiny_and_far_away_scans_keep_their_digits(solid: Mesh, tmp_path: Path) -> None:
    tiny = Mesh(solid.vertices * 1e-6, solid.faces)
    again = read_mesh(written(tmp_path / "a.obj", mesh_bytes(tiny, ".obj")))
    assert torch.equal(again.vertices, tiny.vertices)
    far = solid.vertices.double() + torch.tensor([4.5e6, 5.5e5, 300.0])
    np.save(tmp_path / "a.npy", far.numpy())
    assert torch.equal(read_precisely(tmp_path / "a.npy").vertices, far)


def test_open_meshes_pass_with_a_warning(solid: Mesh, tmp_path: Path) -> None:
    path = written(tmp_path / "a.ply", mesh_bytes(Mesh(solid.vertices, solid.faces[1:]), ".ply"))
    with pytest.warns(UserWarning, match=r"a\.ply: the mesh is open"):
        assert len(read_mesh(path).faces) == len(solid.faces) - 1


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("suffix", [".ply", ".obj", ".stl", ".glb"])
def test_numbers_that_are_none(solid: Mesh, tmp_path: Path, suffix: str, value: float) -> None:
    spoilt = solid.vertices.clone()
    spoilt[3, 1] = value
    words = "away from the origin" if value == 1e30 else ""
    refused(written(tmp_path / f"a{suffix}", mesh_bytes(Mesh(spoilt, solid.faces), suffix)), words)


@pytest.mark.parametrize("count", [1, 3, LEAST_POINTS - 1])
def test_too_few_points(tmp_path: Path, count: int) -> None:
    points = np.random.default_rng(0).random((count, 3))
    np.save(tmp_path / "a.npy", points)
    refused(tmp_path / "a.npy", f"cloud of {count} different points")
    np.save(tmp_path / "b.npy", np.tile(points, (100, 1)))
    refused(tmp_path / "b.npy", f"cloud of {count} different points")


@pytest.mark.parametrize("ending", [".ply", ".obj", ".stl", ".glb", ".gltf", ".off", ".xyz", ".npy"])
def test_files_that_are_something_else(tmp_path: Path, ending: str) -> None:
    write_picture(torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(0)), tmp_path / "picture.png")
    refused((tmp_path / "picture.png").rename(tmp_path / f"a{ending}"))
    refused(written(tmp_path / f"b{ending}", b""), "empty (0 bytes)")
    refused(written(tmp_path / f"c{ending}", b"Not a mesh, but a text.\n"))
    refused(tmp_path / f"none{ending}", "No such file")
    (tmp_path / f"folder{ending}").mkdir()
    refused(tmp_path / f"folder{ending}", "is not a file")


@pytest.mark.parametrize("suffix", [".ply", ".stl", ".glb"])
def test_cut_short(solid: Mesh, tmp_path: Path, suffix: str) -> None:
    content = mesh_bytes(solid, suffix)
    refused(written(tmp_path / f"a{suffix}", content[: len(content) // 2]))


@pytest.mark.parametrize(
    "table", [np.zeros((30, 2)), np.zeros(30), np.zeros((4, 5, 3)), np.array([["a", "b", "c"]] * 30)]
)
def test_arrays_of_other_shapes(tmp_path: Path, table: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", table)
    refused(tmp_path / "a.npy", "v×3 numbers are read")


def test_other_refusals(solid: Mesh, cloud: Mesh, tmp_path: Path) -> None:
    with (tmp_path / "huge.ply").open("wb") as file:
        file.truncate(MOST_BYTES)
    refused(tmp_path / "huge.ply", "2.0 GB", "simplify it first")
    refused(written(tmp_path / "a.docx", b"x"), "not a kind of mesh file", ".ply")
    refused(written(tmp_path / "two columns.xyz", b"1 2\n" * 40), "2 numbers each")
    refused(written(tmp_path / "no such corners.ply", mesh_bytes(Mesh(solid.vertices, solid.faces + 5), ".ply")))
    line = torch.tensor([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])
    refused(written(tmp_path / "line.ply", mesh_bytes(Mesh(line, torch.tensor([[0, 1, 2]])), ".ply")), "no area")
    refused(written(tmp_path / "collapsed.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 1 2\n"))
    np.save(tmp_path / "pickle.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    refused(tmp_path / "pickle.npy")
    spoilt = cloud.vertices.numpy().copy()
    spoilt[:2] = np.nan
    np.save(tmp_path / "nan.npy", spoilt)
    refused(tmp_path / "nan.npy", f"2 of {len(spoilt)} points are not finite")
