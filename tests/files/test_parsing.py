"""Every kind of mesh file becomes the same bare numbers."""

from pathlib import Path

import numpy as np
import pytest
import trimesh

from diffassemble.files.meshes import parse_mesh


@pytest.mark.parametrize("ending", ["ply", "obj", "stl", "glb", "off"])
def test_a_box_keeps_its_size_and_its_triangles(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"box.{ending}"
    trimesh.creation.box((1, 2, 3)).export(file)
    corners, triangles = parse_mesh(file)
    assert np.allclose(np.ptp(corners, axis=0), (1, 2, 3))
    assert triangles.shape == (12, 3)


def test_clouds_have_no_triangles(tmp_path: Path) -> None:
    points = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "a.npy", points)
    (tmp_path / "b.xyz").write_text("# x y z\n" + "\n".join(", ".join(map(str, row)) for row in points))
    for name in ("a.npy", "b.xyz"):
        corners, triangles = parse_mesh(tmp_path / name)
        assert np.array_equal(corners, points)
        assert triangles.shape == (0, 3)


def test_a_table_that_is_no_cloud_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "flat.npy", np.zeros(7))
    with pytest.raises(ValueError, match="shape"):
        parse_mesh(tmp_path / "flat.npy")
