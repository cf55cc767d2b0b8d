"""Folders of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.squares.pictures import picture_paths


def test_pictures_are_found_at_any_depth_and_sorted(tmp_path: Path) -> None:
    for name in ("b.JPG", "a.png", "deep/er/c.webp", "notes.txt", ".hidden.png", "deep/d.tiff"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    (tmp_path / "folder.png").mkdir()
    found = [path.relative_to(tmp_path).as_posix() for path in picture_paths(tmp_path)]
    assert found == ["a.png", "b.JPG", "deep/d.tiff", "deep/er/c.webp"]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere does not exist; pass"):
        picture_paths(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"holds no pictures; pass .*\.png"):
        picture_paths(tmp_path)
    (tmp_path / "one.png").write_bytes(b"")
    with pytest.raises(InputError, match="is not a folder"):
        picture_paths(tmp_path / "one.png")
