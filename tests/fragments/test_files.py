"""Fragments are read from any folder, written and read back, and their answers are usable by other programs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.core import Board, FragmentPieces, InputError, Mesh, Placements, Puzzle
from diffassemble.fragments.breaking import scatter
from diffassemble.io import fragments as fragments
from diffassemble.io.assemblies import assembly_bytes, write_assembly
from diffassemble.io.fragments import (
    estimated_unit,
    file_matrices,
    fragment_pieces,
    matrix_text,
    plain_names,
    posed_meshes,
    read_fragments,
    read_poses,
)
from diffassemble.io.meshes import mesh_bytes, read_mesh
from diffassemble.io.puzzles import open_input as read_puzzle
from diffassemble.io.puzzles import write_puzzle
from diffassemble.rendering import mesh as drawing


def fill(folder: Path, meshes: list[Mesh], suffixes: str = ".ply .obj .stl .glb") -> Path:
    folder.mkdir()
    kinds = suffixes.split()
    for index, mesh in enumerate(meshes):
        suffix = kinds[index % len(kinds)]
        (folder / f"Bruchstück {index:03d}{suffix}").write_bytes(mesh_bytes(mesh, suffix))
    return folder


def refused(folder: Path, *words: str, read: Callable[[Path], Puzzle] = read_puzzle) -> None:
    with pytest.raises(InputError) as caught:
        read(folder)
    for word in (str(folder), *words):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mixed_formats_and_names(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "Scherben", brick)
    (folder / "notes.txt").write_text("found in 1912")
    (folder / ".hidden.ply").write_bytes(b"x")
    puzzle = read_fragments(folder)
    assert puzzle.names == ("Bruchstück 000.ply", "Bruchstück 001.obj", "Bruchstück 002.stl", "Bruchstück 003.glb")
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


def test_normals_and_colours_go_with_the_fragments(brick: list[Mesh], tmp_path: Path) -> None:
    chance = torch.Generator().manual_seed(0)
    tinted = [
        replace(mesh, colours=torch.randint(80, 256, mesh.vertices.shape, generator=chance).to(torch.uint8))
        for mesh in brick[:3]
    ]
    points = torch.nn.functional.normalize(torch.randn(200, 3, generator=chance), dim=1)
    cloud = Mesh(10 * points, torch.zeros(0, 3, dtype=torch.long), points, ((points + 1) * 120).to(torch.uint8))
    puzzle = scatter([*tinted, cloud, brick[3]], torch.Generator().manual_seed(1))
    write_puzzle(puzzle, tmp_path / "puzzle")
    puzzle = read_puzzle(tmp_path / "puzzle")
    assert puzzle.truth is not None
    assembly = Answer(puzzle, Placements(puzzle.truth, torch.ones(5)), (), "none", 0.0)
    contents = dict(fragments.object_contents(assembly))
    scene = trimesh.load_scene(BytesIO(contents["assembled.glb"]), file_type="glb", process=False)
    kept = 0
    for name, mesh in zip(plain_names(puzzle.names), posed_meshes(assembly), strict=True):
        (tmp_path / "a.ply").write_bytes(contents[f"posed/{name}.ply"])
        again = read_mesh(tmp_path / "a.ply")
        assert again.colours is not None
        if mesh.colours is None:
            assert len(again.colours.unique(dim=0)) == 1
            continue
        kept += 1
        assert torch.equal(again.colours, mesh.colours)
        assert len(again.colours.unique(dim=0)) > 4
        look = scene.geometry[name].visual
        levels = look.vertex_attributes["color"] if len(mesh.faces) else look.vertex_colors
        assert len(np.unique(levels, axis=0)) > 4
        if mesh.normals is not None:
            assert again.normals is not None
            middle = (again.vertices.amin(0) + again.vertices.amax(0)) / 2
            outward = torch.nn.functional.normalize(again.vertices - middle, dim=1)
            assert (again.normals * outward).sum(1).min() > 0.95
    assert kept == 4


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


def test_files_inside_out_give_the_same_puzzle(brick: list[Mesh], tmp_path: Path) -> None:
    closed, gaping = brick[0], Mesh(brick[1].vertices, brick[1].faces[1:])
    right = read_quietly(fill(tmp_path / "a", [closed, gaping, brick[2]], ".ply"))
    wrong = [Mesh(mesh.vertices, mesh.faces.flip(1)) for mesh in (closed, gaping)]
    with pytest.warns(UserWarning, match=r"2 of 3 meshes are inside out \(first: .* 000\.ply\); turned round"):
        turned = read_fragments(fill(tmp_path / "b", [*wrong, brick[2]], ".ply"))
    assert torch.equal(turned.fragments.points, right.fragments.points)
    for one, two in zip(turned.fragments.meshes, right.fragments.meshes, strict=True):
        assert torch.equal(one.vertices, two.vertices)
        assert torch.equal(one.faces, two.faces)


def test_dense_meshes_are_reported(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", brick, ".ply")
    with pytest.warns(UserWarning, match=r"4 of 4 meshes have over 11 triangles \(first: Bruchstück 000\.ply\); only"):
        fragments.load_fragments(sorted(folder.iterdir()), dense=11)


def read_quietly(folder: Path) -> Puzzle:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_fragments(folder)


def test_numbers_of_fragments(brick: list[Mesh], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none").mkdir()
    refused(tmp_path / "none", "has no meshes", read=read_fragments)
    refused(fill(tmp_path / "one", brick[:1]), "has only 1 fragment", read=read_fragments)
    monkeypatch.setattr(fragments, "LIMITS", replace(fragments.LIMITS, fragments=3))
    refused(fill(tmp_path / "many", brick), "has 4 fragments; at most 3", read=read_fragments)
    refused(tmp_path / "nowhere", "No such file", read=read_fragments)


def test_one_fragment_in_two_forms(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", brick, ".ply")
    (folder / "Bruchstück 001.obj").write_bytes(mesh_bytes(brick[1], ".obj"))
    refused(folder, "Bruchstück 001.obj and Bruchstück 001.ply", "remove one", read=read_fragments)


def test_all_files_together_are_too_large_and_one_bad_file_is_named(brick: list[Mesh], tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", brick, ".ply")
    for name in ("x.ply", "y.stl"):
        with (folder / name).open("wb") as file:
            file.truncate(1_100_000_000)
    refused(folder, "over 2 GB together", read=read_fragments)
    (folder / "x.ply").unlink()
    (folder / "x.obj").write_text("v 1 2 nan\n" * 30)
    refused(folder, "x.obj", read=read_fragments)


def edit(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **changes}))


def corners(puzzle: Puzzle, standing: bool) -> torch.Tensor:
    """Corners of all triangles in the order of the files: assembled in units, or as the files have them."""
    pieces, found = puzzle.fragments, []
    for index, mesh in enumerate(pieces.meshes):
        vertices = pieces.origins[index] + pieces.unit * mesh.vertices
        if standing:
            assert puzzle.truth is not None
            vertices = puzzle.truth[index : index + 1].apply(mesh.vertices[None])[0]
        found.append(vertices[mesh.faces].float())
    return torch.cat(found)


@pytest.fixture
def written(shards: Puzzle, tmp_path: Path) -> Path:
    """The puzzle folder of the shards."""
    write_puzzle(shards, tmp_path / "a")
    return tmp_path / "a"


@pytest.mark.parametrize("ending", [".ply", ".obj", ".stl", ".glb"])
def test_round_trip(shards: Puzzle, tmp_path: Path, ending: str) -> None:
    write_puzzle(shards, tmp_path / "a", ending=ending)
    again = read_puzzle(tmp_path / "a")
    assert again.names == tuple(name + ending for name in shards.names)
    assert again.fragments.unit == shards.fragments.unit == 60.0
    assert torch.allclose(corners(again, standing=True), corners(shards, standing=True), atol=1e-6)
    assert torch.allclose(corners(again, standing=False) / 60, corners(shards, standing=False) / 60, atol=1e-6)
    assert again.fragments.points.mean(1).abs().max() < 1e-6


def test_the_same_bytes_come_again_and_say_what_they_must(shards: Puzzle, written: Path, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "b")
    files = sorted(path.relative_to(written) for path in written.rglob("*") if path.is_file())
    names = [f"fragment_{index:02d}.ply" for index in range(4)]
    assert [str(file) for file in files] == [*(f"pieces/{name}" for name in names), "puzzle.json", "truth.json"]
    document = json.loads((written / "puzzle.json").read_text())
    assert document == {"schema": 1, "kind": "fragments", "unit": 60.0, "pieces": names}
    for file in files:
        assert (written / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_truth_puts_the_files_together(written: Path) -> None:
    moved = []
    for record in json.loads((written / "truth.json").read_text())["pieces"]:
        matrix = torch.tensor(record["matrix"])
        mesh = read_mesh(written / "pieces" / record["file"])
        moved.append(mesh.vertices @ matrix[:3, :3].T + matrix[:3, 3])
    whole = torch.cat(moved)
    assert torch.allclose(whole.amax(0), torch.tensor([30.0, 20, 10]), atol=1e-4)
    assert torch.allclose(whole.amin(0), torch.tensor([-30.0, -20, -10]), atol=1e-4)


def test_unknown_unit_is_estimated(shards: Puzzle, written: Path) -> None:
    path = written / "puzzle.json"
    document = json.loads(path.read_text())
    del document["unit"]
    path.write_text(json.dumps(document))
    again = read_puzzle(written)
    assert 40 < again.fragments.unit < 90
    assert again.fragments.unit != 60
    difference = corners(again, standing=True) * again.fragments.unit - corners(shards, standing=True) * 60
    assert difference.abs().max() < 1e-3


def test_loose_meshes_need_no_board(written: Path) -> None:
    loose = read_puzzle(written / "pieces")
    assert isinstance(loose.pieces, FragmentPieces)
    assert len(loose) == 4
    with pytest.raises(InputError, match="has no pictures"):
        read_puzzle(written / "pieces", Board(2, 2))


def test_what_could_not_be_read_is_not_written(shards: Puzzle, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only 1 fragment"):
        write_puzzle(shards.reordered(torch.tensor([2])), tmp_path / "a")
    with pytest.raises(InputError, match="cannot write meshes as"):
        write_puzzle(shards, tmp_path / "a", ending=".dae")
    cloud = Mesh(shards.fragments.points[0], torch.zeros(0, 3, dtype=torch.long))
    clouds = replace(shards, pieces=replace(shards.fragments, meshes=(cloud,) * 4))
    with pytest.raises(InputError, match="clouds of points"):
        write_puzzle(clouds, tmp_path / "a", ending=".stl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "sounds"}, "kind 'sounds'"),
        ({"kind": "image"}, "'rows' must be a whole number"),
        ({"unit": -1.5}, "'unit' must be a length above 0"),
        ({"unit": float("inf")}, "Infinity is no number"),
        ({"unit": "metre"}, "'unit' must be a number"),
        ({"pieces": ["fragment_00.ply"]}, "has only 1 fragment"),
        ({"pieces": ["fragment_00.ply", "notes.txt"]}, "not a kind of mesh file"),
    ],
)
def test_spoilt_puzzle_file(written: Path, changes: dict[str, Any], words: str) -> None:
    edit(written / "puzzle.json", **changes)
    refused(written, words)


def test_spoilt_truth_file(written: Path) -> None:
    path = written / "truth.json"
    first, *others = json.loads(path.read_text())["pieces"]
    edit(path, pieces=[{**first, "matrix": [[1.0] * 4] * 4}, *others])
    refused(written, "is not a turn and a shift")
    edit(path, kind="image")
    refused(written, "kind 'fragments'")


@pytest.fixture(autouse=True)
def short_film(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two frames are enough here, and drawn sooner."""
    animate = drawing.animate
    monkeypatch.setattr(drawing, "animate", lambda assembly, frames: animate(assembly, 2))


