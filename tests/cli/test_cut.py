"""`diffassemble cut` writes what it says, or says in one line why not and leaves everything as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from diffassemble.core import Board
from diffassemble.io.pictures import write_picture
from diffassemble.io.puzzles import read_puzzle

Command = Callable[..., Any]
Refused = Callable[..., None]
Tree = Callable[..., dict[Path, bytes | None]]


def test_cut_and_read_back(command: Command, photo: Path, tmp_path: Path) -> None:
    done = command("cut", photo, "--grid", "4x6", "--out", tmp_path / "out")
    assert done.code == 0
    assert done.err == ""
    assert f"wrote 24 pieces of 10x10 pixels, grid 4x6, to {tmp_path / 'out'}" in done.out
    assert f"diffassemble solve {tmp_path / 'out'}" in done.out
    puzzle = read_puzzle(tmp_path / "out")
    assert puzzle.board == Board(4, 6)
    assert puzzle.truth is not None


def test_options(command: Command, photo: Path, tmp_path: Path, tree: Tree) -> None:
    words = ["--grid", "4", "--size", "16", "--missing", "0.25", "--erode", "2", "--seed", "5", "--no-rotate"]
    assert command("cut", photo, *words, "--out", tmp_path / "a").code == 0
    puzzle = read_puzzle(tmp_path / "a")
    assert puzzle.pieces.pixels.shape == (12, 3, 12, 12)
    assert puzzle.truth is not None
    assert not puzzle.board.snap(puzzle.truth)[1].any()
    assert command("cut", photo, *words, "--out", tmp_path / "b").code == 0
    assert list(tree(tmp_path / "a").values()) == list(tree(tmp_path / "b").values())


@pytest.mark.parametrize("shape", ["tabs", "torn", "shards", "strips"])
def test_shapes(command: Command, photo: Path, tmp_path: Path, shape: str) -> None:
    words = ["--shape", shape, "--pieces", "6", "--size", "20", "--seed", "3"]
    done = command("cut", photo, *words, "--missing", "0.3", "--erode", "1", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    assert "wrote 4 pieces of about" in done.out
    puzzle = read_puzzle(tmp_path / "out")
    assert (puzzle.kind, len(puzzle)) == ("outlines", 4)
    assert puzzle.truth is not None
    assert (tmp_path / "out" / "truth.json").exists()
    assert "degrees" not in (tmp_path / "out" / "puzzle.json").read_text()


def test_shapes_take_no_grid(refused: Refused, photo: Path, tmp_path: Path) -> None:
    out = ["--out", tmp_path / "out"]
    refused("cut", photo, "--shape", "tabs", *out, says="--shape tabs takes --pieces N")
    refused("cut", photo, "--shape", "torn", "--pieces", "9", "--grid", "3x3", *out, says="neither --grid")
    refused("cut", photo, "--pieces", "9", *out, says="--pieces is for other shapes than squares")
    refused("cut", photo, "--shape", "tabs", "--pieces", "1", *out, says="1 pieces make no puzzle")
    refused("cut", photo, "--shape", "strips", "--pieces", "60", *out, says="photo.png: a 60x40 picture cut into 60")


def test_what_is_cut_away_is_told(command: Command, photo: Path, tmp_path: Path) -> None:
    done = command("cut", photo, "--grid", "2x2", "--out", tmp_path / "square")
    assert "cut to 40 × 40 of 60 × 40 pixels, so that pieces are square; --fit keeps all\n" in done.out
    assert "of 60 × 40" not in command("cut", photo, "--grid", "2x3", "--out", tmp_path / "fits").out
    done = command("cut", photo, "--grid", "2x2", "--fit", "--out", tmp_path / "all")
    assert "cut to" not in done.out
    assert "4 pieces of 30x20 pixels" in done.out


def test_overwrite(command: Command, refused: Refused, photo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("cut", photo, "--grid", "2x3", "--out", out).code == 0
    refused(
        *("cut", photo, "--grid", "4x6", "--out", out),
        says=f"diffassemble: {out} already exists; choose another --out or pass --overwrite\n",
    )
    assert command("cut", photo, "--grid", "4x6", "--out", out, "--overwrite").code == 0
    assert read_puzzle(out).board == Board(4, 6)


def make_bad_pictures(folder: Path, photo: Path, bomb: bytes) -> None:
    """One file of every kind that cannot be cut."""
    (folder / "empty.png").touch()
    (folder / "text.jpg").write_text("this is not a picture " * 20)
    (folder / "short.png").write_bytes(photo.read_bytes()[:900])
    Image.new("RGB", (1, 1)).save(folder / "dot.png")
    Image.new("RGB", (60, 60), "teal").save(folder / "flat.png")
    (folder / "bomb.png").write_bytes(bomb)
    tile = torch.rand(3, 10, 10)
    write_picture(torch.cat([tile, torch.rand(3, 10, 20), tile], -1), folder / "twins.png")


@pytest.mark.parametrize(
    ("name", "grid", "says"),
    [
        ("none.png", "6x6", "none.png: cannot be read (No such file or directory)"),
        ("", "6x6", "is not a file; give a picture"),
        ("empty.png", "6x6", "empty.png: is empty (0 bytes)"),
        ("text.jpg", "6x6", "text.jpg: is not a picture"),
        ("short.png", "6x6", "short.png: the picture is broken or cut short"),
        ("dot.png", "6x6", "dot.png: a 1x1 picture"),
        ("flat.png", "6x6", "flat.png: every piece is one flat colour"),
        ("bomb.png", "6x6", "bomb.png: has more than 178 megapixels"),
        ("twins.png", "1x4", "are identical"),
        ("photo.png", "20x20", "photo.png: a 60x40 picture cut 20x20 leaves pieces of under 4 pixels"),
        ("photo.png", "6y6", "grid '6y6' is not understood"),
        ("photo.png", "0x6", "grid '0x6' is not understood"),
        ("photo.png", "1x1", "needs at least 2"),
        ("photo.png", "4x6 --missing 1.5", "--missing 1.5: must be"),
        ("photo.png", "4x6 --erode 4", "less erosion"),
        ("photo.png", "4x6 --size 99999", "--size 99999: must be"),
        ("photo.png", "4x6 --seed -1", "--seed -1: must be"),
    ],
)
def test_bad_input(refused: Refused, photo: Path, bomb: bytes, tmp_path: Path, name: str, grid: str, says: str) -> None:
    make_bad_pictures(photo.parent, photo, bomb)
    refused("cut", photo.parent / name, "--grid", *grid.split(), "--out", tmp_path / "new" / "out", says=says)


def test_without_rights(refused: Refused, photo: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    line = f"diffassemble: {locked / 'out'}: cannot be written (Permission denied)\n"
    refused("cut", photo, "--grid", "2x3", "--out", locked / "out", rights=False, says=line)
    photo.chmod(0)
    line = f"diffassemble: {photo}: cannot be read (Permission denied)\n"
    refused("cut", photo, "--grid", "2x3", "--out", tmp_path / "out", rights=False, says=line)


@pytest.mark.parametrize("overwrite", [True, False])
def test_full_disk(command: Command, refused: Refused, photo: Path, tmp_path: Path, overwrite: bool) -> None:
    out = tmp_path / "out"
    if overwrite:
        assert command("cut", photo, "--grid", "2x3", "--out", out).code == 0
    line = f"diffassemble: {out}: cannot be written (File too large)\n"
    refused("cut", photo, "--grid", "2x3", "--seed", "1", "--out", out, "--overwrite", largest_file=500, says=line)


def test_out_of_other_people_is_never_replaced(refused: Refused, photo: Path) -> None:
    for out, words in ((photo.parent, "holds other files (photo.png)"), (photo, "is a file; choose another --out")):
        refused("cut", photo, "--grid", "2x3", "--out", out, "--overwrite", says=words)


def test_wrong_options(command: Command, photo: Path, tmp_path: Path) -> None:
    assert command("cut", photo, "--grid", "2x3").code == 2
    assert command("cut", photo, "--grid", "2x3", "--out", tmp_path / "out", "--unknown").code == 2
    assert not (tmp_path / "out").exists()


def test_as_users_start_it(photo: Path, tmp_path: Path) -> None:
    words = ["cut", str(photo), "--grid", "4x6", "--out", str(tmp_path / "out dir")]
    done = subprocess.run([sys.executable, "-m", "diffassemble", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out dir").exists()
    assert f"diffassemble solve '{tmp_path / 'out dir'}'" in done.stdout
