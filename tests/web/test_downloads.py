"""Downloads are what the command line writes, and each renders only what it gives."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
import skimage.data
import torch

from diffassemble.core import Assembly, Board, Mesh
from diffassemble.files.assemblies import assembly_bytes
from diffassemble.fragments.breaking import scatter
from diffassemble.squares.cut import cut_picture
from diffassemble.web import downloads
from diffassemble.web.downloads import ANIMATION, DOCUMENT, WHOLE, ZIP, download


def picture() -> Assembly:
    whole = torch.from_numpy(skimage.data.coffee()).movedim(-1, 0).float() / 255
    puzzle = cut_picture(whole, Board(2, 2), torch.Generator().manual_seed(0), size=16)
    return Assembly(puzzle, puzzle.truth, torch.ones(4), (), "x", 1.0)


def broken() -> Assembly:
    corners = torch.rand(30, 3, generator=torch.Generator().manual_seed(0))
    mesh = Mesh(corners, torch.arange(30).reshape(10, 3))
    puzzle = scatter([mesh, mesh], torch.Generator().manual_seed(0), points=50)
    return Assembly(puzzle, puzzle.truth, torch.ones(2), (), "x", 1.0, objects=(0, -1))


def test_everything_in_one_zip(tmp_path: Path) -> None:
    assembly = picture()
    name, content = download(assembly, ZIP, tmp_path)
    assert name == "assembly.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["assembled.png", "assembly.json", "report.html", "steps.gif"]
        assert archive.read("assembly.json") == assembly_bytes(assembly)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("wanted", "assembly", "name", "magic", "needed"),
    [
        (DOCUMENT, picture(), "assembly.json", b"{", ()),
        (DOCUMENT, broken(), "assembly.json", b"{", ()),
        (ANIMATION, picture(), "steps.gif", b"GIF8", ("animate", "encode_gif")),
        (WHOLE, picture(), "assembled.png", b"\x89PNG", ("draw_assembly",)),
        (WHOLE, broken(), "assembled.glb", b"glTF", ("object_contents",)),
    ],
)
def test_each_download_renders_only_what_it_gives(
    wanted: str,
    assembly: Assembly,
    name: str,
    magic: bytes,
    needed: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rendering = {"animate", "encode_gif", "draw_assembly", "object_contents", "report_html", "write_assembly"}
    for unneeded in rendering.difference(needed):
        monkeypatch.delattr(downloads, unneeded)
    told, content = download(assembly, wanted, tmp_path)
    assert told == name
    assert content.startswith(magic)
