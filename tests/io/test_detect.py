"""What a file or folder holds is decided in one place, for the command line, Python and the page alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.data
import torch
from PIL import Image, ImageDraw

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.kind import OpenOptions
from diffassemble.core import Board, InputError
from diffassemble.core.placements import Placements
from diffassemble.evaluation.outlines import read_recorded
from diffassemble.fragments.shapes import fracture_file
from diffassemble.io.assemblies import write_assembly
from diffassemble.io.detect import detect
from diffassemble.io.puzzles import open_input, read_puzzle, write_puzzle
from diffassemble.squares.cut import cut_image
from diffassemble.web import transfers as uploads

SIZE, BOARD = 540, Board(3, 3)


def laid(pieces: list[Image.Image], ground: tuple[int, int, int] = (250, 250, 250)) -> Image.Image:
    """Pieces that lie apart on a plain background, nine to a photograph, at angles of their own."""
    scene, random = Image.new("RGB", (SIZE, SIZE), ground), np.random.default_rng(16)
    for index, piece in enumerate(pieces):
        turned = piece.convert("RGBA").rotate(float(random.uniform(-30, 30)), Image.Resampling.BICUBIC, expand=True)
        middle = 180 * (index % 3) + 90, 180 * (index // 3) + 90
        scene.paste(turned, (middle[0] - turned.width // 2, middle[1] - turned.height // 2), turned)
    return scene


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one input of every form."""
    home = tmp_path_factory.mktemp("inputs")
    Image.fromarray(skimage.data.astronaut()).save(home / "astronaut.png")
    write_puzzle(puzzle := cut_image(str(home / "astronaut.png"), 3, 3, 16, 100), home / "puzzle")
    squares = [Image.open(path) for path in sorted((home / "puzzle" / "pieces").iterdir())]
    laid(squares).save(home / "squares.png")
    triangles = []
    for number in range(9):
        triangles.append(Image.new("RGBA", (90, 90)))
        ImageDraw.Draw(triangles[-1]).polygon([(0, 0), (80, 5 * number), (40, 85)], fill=(200, 20 * number, 40))
    for folder, ground in (("silhouettes", (255, 255, 255)), ("colour", (90, 140, 90))):
        (home / "scans" / folder).mkdir(parents=True)
        laid(triangles, ground).save(home / "scans" / folder / "sheet.png")
    (home / "coloured" / "colour").mkdir(parents=True)
    laid(triangles, (90, 140, 90)).save(home / "coloured" / "colour" / "sheet.png")
    laid(triangles).save(home / "triangles.png")
    (home / "one photo").mkdir()
    laid(squares).save(home / "one photo" / "squares.png")
    (home / "cut-outs").mkdir()
    for number, triangle in enumerate(triangles[:3]):
        triangle.save(home / "cut-outs" / f"{number}.png")
    write_puzzle(fracture_file("cookie", 3, 0), home / "broken")
    poses = puzzle.board.poses(torch.arange(9), torch.zeros(9).long())
    write_assembly(Answer(puzzle, Placements(poses, torch.ones(9))), home / "solved")
    return home


FORMS = {
    "squares": ("squares.png", "photograph of squares", "squares", {}),
    "squares in a folder": ("one photo", "photograph of squares", "squares", {}),
    "squares on a grid": ("squares.png", "photograph of squares", "squares", {"board": BOARD, "photographed": True}),
    "squares taken for outlines": ("squares.png", "photographs", "outlines", {"kind": "outlines"}),
    "shuffled": ("squares.png", "shuffled grid", "squares", {"board": BOARD}),
    "outlines": ("triangles.png", "photographs", "outlines", {}),
    "silhouettes and colours": ("scans", "photographs", "outlines", {}),
    "colours alone": ("coloured", "photographs", "outlines", {}),
    "cut-outs": ("cut-outs", "cut-outs", "outlines", {}),
    "puzzle of squares": ("puzzle", "puzzle folder", "squares", {}),
    "pieces": ("puzzle/pieces", "equal pictures", "squares", {}),
    "puzzle of fragments": ("broken", "puzzle folder", "fragments", {}),
    "fragments": ("broken/pieces", "meshes", "fragments", {}),
    "assembly": ("solved", "assembly", "squares", {}),
}


@pytest.mark.parametrize("case", FORMS)
def test_forms_are_recognised(case: str, home: Path) -> None:
    name, form, kind, asked = FORMS[case]
    found = detect(home / name, OpenOptions(**asked))
    assert (found.form, found.kind) == (form, kind)
    assert all(file.exists() for file in (*found.files, *found.beside))
    assert len(found.beside) == (name == "scans")


def test_an_assembly_is_no_input(home: Path) -> None:
    with pytest.raises(InputError, match="solved: is an assembly, not pieces"):
        open_input(home / "solved")


def test_squares_in_a_photograph_are_read_the_same_everywhere(home: Path, command: Callable[..., Any]) -> None:
    assert command("cut", home / "squares.png", "--from-photo", "--grid", "3x3", "--out", home / "cut").code == 0
    sent: dict[str, object] = {}
    (home / "sent").mkdir()
    (home / "squares.png").rename(home / "sent" / "squares.png")
    uploads.read(sent.__setitem__, home / "sent", uploads.Order(uploads.SQUARES, BOARD))
    (home / "sent" / "squares.png").rename(home / "squares.png")
    read = open_input(home / "squares.png", BOARD, photographed=True), sent["puzzle"], read_puzzle(home / "cut")
    assert [puzzle.kind for puzzle in read] == ["squares"] * 3
    assert all(torch.equal(puzzle.pixels, read[0].pixels) for puzzle in read)


def test_loose_squares_are_solved(home: Path, command: Callable[..., Any]) -> None:
    outcome = command("solve", home / "squares.png", "--solver", "gallagher", "--no-pictures", "--out", home / "a")
    assert outcome.code == 0, outcome.err
    assert "grid not given: 3x3" in outcome.out
    assert "placed 9 pieces" in outcome.out


def test_an_answer_without_joins_is_no_success(home: Path, command: Callable[..., Any]) -> None:
    outcome = command("solve", home / "triangles.png", "--no-pictures", "--out", home / "b")
    assert outcome.code == 1
    assert "no two of the 9 pieces of any outline were joined" in outcome.err
    assert (home / "b" / "assembly.json").exists()


def test_what_is_solved_is_evaluated(home: Path) -> None:
    rows = [f"piece_{row * 3 + column:03d},{column},{row},0" for row, column in np.ndindex(3, 3)]
    (home / "coloured" / "truth.csv").write_text("\n".join(["id,x,y,degrees", *rows]))
    puzzle, layout = read_recorded(home / "coloured")
    assert (len(puzzle), layout) == (9, "free")