@pytest.fixture
def assembly(shards: Puzzle, tmp_path: Path) -> Answer:
    """The right answer to fragments that were read from files."""
    write_puzzle(shards, tmp_path / "puzzle", ending=".obj")
    puzzle = read_puzzle(tmp_path / "puzzle")
    assert puzzle.truth is not None
    return Answer(puzzle.without_truth(), Placements(puzzle.truth, torch.linspace(0, 1, 4)), (), "test", 1.5)


@pytest.fixture
def folder(assembly: Answer, tmp_path: Path) -> Path:
    write_assembly(assembly, tmp_path / "out")
    return tmp_path / "out"


def test_folder_holds_what_was_promised(folder: Path) -> None:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    posed = [f"posed/fragment_{index:02d}.ply" for index in range(4)]
    first = ["assembled.glb", "assembled.png", "assembly.json", "matrices.txt"]
    assert files == [*first, *posed, "report.html", "steps.gif"]
    with Image.open(folder / "steps.gif") as steps:
        assert getattr(steps, "n_frames", 1) > 1


def test_matrices_move_the_files_together(assembly: Answer, folder: Path, tmp_path: Path) -> None:
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


def test_matrices_as_cloudcompare_reads_them(assembly: Answer) -> None:
    lines = matrix_text(assembly).splitlines()
    assert len(lines) == 4 * 5
    records = json.loads(assembly_bytes(assembly))["pieces"]
    for index, record in enumerate(records):
        assert lines[5 * index] == record["file"]
        rows = [[float(word) for word in line.split(" ")] for line in lines[5 * index + 1 : 5 * index + 5]]
        assert np.allclose(rows, record["matrix"], rtol=1e-10)


