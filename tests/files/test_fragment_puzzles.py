"""Puzzle folders of fragments come back as they were, and foreign ones do no harm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Board, FragmentPieces, InputError, Mesh, Puzzle
from diffassemble.files.meshes import mesh_bytes
from diffassemble.files.puzzles import open_input as read_puzzle
from diffassemble.files.puzzles import write_puzzle


def edit(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **changes}))


def refused(folder: Path, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_puzzle(folder)
    assert words in str(caught.value)
    assert str(folder) in str(caught.value)


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


@pytest.mark.parametrize("ending", [".ply", ".obj", ".stl", ".glb"])
def test_round_trip(shards: Puzzle, tmp_path: Path, ending: str) -> None:
    write_puzzle(shards, tmp_path / "a", ending=ending)
    again = read_puzzle(tmp_path / "a")
    assert again.names == tuple(name + ending for name in shards.names)
    assert again.fragments.unit == shards.fragments.unit == 60.0
    assert torch.allclose(corners(again, standing=True), corners(shards, standing=True), atol=1e-6)
    assert torch.allclose(corners(again, standing=False) / 60, corners(shards, standing=False) / 60, atol=1e-6)
    assert again.fragments.points.mean(1).abs().max() < 1e-6


def test_the_same_bytes_come_again(shards: Puzzle, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "a")
    write_puzzle(shards, tmp_path / "b")
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    names = [f"pieces/fragment_{index:02d}.ply" for index in range(4)]
    assert [str(file) for file in files] == [*names, "puzzle.json", "truth.json"]
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_puzzle_file_says_what_it_must(shards: Puzzle, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "a")
    document = json.loads((tmp_path / "a" / "puzzle.json").read_text())
    names = [f"fragment_{index:02d}.ply" for index in range(4)]
    assert document == {"schema": 1, "kind": "fragments", "unit": 60.0, "pieces": names}


def test_truth_puts_the_files_together(shards: Puzzle, tmp_path: Path) -> None:
    from diffassemble.files.meshes import read_mesh

    write_puzzle(shards, tmp_path / "a")
    moved = []
    for record in json.loads((tmp_path / "a" / "truth.json").read_text())["pieces"]:
        matrix = torch.tensor(record["matrix"])
        mesh = read_mesh(tmp_path / "a" / "pieces" / record["file"])
        moved.append(mesh.vertices @ matrix[:3, :3].T + matrix[:3, 3])
    whole = torch.cat(moved)
    assert torch.allclose(whole.amax(0), torch.tensor([30.0, 20, 10]), atol=1e-4)
    assert torch.allclose(whole.amin(0), torch.tensor([-30.0, -20, -10]), atol=1e-4)


def test_only_the_truth_file_tells_the_truth(shards: Puzzle, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "a")
    (tmp_path / "a" / "truth.json").unlink()
    assert read_puzzle(tmp_path / "a").truth is None
    write_puzzle(shards.without_truth(), tmp_path / "b")
    assert not (tmp_path / "b" / "truth.json").exists()


def test_unknown_unit_is_estimated(shards: Puzzle, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "a")
    path = tmp_path / "a" / "puzzle.json"
    document = json.loads(path.read_text())
    del document["unit"]
    path.write_text(json.dumps(document))
    again = read_puzzle(tmp_path / "a")
    assert 40 < again.fragments.unit < 90
    assert again.fragments.unit != 60
    difference = corners(again, standing=True) * again.fragments.unit - corners(shards, standing=True) * 60
    assert difference.abs().max() < 1e-3


def test_loose_meshes_need_no_board(shards: Puzzle, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "a")
    loose = read_puzzle(tmp_path / "a" / "pieces")
    assert isinstance(loose.pieces, FragmentPieces)
    assert len(loose) == 4
    with pytest.raises(InputError, match="has no pictures"):
        read_puzzle(tmp_path / "a" / "pieces", Board(2, 2))


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


def test_existing_folder(shards: Puzzle, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "a")
    with pytest.raises(InputError, match="already exists"):
        write_puzzle(shards, tmp_path / "a")
    write_puzzle(shards.without_truth(), tmp_path / "a", overwrite=True)
    assert not (tmp_path / "a" / "truth.json").exists()


@pytest.mark.parametrize("name", ["../secret.ply", "/etc/passwd", "..", "", "c:\\x.ply", 7, None])
def test_piece_names_stay_in_their_folder(shards: Puzzle, tmp_path: Path, name: object) -> None:
    write_puzzle(shards, tmp_path / "a")
    (tmp_path / "a" / "secret.ply").write_bytes(mesh_bytes(shards.fragments.meshes[0], ".ply"))
    edit(tmp_path / "a" / "puzzle.json", pieces=["fragment_00.ply", name])
    refused(tmp_path / "a", "is not the name of a file in pieces")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "sounds"}, "kind 'sounds'"),
        ({"kind": "image"}, "'rows' must be a whole number"),
        ({"unit": 0}, "'unit' must be a length above 0"),
        ({"unit": -1.5}, "'unit' must be a length above 0"),
        ({"unit": float("inf")}, "'unit' must be a length above 0"),
        ({"unit": "metre"}, "'unit' must be a number"),
        ({"pieces": []}, "must name each of its pieces once"),
        ({"pieces": ["fragment_00.ply"] * 2}, "must name each of its pieces once"),
        ({"pieces": ["fragment_00.ply"]}, "has only 1 fragment"),
        ({"pieces": ["fragment_00.ply", "fragment_77.ply"]}, "fragment_77.ply: cannot be read (No such file"),
        ({"pieces": ["fragment_00.ply", "notes.txt"]}, "not a kind of mesh file"),
    ],
)
def test_spoilt_puzzle_file(shards: Puzzle, tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write_puzzle(shards, tmp_path / "a")
    edit(tmp_path / "a" / "puzzle.json", **changes)
    refused(tmp_path / "a", words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda records: records[:-1], "each piece of puzzle.json once"),
        (lambda records: [*records, records[0]], "each piece of puzzle.json once"),
        (lambda records: [{**records[0], "file": "other.ply"}, *records[1:]], "each piece of puzzle.json once"),
        (lambda records: [{**records[0], "matrix": [[1.0] * 4] * 4}, *records[1:]], "is not a turn and a shift"),
        (lambda records: [{**records[0], "matrix": [1, 2]}, *records[1:]], "4 rows of 4 numbers"),
        (lambda records: [7, *records[1:]], "'file' must be a text"),
    ],
)
def test_spoilt_truth_file(shards: Puzzle, tmp_path: Path, change: Any, words: str) -> None:
    write_puzzle(shards, tmp_path / "a")
    path = tmp_path / "a" / "truth.json"
    edit(path, pieces=change(json.loads(path.read_text())["pieces"]))
    refused(tmp_path / "a", words)


def test_truth_of_a_picture(shards: Puzzle, tmp_path: Path) -> None:
    write_puzzle(shards, tmp_path / "a")
    edit(tmp_path / "a" / "truth.json", kind="image")
    refused(tmp_path / "a", "kind 'fragments'")
