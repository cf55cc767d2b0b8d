"""Any folder of fragments becomes a puzzle that remembers its files' coordinates."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from diffassemble.core import InputError, Mesh
from diffassemble.files.meshes import mesh_bytes
from diffassemble.fragments import files as fragments
from diffassemble.fragments.files import estimated_unit, fragment_pieces, read_fragments


def fill(folder: Path, meshes: list[Mesh], suffixes: str = ".ply .obj .stl .glb") -> Path:
    folder.mkdir()
    kinds = suffixes.split()
    for index, mesh in enumerate(meshes):
        suffix = kinds[index % len(kinds)]
        (folder / f"Bruchstück {index:03d}{suffix}").write_bytes(mesh_bytes(mesh, suffix))
    return folder


def refused(folder: Path, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_fragments(folder)
    for word in (str(folder), *words):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mixed_formats_and_names(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "Scherben", brick)
    (folder / "notes.txt").write_text("found in 1912")
    (folder / ".hidden.ply").write_bytes(b"x")
    puzzle = read_fragments(folder)
    assert puzzle.names == (
        "Bruchstück 000.ply",
        "Bruchstück 001.obj",
        "Bruchstück 002.stl",
        "Bruchstück 003.glb",
    )
    assert puzzle.lattice is None
    assert puzzle.truth is None
    pieces = puzzle.fragments
    assert pieces.points.shape == (4, 1000, 3)
    assert pieces.points.dtype == pieces.meshes[0].vertices.dtype == torch.float32
    assert pieces.points.mean(1).abs().max() < 1e-6
    for mesh, own, origin in zip(brick, pieces.meshes, pieces.origins, strict=True):
        restored = origin + pieces.unit * own.vertices
        difference = mesh.vertices[mesh.faces].sum((0, 1)) - restored[own.faces].sum((0, 1))
        assert difference.abs().max() < 1e-2
        assert torch.allclose(restored.amin(0).float(), mesh.vertices.amin(0), atol=1e-4)


def test_units_and_places_do_not_matter(brick: list[Mesh]) -> None:
    metres = fragment_pieces([Mesh(mesh.vertices.double(), mesh.faces) for mesh in brick])
    away = torch.tensor([4.5e6, 5.5e5, 300.0], dtype=torch.double)
    moved = fragment_pieces([Mesh(mesh.vertices.double() / 1000 + away, mesh.faces) for mesh in brick])
    assert abs(moved.unit * 1000 / metres.unit - 1) < 1e-6
    assert torch.allclose(moved.points, metres.points, atol=1e-6)


def test_points_follow_from_the_mesh_alone(brick: list[Mesh]) -> None:
    forward, backward = fragment_pieces(brick, 60.0), fragment_pieces(brick[::-1], 60.0)
    assert torch.equal(forward.points, backward.points.flip(0))


def test_the_estimate_grows_with_the_object_and_is_near_its_size(brick: list[Mesh]) -> None:
    pieces = fragment_pieces(brick)
    assert 60 / 1.5 < pieces.unit < 60 * 1.5
    assert estimated_unit(2 * pieces.points) == pytest.approx(2 * estimated_unit(pieces.points))
    assert fragment_pieces(brick, 60.0).unit == 60.0


def test_clouds_of_few_points(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for index in range(3):
        np.save(tmp_path / f"{index}.npy", generator.random((25, 3)) * (index + 1))
    pieces = read_fragments(tmp_path).fragments
    assert pieces.points.shape == (3, 1000, 3)
    assert all(len(mesh.faces) == 0 and len(mesh.vertices) == 25 for mesh in pieces.meshes)


def test_open_meshes_are_told_once(brick: list[Mesh], tmp_path: Path) -> None:
    gaping = [Mesh(mesh.vertices, mesh.faces[1:]) for mesh in brick[:3]]
    folder = fill(tmp_path / "a", [*gaping, brick[3]], ".ply")
    with pytest.warns(UserWarning, match=r"3 of 4 meshes are open \(first: Bruchstück 000\.ply\)") as caught:
        assert len(read_fragments(folder)) == 4
    assert len(caught) == 1


def test_two_hundred_fragments(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", brick * 50, ".ply")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read_fragments(folder)) == 200


def test_numbers_of_fragments(brick: list[Mesh], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none").mkdir()
    refused(tmp_path / "none", "has no meshes")
    refused(fill(tmp_path / "one", brick[:1]), "has only 1 fragment")
    monkeypatch.setattr(fragments, "MOST_FRAGMENTS", 3)
    refused(fill(tmp_path / "many", brick), "has 4 fragments; at most 3")
    refused(tmp_path / "nowhere", "No such file")


def test_all_files_together_are_too_large(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", brick, ".ply")
    for name in ("x.ply", "y.stl"):
        with (folder / name).open("wb") as file:
            file.truncate(1_100_000_000)
    refused(folder, "over 2 GB together")


def test_one_fragment_in_two_forms(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", brick, ".ply")
    (folder / "Bruchstück 001.obj").write_bytes(mesh_bytes(brick[1], ".obj"))
    refused(folder, "Bruchstück 001.obj and Bruchstück 001.ply", "remove one")


def test_one_bad_file_is_named(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", brick, ".ply")
    (folder / "x.obj").write_text("v 1 2 nan\n" * 30)
    refused(folder, "x.obj")
