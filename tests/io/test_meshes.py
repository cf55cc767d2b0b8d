"""Mesh files of all kinds are read as the same shape, and what is no mesh is refused in one line."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.core import InputError, Mesh
from diffassemble.core.limits import LIMITS
from diffassemble.core.surfaces import is_closed
from diffassemble.io.meshes import LEAST_POINTS, mesh_bytes, read_mesh, read_precisely, scene_bytes


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


def in_colours(mesh: Mesh) -> Mesh:
    """The mesh with other levels at every corner, and if it is a cloud with normals."""
    chance = torch.Generator().manual_seed(1)
    levels = torch.randint(60, 256, (len(mesh.vertices), 3), generator=chance).to(torch.uint8)
    normals = torch.nn.functional.normalize(torch.randn(len(mesh.vertices), 3, generator=chance), dim=1)
    return replace(mesh, colours=levels, normals=None if len(mesh.faces) else normals)


def close_colours(one: Mesh, two: Mesh, within: int = 0) -> bool:
    return bool(((one.colours.int() - two.colours.int()).abs() <= within).all())


# GLB counts light in 255 steps, which are coarse where it is dark.
@pytest.mark.parametrize(("suffix", "within"), [(".ply", 0), (".obj", 0), (".glb", 4)])
def test_colours_and_normals_read_back(solid: Mesh, cloud: Mesh, tmp_path: Path, suffix: str, within: int) -> None:
    for mesh in (in_colours(solid), in_colours(cloud)):
        again = read_mesh(written(tmp_path / f"a{suffix}", mesh_bytes(mesh, suffix, (1, 2, 3))))
        assert torch.equal(again.vertices, mesh.vertices)
        assert torch.equal(again.faces, mesh.faces)
        assert close_colours(again, mesh, within)
        assert (again.normals is None) == (mesh.normals is None or suffix == ".glb")
        assert again.normals is None or torch.allclose(again.normals, mesh.normals, atol=1e-6)
    for mesh in (solid, cloud):
        again = read_mesh(written(tmp_path / f"b{suffix}", mesh_bytes(mesh, suffix)))
        assert torch.equal(again.vertices, mesh.vertices)
        assert (again.colours, again.normals) == (None, None)


def test_scans_with_numbers_of_other_kinds(cloud: Mesh, tmp_path: Path) -> None:
    mesh = in_colours(cloud)
    table = np.hstack([cloud.vertices.double(), 1.01 * mesh.normals.double()])
    names = ["x", "y", "z", "nx", "ny", "nz"]
    rows = np.zeros(len(table), [(name, "<f8") for name in names] + [(c, "u1") for c in ("red", "green", "blue")])
    for name, column in zip(rows.dtype.names or (), [*table.T, *mesh.colours.numpy().T], strict=True):
        rows[name] = column
    header = ["ply", "format binary_little_endian 1.0", f"element vertex {len(rows)}"]
    header += [f"property {'double' if kind[0] == 'f' else 'uchar'} {name}" for name, kind in
               ((name, str(rows.dtype[name])) for name in rows.dtype.names or ())]  # fmt: skip
    content = "\n".join([*header, "end_header", ""]).encode() + rows.tobytes()
    np.save(tmp_path / "b.npy", np.hstack([table, mesh.colours / 255]))
    np.savetxt(tmp_path / "c.xyz", np.hstack([table[:, :3], mesh.colours, table[:, 3:]]))
    for path in (written(tmp_path / "a.ply", content), tmp_path / "b.npy", tmp_path / "c.xyz"):
        again = read_precisely(path)
        assert torch.allclose(again.normals, mesh.normals, atol=1e-6)
        assert close_colours(again, mesh)
    np.savetxt(tmp_path / "d.xyz", np.hstack([table[:, :3], mesh.colours]))
    assert close_colours(read_mesh(tmp_path / "d.xyz"), mesh)
    assert read_mesh(tmp_path / "d.xyz").normals is None


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_normals_that_are_none_are_left_out(cloud: Mesh, tmp_path: Path, value: float) -> None:
    normals = torch.ones(len(cloud.vertices), 3)
    normals[5] = value
    for suffix in (".ply", ".obj"):
        again = read_mesh(written(tmp_path / f"a{suffix}", mesh_bytes(replace(cloud, normals=normals), suffix)))
        assert torch.equal(again.vertices, cloud.vertices)
        assert again.normals is None
    np.save(tmp_path / "a.npy", np.hstack([cloud.vertices, normals]))
    assert read_mesh(tmp_path / "a.npy").normals is None


def test_colours_of_pictures_beside(solid: Mesh, tmp_path: Path) -> None:
    levels = in_colours(solid).colours
    folder = tmp_path / "scan"
    folder.mkdir()
    strip = Image.fromarray(levels.numpy()[None])
    strip.save(tmp_path / "outside.png")
    width = len(levels)
    lines = ["mtllib a.mtl", "usemtl clay", *(f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in solid.vertices.tolist())]
    lines += [f"vt {number / (width - 1):.9g} 0.5" for number in range(width)]
    lines += ["f " + " ".join(f"{corner + 1}/{corner + 1}" for corner in face) for face in solid.faces.tolist()]
    path = written(folder / "a.obj", "\n".join(lines).encode())
    assert read_mesh(path).colours is None  # neither a material nor a picture is there
    for picture in (b"../outside.png", b"inside.png"):
        written(folder / "a.mtl", b"newmtl clay\nmap_Kd " + picture + b"\n")
        assert read_mesh(path).colours is None
    strip.save(folder / "inside.png")
    again = read_mesh(path)
    where = (again.vertices[:, None] == solid.vertices).all(-1).int().argmax(1)
    assert torch.equal(again.colours, levels[where])
    written(folder / "inside.png", (folder / "inside.png").read_bytes()[:60])
    assert read_mesh(path).colours is None
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=strip)
    uv = np.stack([np.linspace(0, 1, width), np.full(width, 0.5)], 1)
    part = trimesh.Trimesh(solid.vertices.numpy(), solid.faces.numpy(), process=False)
    part.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    content = trimesh.Scene(part).export(file_type="glb")
    assert close_colours(read_mesh(written(tmp_path / "a.glb", content)), replace(solid, colours=levels))


def test_off_with_squares(tmp_path: Path) -> None:
    corners = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 0 1\n1 0 1\n1 1 1\n0 1 1\n"
    squares = "4 3 2 1 0\n4 4 5 6 7\n4 0 1 5 4\n4 1 2 6 5\n4 2 3 7 6\n4 3 0 4 7\n"
    (tmp_path / "a.off").write_text(f"OFF\n8 6 0\n{corners}{squares}")
    again = read_mesh(tmp_path / "a.off")
    assert again.vertices.shape == (8, 3)
    assert again.faces.shape == (12, 3)
    assert is_closed(again.faces)


def test_scenes_have_parts_in_their_places_and_numbers_beside(solid: Mesh, cloud: Mesh, tmp_path: Path) -> None:
    scene, box = trimesh.Scene(), trimesh.creation.box()
    scene.add_geometry(box, node_name="a")
    scene.add_geometry(box, node_name="b", transform=trimesh.transformations.translation_matrix([5, 0, 0]))
    scene.export(tmp_path / "a.glb")
    again = read_mesh(tmp_path / "a.glb")
    assert again.vertices.shape == (16, 3)
    assert (again.vertices[:, 0].min(), again.vertices[:, 0].max()) == (-0.5, 5.5)
    scene = trimesh.Scene(trimesh.Trimesh(solid.vertices.numpy(), solid.faces.numpy(), process=False))
    for name, content in scene.export(file_type="gltf").items():
        (tmp_path / name).write_bytes(content)
    again = read_mesh(tmp_path / "model.gltf")
    assert torch.equal(again.vertices[again.faces], solid.vertices[solid.faces])
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
@pytest.mark.parametrize("suffix", [".ply", ".obj", ".stl", ".glb"])
def test_numbers_that_are_none_and_files_cut_short(solid: Mesh, tmp_path: Path, suffix: str) -> None:
    for value in (float("nan"), float("inf"), 1e30):
        changed = solid.vertices.clone()
        changed[3, 1] = value
        words = "away from the origin" if value == 1e30 else ""
        refused(written(tmp_path / f"a{suffix}", mesh_bytes(Mesh(changed, solid.faces), suffix)), words)
    content = mesh_bytes(solid, suffix)
    if suffix != ".obj":
        refused(written(tmp_path / f"a{suffix}", content[: len(content) // 2]))


def test_too_few_points_and_arrays_of_other_shapes(tmp_path: Path) -> None:
    for count in (1, 3, LEAST_POINTS - 1):
        points = np.random.default_rng(0).random((count, 3))
        for table in (points, np.tile(points, (100, 1))):
            np.save(tmp_path / "a.npy", table)
            refused(tmp_path / "a.npy", f"cloud of {count} different points")
    for table in (np.zeros((30, 2)), np.zeros(30), np.zeros((4, 5, 3)), np.array([["a", "b", "c"]] * 30)):
        np.save(tmp_path / "a.npy", table)
        refused(tmp_path / "a.npy", "v×3 numbers are read")


def test_other_refusals(solid: Mesh, cloud: Mesh, tmp_path: Path) -> None:
    with (tmp_path / "huge.ply").open("wb") as file:
        file.truncate(LIMITS.mesh_bytes)
    refused(tmp_path / "huge.ply", "2.0 GB", "simplify it first")
    refused(written(tmp_path / "a.docx", b"x"), "not a kind of mesh file", ".ply")
    refused(written(tmp_path / "two columns.xyz", b"1 2\n" * 40), "2 numbers each")
    refused(written(tmp_path / "no such corners.ply", mesh_bytes(Mesh(solid.vertices, solid.faces + 5), ".ply")))
    line = torch.tensor([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])
    refused(written(tmp_path / "line.ply", mesh_bytes(Mesh(line, torch.tensor([[0, 1, 2]])), ".ply")), "no area")
    refused(written(tmp_path / "collapsed.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 1 2\n"))
    np.save(tmp_path / "pickle.npy", np.array([{}, {}], dtype=object), allow_pickle=True)
    refused(tmp_path / "pickle.npy")
    changed = cloud.vertices.numpy().copy()
    changed[:2] = np.nan
    np.save(tmp_path / "nan.npy", changed)
    refused(tmp_path / "nan.npy", f"2 of {len(changed)} points are not finite")
