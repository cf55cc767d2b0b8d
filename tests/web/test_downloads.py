"""Downloads are what the command line writes, and each renders only what it gives."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.core import Assembly, Mesh, Puzzle
from diffassemble.core.kind import Drawing
from diffassemble.files.assemblies import assembly_bytes
from diffassemble.fragments.breaking import scatter
from diffassemble.kinds import kind_of
from diffassemble.rendering import report
from diffassemble.web.transfers import ANIMATION, DOCUMENT, WHOLE, ZIP, download


@pytest.fixture
def picture(cut: Callable[..., Puzzle]) -> Assembly:
    puzzle = cut(2, 2)
    return Assembly(puzzle, puzzle.truth, torch.ones(4), (), "x", 1.0)


@pytest.fixture
def broken() -> Assembly:
    corners = torch.rand(30, 3, generator=torch.Generator().manual_seed(0))
    mesh = Mesh(corners, torch.arange(30).reshape(10, 3))
    puzzle = scatter([mesh, mesh], torch.Generator().manual_seed(0), points=50)
    return Assembly(puzzle, puzzle.truth, torch.ones(2), (), "x", 1.0, objects=(0, -1))


@pytest.mark.parametrize(
    ("wanted", "given", "name", "magic", "rendered"),
    [
        (DOCUMENT, "picture", "assembly.json", b"{", []),
        (DOCUMENT, "broken", "assembly.json", b"{", []),
        (ANIMATION, "picture", "steps.gif", b"GIF8", ["animation"]),
        (WHOLE, "picture", "assembled.png", b"\x89PNG", ["assembly"]),
        (WHOLE, "broken", "assembled.glb", b"glTF", []),
        (ZIP, "picture", "assembly.zip", b"PK", ["animation", "assembly", "before_after", "confidence"]),
    ],
)
def test_each_download_renders_only_what_it_gives(
    wanted: str,
    given: str,
    name: str,
    magic: bytes,
    rendered: list[str],
    tmp_path: Path,
    request: Any,
    monkeypatch: Any,
) -> None:
    assembly = request.getfixturevalue(given)
    kind, calls = kind_of(assembly.puzzle), []

    def recorded(field: str) -> Callable[..., Any]:
        return lambda *given: calls.append(field) or getattr(kind.drawing(), field)(*given)

    drawing = Drawing(*map(recorded, Drawing._fields))
    monkeypatch.setattr(report, "kind_of", lambda _: replace(kind, drawing=lambda: drawing))
    told, content = download(assembly, wanted, tmp_path)
    assert told == name
    assert content.startswith(magic)
    assert sorted(calls) == rendered
    if wanted == ZIP:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            assert archive.namelist() == ["assembled.png", "assembly.json", "report.html", "steps.gif"]
            assert archive.read("assembly.json") == assembly_bytes(assembly)
        assert not list(tmp_path.iterdir())
