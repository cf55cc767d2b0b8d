"""The whole way of real pieces: photographed, found, put together, told; by the program, as people call it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

from diffassemble.assembly.answer import Answer, assemble
from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import Puzzle
from diffassemble.io.assemblies import assembly_bytes, read_assembly
from diffassemble.io.photo.outlines import read_photos
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.grow import GrowSolver

Lay = Callable[..., Image.Image]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "diffassemble", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def found_in(*photos: Image.Image, folder: Path) -> Puzzle:
    paths = [folder / f"photo_{number}.bmp" for number in range(len(photos))]
    for path, photo in zip(paths, photos, strict=True):
        photo.save(path)
    found, _ = read_photos(paths)
    assert isinstance(found, Puzzle)
    return found


def check_cells(assembly: Answer) -> None:
    """Rows run down and columns to the right where the pieces stand, each cell is taken once."""
    assert assembly.cells is not None
    for cells, places in zip(assembly.cells.T.float(), assembly.poses.translation.T.flip(0), strict=True):
        pitch = (places.max() - places.min()) / cells.max()
        assert ((places - places.min()) / pitch - cells).abs().max() < 0.4
    assert len({tuple(cell) for cell in assembly.cells.tolist()}) == len(assembly.puzzle)


def test_rows_and_columns_are_told_and_turn_with_the_whole(jigsaw: Puzzle) -> None:
    assembly = assemble(jigsaw, GrowSolver())
    assert assembly.grids in ({0: (4, 5)}, {0: (5, 4)})
    for degrees in (0, 90, 180, 270):
        turned = assembly.turned(degrees)
        check_cells(turned)
        again = turned.turned(360 - degrees)
        assert again.cells is not None
        assert torch.equal(again.cells, assembly.cells)


def test_rows_and_columns_are_written_and_read_back(jigsaw: Puzzle, tmp_path: Path) -> None:
    assembly = assemble(jigsaw.reordered(torch.arange(18)), GrowSolver())
    document = tmp_path / "assembly.json"
    document.write_bytes(assembly_bytes(assembly))
    told = json.loads(document.read_bytes())
    assert sorted((told["rows"], told["cols"])) == [4, 5]
    back = read_assembly(document, assembly.puzzle)
    assert back.cells is not None
    assert torch.equal(back.cells, assembly.cells)
    assert assembly_bytes(back) == document.read_bytes()
    assert {(piece["row"], piece["col"]) for piece in told["pieces"]} == {tuple(cell) for cell in back.cells.tolist()}


def test_pieces_left_out_have_no_row(jigsaw: Puzzle) -> None:
    other = cut_shapes(torch.rand(3, 90, 120), "tabs", 12, torch.Generator().manual_seed(4), size=60)
    pieces = replace(
        jigsaw.outlines,
        textures=jigsaw.outlines.textures + other.outlines.textures[:1],
        contours=jigsaw.outlines.contours + other.outlines.contours[:1],
        origins=torch.cat([jigsaw.outlines.origins, other.outlines.origins[:1]]),
    )
    assembly = assemble(Puzzle(pieces, None, (*jigsaw.names, "odd.png")), GrowSolver())
    last = json.loads(assembly_bytes(assembly))["pieces"][-1]
    assert (last["object"], last["row"], last["col"]) == (None, None, None)


@pytest.mark.parametrize("row", ["1", 1.5, -1, True])
def test_a_row_that_is_none_is_refused(jigsaw: Puzzle, tmp_path: Path, row: object) -> None:
    from diffassemble.core import InputError

    assembly = assemble(jigsaw, GrowSolver())
    told = json.loads(assembly_bytes(assembly))
    told["pieces"][0]["row"] = row
    (tmp_path / "assembly.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="'row' and 'col' must both be"):
        read_assembly(tmp_path / "assembly.json", jigsaw)


@pytest.mark.parametrize("size", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_pieces_of_any_size_are_found_and_put_together(size: int, lay: Lay, tmp_path: Path) -> None:
    picture = torch.from_numpy(data.coffee()).movedim(-1, 0).float() / 255
    puzzle = cut_shapes(picture, "tabs", 12 if size < 1000 else 4, torch.Generator().manual_seed(3), size=size)
    singly = [lay(puzzle.reordered(torch.tensor([piece]))) for piece in range(len(puzzle))] if size > 1000 else []
    found = found_in(*(singly or [lay(puzzle)]), folder=tmp_path)
    assembly = assemble(replace(found, truth=puzzle.truth), GrowSolver())
    assert assembly.puzzle.truth is not None
    assert bool(right_outlines(found.outlines, assembly.poses, assembly.puzzle.truth).all())
    assert sorted(assembly.grids[0]) == ([3, 4] if size < 1000 else [2, 2])


def test_the_command_tells_rows_and_columns(jigsaw: Puzzle, lay: Lay, tmp_path: Path) -> None:
    lay(jigsaw).save(tmp_path / "pieces.png")
    told = run("solve", "pieces.png", "--no-pictures", "--out", "answer", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "grid found: 4 rows × 5 columns" in told.stdout or "grid found: 5 rows × 4 columns" in told.stdout
    assert np.asarray(Image.open(tmp_path / "answer-found.png")).shape[0] > 200