def test_same_answer_same_bytes(assembly: Answer, folder: Path, tmp_path: Path) -> None:
    write_assembly(replace(assembly, seconds=99.0), tmp_path / "again")
    # The report tells how long solving took.
    for path in (path for path in folder.rglob("*") if path.is_file() and path.name != "report.html"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(folder)).read_bytes()
    assert b"seconds" not in (folder / "assembly.json").read_bytes()


def test_clouds_are_posed_as_clouds(shards: Puzzle, tmp_path: Path) -> None:
    assert shards.truth is not None
    clouds = tuple(Mesh(points, torch.zeros(0, 3, dtype=torch.long)) for points in shards.fragments.points)
    puzzle = replace(shards, pieces=replace(shards.fragments, meshes=clouds))
    meshes = posed_meshes(Answer(puzzle, Placements(shards.truth, torch.ones(4)), (), "test", 0.0))
    moved = torch.stack([mesh.vertices for mesh in meshes])
    assert torch.allclose(moved, 60 * shards.truth.apply(shards.fragments.points))


def test_names() -> None:
    assert plain_names(("Scherbe ä.PLY", "b", "c.1")) == ["Scherbe ä", "b", "c.1"]
    assert plain_names(("a.ply", "a.obj")) == ["a.ply", "a.obj"]


@pytest.mark.parametrize(
    "spoil",
    [
        torch.diag(torch.tensor([2.0, 2, 2, 1])),
        torch.diag(torch.tensor([-1.0, 1, 1, 1])),
        torch.diag(torch.tensor([1.0, 1, 1, 2])),
        torch.zeros(4, 4),
    ],
)
def test_no_other_motions(shards: Puzzle, spoil: torch.Tensor) -> None:
    assert shards.truth is not None
    matrices = file_matrices(shards.fragments, shards.truth)
    matrices[3] = spoil.double() @ matrices[3]
    with pytest.raises(InputError, match=r"x\.json: a 'matrix' is not a turn and a shift"):
        read_poses(shards, [{"matrix": matrix} for matrix in matrices.tolist()], Path("x.json"))
