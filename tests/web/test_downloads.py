"""Downloads are what the command line writes, and each renders only what it gives."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import skimage.data
import torch

from diffassemble.core import Assembly, Board, Mesh
from diffassemble.core.kind import Drawing
from diffassemble.files.assemblies import assembly_bytes
from diffassemble.fragments.breaking import scatter
from diffassemble.kinds import kind_of
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
    ("wanted", "assembly", "name", "magic", "rendered"),
    [
        (DOCUMENT, picture(), "assembly.json", b"{", []),
        (DOCUMENT, broken(), "assembly.json", b"{", []),
        (ANIMATION, picture(), "steps.gif", b"GIF8", ["animation"]),
        (WHOLE, picture(), "assembled.png", b"\x89PNG", ["assembly"]),
        (WHOLE, broken(), "assembled.glb", b"glTF", []),
    ],
)
def test_each_download_renders_only_what_it_gives(
    wanted: str,
    assembly: Assembly,
    name: str,
    magic: bytes,
    rendered: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind, calls = kind_of(assembly.puzzle), []

    def recorded(field: str) -> Callable[..., Any]:
        return lambda *given: calls.append(field) or getattr(kind.drawing(), field)(*given)

    drawing = Drawing(*map(recorded, Drawing._fields))
    monkeypatch.setattr(downloads, "kind_of", lambda _: replace(kind, drawing=lambda: drawing))
    monkeypatch.delattr(downloads, "report_html")
    told, content = download(assembly, wanted, tmp_path)
    assert told == name
    assert content.startswith(magic)
    assert calls == rendered
