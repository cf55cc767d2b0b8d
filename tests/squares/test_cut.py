"""Collections of pictures, and cutting them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor

from diffassemble.core import Board, InputError, Puzzle, turn_pixels
from diffassemble.core.seeds import seeded
from diffassemble.io.pictures import write_picture
from diffassemble.squares import pictures as published
from diffassemble.squares.cut import SMALLEST_PIECE, cut_image, cut_picture
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


boards = st.builds(Board, st.integers(1, 6), st.integers(1, 6))


seeds = st.integers(0, 2**31)


def noise(height: int, width: int, seed: int = 0) -> Tensor:
    """A picture of random colours of 8 bits."""
    return torch.randint(0, 256, (3, height, width), generator=seeded(seed)) / 255


def put_back(puzzle: Puzzle) -> Tensor:
    """Every piece turned by its true turn and laid on its true cell; empty cells are NaN."""
    cells, turns = puzzle.board.snap(puzzle.truth)
    size = puzzle.pieces.size
    picture = torch.full((3, puzzle.board.rows * size, puzzle.board.cols * size), torch.nan)
    for cell, pixels in zip(cells.tolist(), turn_pixels(puzzle.pieces.pixels, turns), strict=True):
        row, col = divmod(cell, puzzle.board.cols)
        picture[:, row * size : (row + 1) * size, col * size : (col + 1) * size] = pixels
    return picture


@settings(deadline=None)
@given(boards, st.integers(SMALLEST_PIECE, 9), seeds)
def test_the_truth_restores_the_picture_exactly(board: Board, size: int, seed: int) -> None:
    picture = noise(board.rows * size, board.cols * size, seed)
    assert torch.equal(put_back(cut_picture(picture, board, seeded(seed))), picture)
    resized = cut_picture(picture, board, seeded(seed), size=size)
    assert torch.equal(put_back(resized), picture)
    # The same seed gives the same puzzle.
    again = cut_picture(picture, board, seeded(seed), size=size)
    assert torch.equal(again.pieces.pixels, resized.pieces.pixels)


@settings(deadline=None)
@given(boards, st.integers(24, 60), st.integers(24, 60), seeds)
def test_a_picture_of_any_shape_keeps_its_centre(board: Board, height: int, width: int, seed: int) -> None:
    picture = noise(height, width, seed)
    restored = put_back(cut_picture(picture, board, seeded(seed)))
    size = min(height // board.rows, width // board.cols)
    rows, cols = size * board.rows, size * board.cols
    assert restored.shape == (3, rows, cols)
    # The middle may fall between two pixels, and is rounded when the shape and again when the size is cut.
    tops = range(max(0, (height - rows) // 2 - 1), (height - rows) // 2 + 2)
    lefts = range(max(0, (width - cols) // 2 - 1), (width - cols) // 2 + 2)
    windows = (picture[:, top : top + rows, left : left + cols] for top in tops for left in lefts)
    assert any(torch.equal(restored, window) for window in windows)


@settings(deadline=None)
@given(boards, st.sampled_from((0.0, 0.1, 0.3, 0.5, 0.9)), seeds)
def test_missing_pieces_leave_their_cells_empty(board: Board, missing: float, seed: int) -> None:
    picture = noise(board.rows * 4, board.cols * 4, seed)
    puzzle = cut_picture(picture, board, seeded(seed), missing=missing)
    assert len(puzzle) == max(1, board.cells - round(board.cells * missing))
    assert len(puzzle.names) == len(set(puzzle.names)) == len(puzzle)
    restored = put_back(puzzle)
    empty = restored.isnan()
    assert empty.sum() == (board.cells - len(puzzle)) * 3 * 4 * 4
    assert torch.equal(restored[~empty], picture[~empty])


@pytest.mark.parametrize("erode", [0, 1, 3])
def test_eroded_pieces_are_the_hearts_of_whole_ones(erode: int) -> None:
    whole = cut_picture(noise(30, 40), Board(3, 4), seeded(1)).pieces.pixels
    worn = cut_picture(noise(30, 40), Board(3, 4), seeded(1), erode=erode).pieces.pixels
    assert torch.equal(worn, whole[:, :, erode : 10 - erode, erode : 10 - erode])


def test_pieces_have_no_finer_colours_than_files_of_8_bits() -> None:
    fine = torch.rand(3, 40, 40, generator=seeded(0))
    for size in (None, 9):
        pixels = cut_picture(fine, Board(4, 4), seeded(0), size=size).pieces.pixels * 255
        torch.testing.assert_close(pixels, pixels.round(), rtol=0, atol=1e-4)


def test_pieces_are_shuffled_and_turned_evenly() -> None:
    counts = torch.zeros(16, 4)
    generator, rounds = seeded(0), 400
    for _ in range(rounds):
        puzzle = cut_picture(noise(16, 16), Board(4, 4), generator)
        cells, turns = puzzle.board.snap(puzzle.truth)
        assert cells.sort().values.tolist() == list(range(16))
        counts[cells[0], turns[0]] += 1
    # The first piece may be any of 16, at any of 4 turns: chi-square with 63 degrees of freedom, five deviations.
    expected = rounds / 64
    assert ((counts - expected) ** 2 / expected).sum() < 63 + 5 * (2 * 63) ** 0.5
    upright = cut_picture(noise(16, 16), Board(4, 4), generator, turn=False)
    assert torch.equal(upright.truth.rotation, torch.eye(2).expand(16, 2, 2))


@pytest.mark.parametrize(
    ("height", "width", "board", "options"),
    [
        (1, 1, Board(1, 1), {}),
        (40, 40, Board(11, 11), {}),
        (40, 15, Board(4, 4), {}),
        (40, 40, Board(5, 5), {"erode": 3}),
        (40, 40, Board(2, 2), {"size": 3}),
        (40, 40, Board(2, 2), {"size": 9, "erode": 3}),
        (9, 9, Board(3, 3), {"size": 32}),
    ],
)
def test_too_small_a_picture_is_refused(height: int, width: int, board: Board, options: dict[str, int]) -> None:
    with pytest.raises(InputError, match=f"a {width}x{height} picture cut .* use a larger picture") as caught:
        cut_picture(noise(height, width), board, seeded(0), **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of 61 × 47 random pixels."""
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    write_picture(torch.rand(3, 47, 61, generator=torch.Generator().manual_seed(0)), path)
    return path


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"rows": 0}, "has no cells"),
        ({"cols": -3}, "has no cells"),
        ({"missing": 1.0}, "missing share 1.0"),
        ({"missing": -0.1}, "missing share"),
        ({"missing": float("nan")}, "missing share nan"),
        ({"erode": -1}, "cannot erode"),
        ({"erode": 5}, "photo.png: a 61x47 picture"),
        ({"seed": -1}, "seed -1 is out of range"),
        ({"seed": 2**64}, "out of range"),
        ({"size": 0}, "piece size of 0"),
        ({"size": 100_000}, "piece size of 100000"),
        ({"size": 3}, "photo.png: a 61x47 picture"),
        ({"rows": 40, "cols": 40}, "photo.png: a 61x47 picture"),
        ({"missing": 0.99}, "photo.png: has only 1 piece"),
    ],
)
def test_numbers_out_of_range(photo: Path, numbers: dict[str, float], words: str) -> None:
    with pytest.raises(InputError) as caught:
        cut_image(photo, **{"rows": 4, "cols": 5, **numbers})  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_pictures_without_a_puzzle_in_them(tmp_path: Path) -> None:
    Image.new("RGB", (1, 1)).save(tmp_path / "dot.png")
    with pytest.raises(InputError, match=r"dot\.png: a 1x1 picture"):
        cut_image(tmp_path / "dot.png", 6, 6)
    Image.new("RGB", (60, 60), "teal").save(tmp_path / "flat.png")
    with pytest.raises(InputError, match=r"flat\.png: every piece is one flat colour"):
        cut_image(tmp_path / "flat.png", 6, 6)
    tile = torch.rand(3, 10, 10)
    write_picture(torch.cat([tile, torch.rand(3, 10, 20), tile], -1), tmp_path / "twins.png")
    with pytest.raises(InputError, match=r"row 0, column . and the piece of row 0, column . are identical"):
        cut_image(tmp_path / "twins.png", 1, 4)
    sky = torch.rand(3, 40, 40)
    sky[:, :20] = 1.0  # identical flat pieces pass
    write_picture(sky, tmp_path / "sky.png")
    assert len(cut_image(tmp_path / "sky.png", 4, 4, turn=False)) == 16
