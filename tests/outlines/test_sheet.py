"""Pieces on a sheet of paper, photographed aslant: the sheet's corners undo the perspective and tell the scale."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from diffassemble.assembly.answer import assemble
from diffassemble.assembly.scoring import right_outlines
from diffassemble.core import InputError, Puzzle
from diffassemble.io.photo.outlines import read_photos
from diffassemble.io.photo.sheet import FORMATS, find_corners, paper_size, sheet_to_photo, straighten
from diffassemble.io.pictures import read_picture, write_picture
from diffassemble.outlines.grow import GrowSolver

Lay = Callable[..., Image.Image]
PAPER, TABLE = (108, 160, 214), (70, 52, 40)
# Where the corners of the sheet lie in the photograph, of its width and height.
ASLANT = ((0.14, 0.10), (0.88, 0.07), (0.93, 0.91), (0.06, 0.94))
NEARER = ((0.06, 0.05), (0.95, 0.08), (0.92, 0.95), (0.09, 0.92))


def photographed(
    jigsaw: Puzzle,
    lay: Lay,
    folder: Path,
    name: str,
    corners: tuple[tuple[float, float], ...] = ASLANT,
    wide: int = 1500,
) -> tuple[Path, np.ndarray]:
    """A photograph of all pieces on a sheet of A4, and where its corners are."""
    pieces = lay(jigsaw, PAPER, columns=4, dimmed=0.0)
    scale = 1.06 * max(pieces.width / 210, pieces.height / 297)
    sheet = Image.new("RGB", (round(210 * scale), round(297 * scale)), PAPER)
    sheet.paste(pieces, ((sheet.width - pieces.width) // 2, (sheet.height - pieces.height) // 2))
    tall = round(wide * 1.3)
    there = np.array(corners) * (wide, tall)
    back = np.linalg.inv(sheet_to_photo(there, (float(sheet.width), float(sheet.height))).params)
    y, x = np.mgrid[:tall, :wide] + 0.5
    u, v, w = np.einsum("ij,jhw->ihw", back, np.stack([x, y, np.ones_like(x)]))
    places = np.stack([u / w, v / w], -1)
    inside = ((places > 0) & (places < (sheet.width, sheet.height))).all(-1)
    grid = torch.from_numpy(2 * places / (sheet.width, sheet.height) - 1).float()
    content = torch.from_numpy(np.asarray(sheet, np.float32) / 255).movedim(-1, 0)
    seen = F.grid_sample(content[None], grid[None], "bilinear", "border", align_corners=False)[0]
    table = torch.tensor(TABLE).float()[:, None, None] / 255
    picture = torch.where(torch.from_numpy(inside), seen, table)
    noise = torch.randn(picture.shape, generator=torch.Generator().manual_seed(0)) * 0.004
    write_picture((picture + noise).clamp(0, 1), folder / name)
    return folder / name, there


def test_the_corners_are_found_to_a_pixel(jigsaw: Puzzle, lay: Lay, tmp_path: Path) -> None:
    path, corners = photographed(jigsaw, lay, tmp_path, "a.png")
    found = find_corners(read_picture(path))
    assert found is not None
    assert np.abs(found - corners).max() < 2.5


def test_pieces_seen_aslant_are_as_large_as_from_above(jigsaw: Puzzle, lay: Lay, tmp_path: Path) -> None:
    path, _ = photographed(jigsaw, lay, tmp_path, "a.png")
    told: list[str] = []
    puzzle, _ = read_photos([path], say=told.append)
    assert isinstance(puzzle, Puzzle)
    assert len(puzzle) == len(jigsaw)
    share = puzzle.outlines.areas / jigsaw.outlines.areas
    assert float(share.std() / share.mean()) < 0.02
    assert len(told) == 1
    assert "1 photo straightened by the corners of a sheet of 210 × 297 mm" in told[0]
    askew, _ = read_photos([path], sheet="none")
    assert isinstance(askew, InputError)


def test_two_photos_at_other_scales_come_to_one(jigsaw: Puzzle, lay: Lay, tmp_path: Path) -> None:
    half = torch.arange(20) < 10
    one, _ = photographed(jigsaw.reordered(half.nonzero().flatten()), lay, tmp_path, "a.png", ASLANT, 1400)
    two, _ = photographed(jigsaw.reordered((~half).nonzero().flatten()), lay, tmp_path, "b.png", NEARER, 1000)
    puzzle, _ = read_photos([one, two], sheet="a4")
    assert isinstance(puzzle, Puzzle)
    share = puzzle.outlines.areas / jigsaw.outlines.areas
    assert float(share.std() / share.mean()) < 0.03
    assembly = assemble(replace(puzzle, truth=jigsaw.truth), GrowSolver())
    assert assembly.puzzle.truth is not None
    # The truth is in the pixels of the pieces as they were cut, before they were laid on paper.
    scale = float(share.mean().sqrt())
    there = replace(assembly.puzzle.truth, translation=assembly.puzzle.truth.translation * scale)
    assert bool(right_outlines(puzzle.outlines, assembly.poses, there).all())


def test_a_sheet_that_is_not_there_is_missed(lay: Lay, jigsaw: Puzzle, tmp_path: Path) -> None:
    lay(jigsaw).save(tmp_path / "plain.png")
    with pytest.raises(InputError, match=r"plain\.png: shows no sheet of paper with all four corners in view"):
        read_photos([tmp_path / "plain.png"], sheet="a4")
    path, _ = photographed(jigsaw, lay, tmp_path, "a.png")
    both = Image.open(path).resize(Image.open(tmp_path / "plain.png").size)
    lay(jigsaw).resize((900, 900)).save(tmp_path / "plain.png")
    both.resize((900, 1170)).save(path)
    with pytest.raises(InputError, match=r"plain\.png: shows no sheet of paper, though other photos do"):
        read_photos([path, tmp_path / "plain.png"])


@pytest.mark.parametrize("name", ["b7", "0x0", "210", "5x9"])
def test_formats_are_checked(name: str) -> None:
    with pytest.raises(InputError, match="--sheet"):
        paper_size(name)


def test_a_sheet_lies_as_it_lies() -> None:
    flat = np.array([[0.0, 0], [297, 0], [297, 210], [0, 210]]) * 4
    found = straighten(flat, "auto")
    assert found is not None
    assert found.size == FORMATS["a4"][::-1]
    assert found.scale == pytest.approx(4)
    assert straighten(flat * (1.4, 1), "auto") is None
    custom = straighten(flat, "420x594")
    assert custom is not None
    assert custom.scale == pytest.approx(2)


def test_the_command_says_so(jigsaw: Puzzle, lay: Lay, tmp_path: Path) -> None:
    photographed(jigsaw, lay, tmp_path, "a.png")
    command = [sys.executable, "-m", "diffassemble", "cut", "a.png", "--from-photo", "--sheet", "a4", "--out", "puzzle"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "1 photo straightened by the corners of a sheet of 210 × 297 mm: " in done.stdout
    assert "wrote 20 pieces" in done.stdout
