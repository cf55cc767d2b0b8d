"""Collections of pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.squares import pictures as published
from diffassemble.squares.pictures import (
    COLLECTIONS,
    held_out_pictures,
    picture_paths,
    published_split,
    short_name,
    training_pictures,
)


def test_pictures_are_found_at_any_depth_and_sorted(tmp_path: Path) -> None:
    fill(tmp_path, ["b.JPG", "a.png", "deep/er/c.webp", "notes.txt", ".hidden.png", "deep/d.tiff"])
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


def test_a_collection_gives_its_two_parts(tmp_path: Path) -> None:
    fill(tmp_path, ["a.jpg", "b.jpg", "c.jpg"])
    (tmp_path / "CelebA-HQ_train.txt").write_text("a.jpg\nb.jpg\n")
    (tmp_path / "CelebA-HQ_test.txt").write_text("c.jpg\n")
    assert held_out_pictures(f"celeba-hq={tmp_path}") == [tmp_path / "c.jpg"]
    assert training_pictures(f"celeba-hq={tmp_path}") == [tmp_path / "a.jpg", tmp_path / "b.jpg"]


def test_short_names_do_not_tell_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "faces" / "val").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "faces")
    assert short_name(str(tmp_path / "faces" / "val")) == short_name("val") == short_name("val/") == "faces/val"
    assert short_name("wikiart=/some/where") == "wikiart"


@pytest.fixture(autouse=True)
def small_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {name: replace(collection, train=8, test=2) for name, collection in COLLECTIONS.items()}
    monkeypatch.setattr(published, "COLLECTIONS", small)


def fill(folder: Path, names: list[str]) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_celeba_splits_by_number_not_by_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    larger = replace(COLLECTIONS["celeba-hq"], train=10, test=2)
    monkeypatch.setattr(published, "COLLECTIONS", {"celeba-hq": larger})
    folder = fill(tmp_path, [f"CelebA-HQ-img/{number}.jpg" for number in range(12)] + ["mask/00001_skin.png"])
    train, test = published_split("celeba-hq", folder)
    assert names(train) == [f"{number}.jpg" for number in range(10)]
    assert names(test) == ["10.jpg", "11.jpg"]


@pytest.mark.parametrize("place", ["", "data_splits"])
def test_lists_decide_where_they_are(tmp_path: Path, place: str) -> None:
    fill(tmp_path, [f"style/{letter}.jpg" for letter in "abcde"] + ["other/a.jpg"])
    lists = tmp_path / place
    lists.mkdir(exist_ok=True)
    (lists / "wikiart_subset_train.txt").write_text("c.jpg\na.jpg\n")
    (lists / "wikiart_subset_test.txt").write_text("e.jpg\n\n")
    train, test = published_split("wikiart", tmp_path)
    assert names(train) == ["a.jpg", "c.jpg"]
    assert names(test) == ["e.jpg"]


def test_a_listed_picture_that_is_not_there_is_named(tmp_path: Path) -> None:
    fill(tmp_path, ["a.jpg"])
    (tmp_path / "wikiart_subset_train.txt").write_text("a.jpg\n")
    with pytest.raises(InputError, match=r"one of .* and .*; add the other"):
        published_split("wikiart", tmp_path)
    (tmp_path / "wikiart_subset_test.txt").write_text("a.jpg\nz.jpg\n")
    with pytest.raises(InputError, match=r"1 of them are not there \(first: z.jpg\).*ArtGAN"):
        published_split("wikiart", tmp_path)


def test_missing_pictures_come_with_a_way_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not exist.*CelebAMask-HQ"):
        published_split("celeba-hq", tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"holds 3 pictures .* needs 10 \(8 \+ 2\).*CelebAMask-HQ"):
        published_split("celeba-hq", fill(tmp_path, ["0.jpg", "1.jpg", "2.jpg"]))
    with pytest.raises(InputError, match="needs 10"):
        published_split("wikiart", tmp_path)
    with pytest.raises(InputError, match="choose one of celeba-hq, wikiart"):
        published_split("imagenet", tmp_path)
