"""Picture files become puzzles that can be put together again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from diffassemble.core import Assembly, InputError, Puzzle
from diffassemble.files.assemblies import render
from diffassemble.files.pictures import read_picture, write_picture
from diffassemble.squares.cut import cut_image


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A picture of 61 × 47 random pixels."""
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    write_picture(torch.rand(3, 47, 61, generator=torch.Generator().manual_seed(0)), path)
    return path


def solved(puzzle: Puzzle, path: Path) -> torch.Tensor:
    assert puzzle.truth is not None
    render(Assembly(puzzle, puzzle.truth, torch.ones(len(puzzle)), (), "truth", 0.0), path)
    return read_picture(path)


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(1, 11), cols=st.integers(2, 15), seed=st.integers(0, 2**63 - 1))
def test_truth_restores_the_centre_of_the_photo(photo: Path, rows: int, cols: int, seed: int) -> None:
    puzzle = cut_image(photo, rows, cols, seed)
    size = puzzle.pieces.size
    assert size == min(47 // rows, 61 // cols)
    assert len(puzzle) == rows * cols
    whole, whole_picture = solved(puzzle, photo.with_name("solved.png")), read_picture(photo)
    top, left = (47 - rows * size) // 2, (61 - cols * size) // 2
    # To within a pixel: where the middle falls between two, either may be taken.
    shifts = [(max(0, top + down), max(0, left + right)) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    parts = [whole_picture[:, y : y + rows * size, x : x + cols * size] for y, x in shifts]
    assert any(torch.equal(whole, part) for part in parts)


def test_same_seed_same_puzzle(photo: Path) -> None:
    first, again, other = (cut_image(photo, 4, 5, seed) for seed in (3, 3, 4))
    assert torch.equal(first.pieces.pixels, again.pieces.pixels)
    assert not torch.equal(first.pieces.pixels, other.pieces.pixels)


def test_options(photo: Path) -> None:
    puzzle = cut_image(photo, 4, 5, size=16, missing=0.3, erode=2, turn=False)
    assert puzzle.pieces.pixels.shape == (14, 3, 12, 12)
    assert puzzle.truth is not None
    assert not puzzle.board.snap(puzzle.truth)[1].any()


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


def test_a_clear_sky_can_be_cut(tmp_path: Path) -> None:
    picture = torch.rand(3, 40, 40)
    picture[:, :20] = 1.0
    write_picture(picture, tmp_path / "sky.png")
    assert len(cut_image(tmp_path / "sky.png", 4, 4)) == 16
