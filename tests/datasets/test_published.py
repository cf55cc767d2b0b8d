"""Splits of the paper's collections, on empty files under a smaller count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diffassemble.core import InputError
from diffassemble.squares import pictures as published
from diffassemble.squares.pictures import COLLECTIONS, published_split


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


def test_celeba_splits_by_number_not_by_letter(tmp_path: Path) -> None:
    folder = fill(tmp_path, [f"CelebA-HQ-img/{number}.jpg" for number in range(10)] + ["mask/00001_skin.png"])
    train, test = published_split("celeba-hq", folder)
    assert names(train) == [f"{number}.jpg" for number in range(8)]
    assert names(test) == ["8.jpg", "9.jpg"]


def test_numbers_beyond_nine_sort_as_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    larger = replace(COLLECTIONS["celeba-hq"], train=10, test=2)
    monkeypatch.setattr(published, "COLLECTIONS", {"celeba-hq": larger})
    train, test = published_split("celeba-hq", fill(tmp_path, [f"{number}.jpg" for number in range(12)]))
    assert names(train)[2] == "2.jpg"
    assert names(test) == ["10.jpg", "11.jpg"]


def test_wikiart_split_follows_from_the_names(tmp_path: Path) -> None:
    files = [f"style_{number % 3}/painting-{number}.jpg" for number in range(13)]
    here, there = fill(tmp_path / "here", files), fill(tmp_path / "there", list(reversed(files)))
    train, test = published_split("wikiart", here)
    assert (len(train), len(test)) == (8, 2)
    assert not set(train) & set(test)
    assert [names(part) for part in published_split("wikiart", there)] == [names(train), names(test)]
    assert published_split("wikiart", here, seed=1) != (train, test)


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


def test_sizes_are_those_of_the_paper() -> None:
    sizes = [(collection.train, collection.test) for collection in COLLECTIONS.values()]
    assert sizes == [(24_000, 6_000), (50_503, 12_625)]
