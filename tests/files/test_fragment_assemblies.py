"""Assembled fragments are written in their files' own unit, always the same way, and can be read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.core import Assembly, InputError, Mesh, Puzzle
from diffassemble.files.assemblies import assembly_bytes, read_assembly, render, write_assembly
from diffassemble.files.meshes import read_mesh
from diffassemble.files.puzzles import read_puzzle, write_puzzle
from diffassemble.fragments.files import matrix_text, plain_names, posed_meshes
from diffassemble.rendering import mesh


@pytest.fixture(autouse=True)
def short_film(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two frames are enough here, and drawn sooner."""
    animate = mesh.animate
    monkeypatch.setattr(mesh, "animate", lambda assembly, frames: animate(assembly, 2))


@pytest.fixture
def assembly(shards: Puzzle, tmp_path: Path) -> Assembly:
    """The right answer to fragments that were read from files."""
    write_puzzle(shards, tmp_path / "puzzle", ending=".obj")
    puzzle = read_puzzle(tmp_path / "puzzle")
    assert puzzle.truth is not None
    return Assembly(puzzle.without_truth(), puzzle.truth, torch.linspace(0, 1, 4), (), "test", 1.5)


@pytest.fixture
def folder(assembly: Assembly, tmp_path: Path) -> Path:
    write_assembly(assembly, tmp_path / "out")
    return tmp_path / "out"


def test_folder_holds_what_was_promised(folder: Path) -> None:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    posed = [f"posed/fragment_{index:02d}.ply" for index in range(4)]
    assert files == ["assembled.glb", "assembled.png", "assembly.json", "matrices.txt", *posed, "steps.gif"]
    with Image.open(folder / "steps.gif") as steps:
        assert getattr(steps, "n_frames", 1) > 1


def test_matrices_move_the_files_together(assembly: Assembly, folder: Path, tmp_path: Path) -> None:
    document = json.loads((folder / "assembly.json").read_text())
    assert (document["schema"], document["kind"], document["solver"]) == (1, "fragments", "test")
    for record in document["pieces"]:
        matrix = torch.tensor(record["matrix"])
        given = read_mesh(tmp_path / "puzzle" / "pieces" / record["file"])
        posed = read_mesh(folder / "posed" / f"{Path(record['file']).stem}.ply")
        assert torch.allclose(given.vertices @ matrix[:3, :3].T + matrix[:3, 3], posed.vertices, atol=1e-4)
    corners = torch.cat([read_mesh(file).vertices for file in (folder / "posed").iterdir()])
    assert torch.allclose(corners.amax(0), torch.tensor([30.0, 20, 10]), atol=1e-3)


def test_scene_has_named_parts_of_distinct_colours(folder: Path) -> None:
    scene = trimesh.load_scene(folder / "assembled.glb")
    assert sorted(scene.graph.nodes_geometry) == [f"fragment_{index:02d}" for index in range(4)]
    assert np.allclose(scene.bounds, [[-30, -20, -10], [30, 20, 10]], atol=1e-3)
    colours = {tuple(part.visual.material.baseColorFactor) for part in scene.geometry.values()}
    assert len(colours) == 4


def test_matrices_as_cloudcompare_reads_them(assembly: Assembly) -> None:
    lines = matrix_text(assembly).splitlines()
    assert len(lines) == 4 * 5
    records = json.loads(assembly_bytes(assembly))["pieces"]
    for index, record in enumerate(records):
        assert lines[5 * index] == record["file"]
        rows = [[float(word) for word in line.split(" ")] for line in lines[5 * index + 1 : 5 * index + 5]]
        assert np.allclose(rows, record["matrix"], rtol=1e-10)


def test_same_answer_same_bytes(assembly: Assembly, folder: Path, tmp_path: Path) -> None:
    write_assembly(replace(assembly, seconds=99.0), tmp_path / "again")
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(folder)).read_bytes()
    assert b"seconds" not in (folder / "assembly.json").read_bytes()


