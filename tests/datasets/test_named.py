"""Names of collections on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.squares.pictures import held_out_pictures, short_name, short_names, training_pictures


def test_a_folder_gives_all_its_pictures_even_with_an_equals_sign(tmp_path: Path) -> None:
    folder = tmp_path / "size=32"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"")
    assert held_out_pictures(str(folder)) == training_pictures(str(folder)) == [folder / "a.png"]


def test_a_collection_gives_its_two_parts(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.jpg").write_bytes(b"")
    (tmp_path / "CelebA-HQ_train.txt").write_text("a.jpg\nb.jpg\n")
    (tmp_path / "CelebA-HQ_test.txt").write_text("c.jpg\n")
    assert held_out_pictures(f"celeba-hq={tmp_path}") == [tmp_path / "c.jpg"]
    assert training_pictures(f"celeba-hq={tmp_path}") == [tmp_path / "a.jpg", tmp_path / "b.jpg"]


def test_an_incomplete_collection_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0.jpg").write_bytes(b"")
    with pytest.raises(InputError, match="WikiArt"):
        held_out_pictures(f"wikiart={tmp_path}")


def test_short_names_do_not_tell_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "faces" / "val").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "faces")
    assert short_name(str(tmp_path / "faces" / "val")) == short_name("val") == short_name("val/") == "faces/val"
    assert short_name("wikiart=/some/where") == "wikiart"


def test_folders_of_the_same_name_are_told_apart() -> None:
    assert short_names([Path("/x/faces/train"), Path("/x/art/train")]) == ["faces/train", "art/train"]
    same = ["/x/faces/train", "/y/faces/train"]
    assert short_names([Path(folder) for folder in same]) == same
