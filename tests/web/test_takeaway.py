"""What is taken home is what the command line writes, in one zip file."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import skimage.data
import torch

from diffassemble.core import Assembly, Board
from diffassemble.files.assemblies import assembly_bytes
from diffassemble.squares.cut import cut_picture
from diffassemble.web.session import result_zip


def test_everything_in_one_zip(tmp_path: Path) -> None:
    picture = torch.from_numpy(skimage.data.coffee()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(picture, Board(2, 2), torch.Generator().manual_seed(0), size=16)
    assembly = Assembly(puzzle, puzzle.truth, torch.ones(4), (), "x", 1.0)
    with zipfile.ZipFile(io.BytesIO(result_zip(assembly, tmp_path))) as archive:
        assert archive.namelist() == ["assembled.png", "assembly.json", "report.html", "steps.gif"]
        assert archive.read("assembly.json") == assembly_bytes(assembly)
    assert not list(tmp_path.iterdir())
