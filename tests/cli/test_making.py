"""`diffassemble cut` and `fracture` write what they promise, or refuse in one line and leave everything as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import trimesh
from PIL import Image

from diffassemble.core import Board
from diffassemble.io.pictures import write_picture
from diffassemble.io.puzzles import read_puzzle

Command = Callable[..., Any]
Refused = Callable[..., None]
Tree = Callable[..., dict[Path, bytes | None]]


def test_cut_and_read_back(photo: Path, tmp_path: Path) -> None:
    """As users start it, with a space in a name."""
    words = ["cut", str(photo), "--grid", "4x6", "--out", str(tmp_path / "out dir")]
    done = subprocess.run([sys.executable, "-m", "diffassemble", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"wrote 24 pieces of 10x10 pixels, grid 4x6, to {tmp_path / 'out dir'}" in done.stdout
    assert f"diffassemble solve '{tmp_path / 'out dir'}'" in done.stdout
    puzzle = read_puzzle(tmp_path / "out dir")
    assert (puzzle.board, puzzle.truth is not None) == (Board(4, 6), True)


def test_options_of_cut(command: Command, photo: Path, tmp_path: Path, tree: Tree) -> None:
    words = ["--grid", "4", "--size", "16", "--missing", "0.25", "--erode", "2", "--seed", "5", "--no-rotate"]
    assert command("cut", photo, *words, "--out", tmp_path / "a").code == 0
    puzzle = read_puzzle(tmp_path / "a")
    assert puzzle.pieces.pixels.shape == (12, 3, 12, 12)
    assert not puzzle.board.snap(puzzle.truth)[1].any()
    assert command("cut", photo, *words, "--out", tmp_path / "b").code == 0
    assert list(tree(tmp_path / "a").values()) == list(tree(tmp_path / "b").values())
    done = command("cut", photo, "--grid", "2x2", "--out", tmp_path / "square")
    assert "cut to 40 × 40 of 60 × 40 pixels, so that pieces are square; --fit keeps all\n" in done.out
    assert "of 60 × 40" not in command("cut", photo, "--grid", "2x3", "--out", tmp_path / "fits").out
    done = command("cut", photo, "--grid", "2x2", "--fit", "--out", tmp_path / "all")
    assert "cut to" not in done.out
    assert "4 pieces of 30x20 pixels" in done.out


@pytest.mark.parametrize("shape", ["tabs", "torn", "shards", "strips"])
def test_shapes(command: Command, photo: Path, tmp_path: Path, shape: str) -> None:
    words = ["--shape", shape, "--pieces", "6", "--size", "20", "--seed", "3"]
    done = command("cut", photo, *words, "--missing", "0.3", "--erode", "1", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    assert "wrote 4 pieces of about" in done.out
    puzzle = read_puzzle(tmp_path / "out")
    assert (puzzle.kind, len(puzzle), puzzle.truth is not None) == ("outlines", 4, True)
    assert (tmp_path / "out" / "truth.json").exists()
    assert "degrees" not in (tmp_path / "out" / "puzzle.json").read_text()


@pytest.fixture
def box(tmp_path: Path) -> Path:
    path = tmp_path / "Kiste ä.ply"
    trimesh.creation.box((40, 30, 20)).export(path)
    return path


@pytest.mark.parametrize("ending", ["ply", "obj", "stl", "glb"])
def test_fracture_and_read_back(command: Command, box: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / "out"
    done = command("fracture", box, "--pieces", "5", "--missing", "0.2", "--format", ending, "--out", out)
    assert (done.code, done.err) == (0, "")
    assert f"wrote 4 fragments (1 of 5 missing) to {out}" in done.out
    assert f"diffassemble solve {out}" in done.out
    assert len(list((out / "pieces").glob(f"*.{ending}"))) == 4
    puzzle = read_puzzle(out)
    assert (len(puzzle.fragments), puzzle.truth is not None) == (4, True)
    assert puzzle.fragments.unit == pytest.approx(40, rel=1e-4)


def test_made_up_solids_and_seeds(command: Command, tmp_path: Path, tree: Tree) -> None:
    for folder, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        words = ["--pieces", "3", "--chips", "0.34", "--seed", seed, "--out", tmp_path / folder]
        assert command("fracture", "pill-bottle", *words).code == 0
    first, second, other = (list(tree(tmp_path / name).values()) for name in "abc")
    assert first == second != other


@pytest.mark.parametrize("verb", ["cut", "fracture"])
def test_overwrite(command: Command, refused: Refused, photo: Path, box: Path, tmp_path: Path, verb: str) -> None:
    out = tmp_path / "out"
    words = {"cut": ["cut", photo, "--grid", "2x3"], "fracture": ["fracture", box, "--pieces", "2"]}[verb]
    assert command(*words, "--out", out).code == 0
    refused(*words, "--out", out, says=f"{out} already exists; choose another --out or pass --overwrite\n")
    words[-1] = {"cut": "4x6", "fracture": "3"}[verb]
    assert command(*words, "--out", out, "--overwrite").code == 0
    assert len(read_puzzle(out)) == {"cut": 24, "fracture": 3}[verb]
    line = f"diffassemble: {out}: cannot be written (File too large)\n"
    refused(*words, "--seed", "1", "--out", out, "--overwrite", largest_file=500, says=line)
    for path, says in ((photo.parent, "holds other files (photo.png)"), (photo, "is a file; choose another --out")):
        refused(*words, "--out", path, "--overwrite", says=says)


BAD_CUTS = [
    ("none.png", "--grid 6x6", "none.png: cannot be read (No such file or directory)"),
    ("empty.png", "--grid 6x6", "empty.png: is empty (0 bytes)"),
    ("text.jpg", "--grid 6x6", "text.jpg: is not a picture"),
    ("short.png", "--grid 6x6", "short.png: the picture is broken or cut short"),
    ("flat.png", "--grid 6x6", "flat.png: every piece is one flat colour"),
    ("bomb.png", "--grid 6x6", "bomb.png: has more than 178 megapixels"),
    ("twins.png", "--grid 1x4", "are identical"),
    ("photo.png", "--grid 20x20", "photo.png: a 60x40 picture cut 20x20 leaves pieces of under 4 pixels"),
    ("photo.png", "--grid 6y6", "grid '6y6' is not understood"),
    ("photo.png", "--grid 1x1", "needs at least 2"),
    ("photo.png", "--grid 4x6 --erode 4", "less erosion"),
    ("photo.png", "--grid 4x6 --size 99999", "--size 99999: must be"),
    ("photo.png", "--grid 4x6 --unknown", "see diffassemble cut --help"),
    ("photo.png", "--shape tabs", "--shape tabs takes --pieces N"),
    ("photo.png", "--shape torn --pieces 9 --grid 3x3", "neither --grid"),
    ("photo.png", "--pieces 9", "--pieces is for other shapes than squares"),
    ("photo.png", "--shape strips --pieces 60", "photo.png: a 60x40 picture cut into 60"),
    ("photo.png", "", "pass --grid, such as --grid 6x6"),
]


def test_bad_pictures(refused: Refused, photo: Path, bomb: bytes, tmp_path: Path) -> None:
    folder = photo.parent
    (folder / "empty.png").touch()
    (folder / "text.jpg").write_text("this is not a picture " * 20)
    (folder / "short.png").write_bytes(photo.read_bytes()[:900])
    Image.new("RGB", (60, 60), "teal").save(folder / "flat.png")
    (folder / "bomb.png").write_bytes(bomb)
    tile = torch.rand(3, 10, 10)
    write_picture(torch.cat([tile, torch.rand(3, 10, 20), tile], -1), folder / "twins.png")
    for name, words, says in BAD_CUTS:
        refused("cut", folder / name, *words.split(), "--out", tmp_path / "new" / "out", says=says)


def test_bad_solids(refused: Refused, box: Path, tmp_path: Path) -> None:
    (tmp_path / "text.ply").write_text("no mesh at all")
    whole = trimesh.load(box)
    whole.update_faces([False] + [True] * 11)
    whole.export(tmp_path / "open.ply")
    for name, words, says in (
        ("none.ply", "", "none.ply: cannot be read"),
        ("anvil", "", "is neither a mesh file nor the name of a solid"),
        ("open.ply", "", "open.ply: not watertight; close its holes"),
        ("text.ply", "", "text.ply: is no PLY file"),
        ("Kiste ä.ply", "--pieces 1", "--pieces 1: must be 2 or more and at most 200"),
        ("Kiste ä.ply", "--missing 1", "--missing 1: must be"),
        ("Kiste ä.ply", "--chips 2", "--chips 2: must be"),
    ):
        refused("fracture", tmp_path / name, *words.split(), "--out", tmp_path / "out", says=says)


def test_without_rights(refused: Refused, photo: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    line = f"diffassemble: {locked / 'out'}: cannot be written (Permission denied)\n"
    refused("cut", photo, "--grid", "2x3", "--out", locked / "out", rights=False, says=line)
    photo.chmod(0)
    line = f"diffassemble: {photo}: cannot be read (Permission denied)\n"
    refused("cut", photo, "--grid", "2x3", "--out", tmp_path / "out", rights=False, says=line)
