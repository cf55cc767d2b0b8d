"""Folders of broken objects are told from folders of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from diffassemble.fragments.datasets import holds_fractures


@pytest.mark.parametrize(
    ("files", "broken"),
    [
        (["everyday/Bottle/a.npz"], True),
        (["val_objects.txt"], True),
        (["data_split/everyday.val.txt"], True),
        (["everyday/Bottle/a/fractured_0/piece_0.obj"], True),
        (["piece_0.obj", "piece_1.obj"], True),
        (["photo.png", "more/photo.jpg"], False),
        (["whole.obj", ".hidden.npz"], False),
        ([], False),
    ],
)
def test_by_what_lies_there(tmp_path: Path, files: list[str], broken: bool) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert holds_fractures(tmp_path) is broken


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert not holds_fractures(tmp_path / "nowhere")