def test_read_back(assembly: Assembly, folder: Path) -> None:
    for path in (folder, folder / "assembly.json"):
        again = read_assembly(path, assembly.puzzle)
        assert torch.equal(again.poses.rotation, assembly.poses.rotation)
        assert torch.allclose(again.poses.translation, assembly.poses.translation, atol=1e-6)
        assert torch.equal(again.confidence, assembly.confidence)
        assert again.solver == "test"
    assert assembly_bytes(again) == (folder / "assembly.json").read_bytes()
    order = torch.tensor([2, 0, 3, 1])
    turned = read_assembly(folder, assembly.puzzle.reordered(order))
    assert torch.equal(turned.poses.rotation, assembly.poses.rotation[order])


def test_other_puzzles(assembly: Assembly, puzzle: Puzzle, tmp_path: Path) -> None:
    path = tmp_path / "assembly.json"
    path.write_bytes(assembly_bytes(assembly))
    with pytest.raises(InputError, match="kind 'fragments'"):
        read_assembly(path, puzzle)
    with pytest.raises(InputError, match=r"assembly\.json: is not an assembly of these 3 pieces"):
        read_assembly(path, assembly.puzzle.reordered(torch.arange(3)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"matrix": [[1, 0], [0, 1]]}, "4 rows of 4 numbers"),
        ({"matrix": [[2.0 * (row == col) for col in range(4)] for row in range(4)]}, "not a turn and a shift"),
        ({"confidence": 1.5}, "between 0 and 1"),
        ({"file": None}, "'file' must be a text"),
    ],
)
def test_spoilt_file(assembly: Assembly, tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = tmp_path / "assembly.json"
    document = json.loads(assembly_bytes(assembly))
    document["pieces"][0].update(changes)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_assembly(path, assembly.puzzle)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_overwriting(assembly: Assembly, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already exists"):
        write_assembly(assembly, folder)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        write_assembly(assembly, folder, overwrite=True)
    (folder / "notes.txt").unlink()
    write_assembly(replace(assembly, solver="other"), folder, overwrite=True)
    assert read_assembly(folder, assembly.puzzle).solver == "other"


def test_clouds_are_posed_as_clouds(shards: Puzzle, tmp_path: Path) -> None:
    assert shards.truth is not None
    clouds = tuple(Mesh(points, torch.zeros(0, 3, dtype=torch.long)) for points in shards.fragments.points)
    puzzle = replace(shards, pieces=replace(shards.fragments, meshes=clouds))
    meshes = posed_meshes(Assembly(puzzle, shards.truth, torch.ones(4), (), "test", 0.0))
    assert torch.allclose(
        torch.stack([mesh.vertices for mesh in meshes]), 60 * shards.truth.apply(shards.fragments.points)
    )


def test_a_view_of_the_object(assembly: Assembly, tmp_path: Path) -> None:
    render(assembly, tmp_path / "view.png")
    with Image.open(tmp_path / "view.png") as view:
        assert min(view.size) > 100


def test_names() -> None:
    assert plain_names(("Scherbe ä.PLY", "b", "c.1")) == ["Scherbe ä", "b", "c.1"]
    assert plain_names(("a.ply", "a.obj")) == ["a.ply", "a.obj"]


def test_objects_read_back(assembly: Assembly, tmp_path: Path) -> None:
    told = replace(assembly, objects=(0, 1, -1, 1))
    path = tmp_path / "assembly.json"
    path.write_bytes(assembly_bytes(told))
    assert [record["object"] for record in json.loads(path.read_text())["pieces"]] == [0, 1, None, 1]
    assert read_assembly(path, assembly.puzzle).objects == told.objects
    path.write_bytes(assembly_bytes(assembly))
    assert read_assembly(path, assembly.puzzle).objects is None
    path.write_bytes(assembly_bytes(told).replace(b'"object": 1', b'"object": "b"'))
    with pytest.raises(InputError, match="'object' must be"):
        read_assembly(path, assembly.puzzle)
