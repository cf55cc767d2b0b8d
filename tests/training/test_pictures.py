"""Every training puzzle is a function of seed, step and number; pictures are varied within their bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from skimage import data
from torch import Tensor

from diffassemble.core import Board, Puzzle
from diffassemble.squares.cut import tiles
from diffassemble.training.config import DataConfig, PictureConfig
from diffassemble.training.pictures import (
    PictureStore,
    PuzzleStream,
    Variation,
    compress,
    load_picture,
    load_pictures,
    random_crop,
    share_out,
    split_paths,
    tilted_crops,
    vary,
    wear,
    with_holes,
)

SMALL = DataConfig(grids=(2, 5), favourite=3)


@pytest.fixture(scope="module")
def store() -> PictureStore:
    generator = torch.Generator().manual_seed(0)
    pictures = (torch.randint(0, 256, (3, 60, 80), generator=generator, dtype=torch.uint8) for _ in range(4))
    return PictureStore((tuple(pictures),), (1.0,))


def same(first: list[Puzzle], second: list[Puzzle]) -> bool:
    return all(
        one.board == two.board
        and torch.equal(one.pieces.pixels, two.pieces.pixels)
        and torch.equal(one.truth.translation, two.truth.translation)
        and torch.equal(one.truth.rotation, two.truth.rotation)
        for one, two in zip(first, second, strict=True)
    )


def test_a_step_is_the_same_whatever_came_before(store: PictureStore) -> None:
    forwards, backwards = PuzzleStream(store, SMALL, 50, seed=1), PuzzleStream(store, SMALL, 50, seed=1)
    there = [forwards.batch(step) for step in range(6)]
    back = [backwards.batch(step) for step in reversed(range(6))]
    torch.rand(5)
    assert all(same(one.puzzles, two.puzzles) for one, two in zip(there, reversed(back), strict=True))


@pytest.mark.parametrize("world", [2, 3])
def test_processes_together_get_what_one_alone_gets(store: PictureStore, world: int) -> None:
    stream = PuzzleStream(store, SMALL, 40, seed=0)
    odd = 0
    for step in range(12):
        alone = stream.batch(step)
        portions = [stream.batch(step, rank, world) for rank in range(world)]
        working = [portion for portion in portions if portion.weight > 0]
        assert same(alone.puzzles, [puzzle for portion in working for puzzle in portion.puzzles])
        starts = [portion.first for portion in working]
        assert starts == sorted(set(starts))
        odd += len(alone.puzzles) % world > 0
    assert odd > 0


@given(st.integers(1, 50), st.integers(1, 9))
def test_nothing_is_shared_out_twice_or_lost(total: int, world: int) -> None:
    shares = [share_out(total, rank, world) for rank in range(world)]
    assert sorted(number for numbers, weight in shares if weight for number in numbers) == list(range(total))
    assert all(len(numbers) > 0 for numbers, _ in shares)
    assert sum(weight for _, weight in shares) / world == pytest.approx(1)
    assert all(weight == pytest.approx(len(numbers) * world / total) for numbers, weight in shares if weight)


def test_all_kinds_of_puzzles_come(store: PictureStore) -> None:
    stream = PuzzleStream(store, SMALL, 1, seed=0)
    puzzles = [stream.batch(step).puzzles[0] for step in range(200)]
    boards = [puzzle.board for puzzle in puzzles]
    assert {board.rows for board in boards} == {board.cols for board in boards} == {2, 3, 4, 5}
    assert 30 < sum(board.rows != board.cols for board in boards) < 80
    assert 80 < sum(board.rows == board.cols == 3 for board in boards) < 130
    given = [len(puzzle) / puzzle.board.cells for puzzle in puzzles]
    assert 60 < sum(share == 1 for share in given) < 140
    assert 0.5 <= min(given) < 0.7
    assert all(0 <= puzzle.pixels.min() <= puzzle.pixels.max() <= 1 for puzzle in puzzles)
    sizes = [puzzle.pieces.size for puzzle in puzzles]
    assert set(sizes) == {32, 30, 28}  # none, one or two pixels lost at every side
    assert 20 < sum(size < 32 for size in sizes) < 60


@settings(max_examples=30)
@given(st.integers(1, 300))
def test_batches_keep_to_their_size(pieces: int) -> None:
    picture = torch.zeros(3, 30, 30, dtype=torch.uint8)
    stream = PuzzleStream(PictureStore(((picture,),), (1.0,)), SMALL, pieces, seed=0)
    puzzles = stream.batch(0).puzzles
    cells = puzzles[0].board.cells
    assert len(puzzles) == 1 or len(puzzles) * cells <= pieces < (len(puzzles) + 1) * cells
    assert len({len(puzzle) for puzzle in puzzles}) == 1


def flat(level: int) -> torch.Tensor:
    return torch.full((3, 4, 4), level, dtype=torch.uint8)


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forty")
    for index in range(40):
        (folder / f"{index:02d}.png").touch()
    return folder


@given(held_apart=st.integers(0, 60))
def test_pictures_held_apart_are_never_trained_on(forty: Path, held_apart: int) -> None:
    train, held = split_paths(forty, held_apart)
    assert sorted(train + held) == sorted(forty.iterdir())
    assert len(held) == min(held_apart, 10)


def test_folders_are_drawn_from_by_their_shares() -> None:
    store = PictureStore(((flat(0),), (flat(100), flat(200)), (flat(255),)), (1.0, 3.0, 0.0))
    generator = torch.Generator().manual_seed(0)
    drawn = torch.tensor([float(store.draw(generator).mean()) for _ in range(2000)]) * 255
    shares = [float((drawn.round() == level).float().mean()) for level in (0, 100, 200, 255)]
    assert shares == pytest.approx([0.25, 0.375, 0.375, 0.0], abs=0.05)


def test_colours_are_kept(tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(levels).save(tmp_path / "a.png")
    store, _ = load_pictures(PictureConfig((tmp_path,)), load_picture)
    drawn = store.draw(torch.Generator())
    assert torch.equal((drawn * 255).round().byte(), torch.from_numpy(levels).movedim(-1, 0))
    assert drawn.dtype == torch.float32


def test_large_pictures_are_thinned(tmp_path: Path) -> None:
    Image.new("RGB", (1600, 1100), (10, 20, 30)).save(tmp_path / "large.png")
    picture = load_picture(tmp_path / "large.png")
    assert picture.shape == (3, 550, 800)
    assert picture[:, 0, 0].tolist() == [10, 20, 30]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(60, 90), st.integers(60, 90), st.integers(0, 1000))
def test_crops_have_the_shape_of_the_board_and_lie_inside(
    rows: int, cols: int, height: int, width: int, seed: int
) -> None:
    # Every pixel tells where it was, so a crop can be compared with its place.
    places = torch.stack([torch.arange(height)[:, None].expand(-1, width), torch.arange(width).expand(height, -1)])
    picture = torch.cat([places, places[:1]]).float()
    crop = random_crop(picture, Board(rows, cols), 0.75, generator(seed))
    largest = min(height / rows, width / cols)
    assert 0.75 * largest * rows - 1 <= crop.shape[1] <= largest * rows
    assert 0.75 * largest * cols - 1 <= crop.shape[2] <= largest * cols
    top, left = int(crop[0, 0, 0]), int(crop[1, 0, 0])
    assert torch.equal(crop, picture[:, top : top + crop.shape[1], left : left + crop.shape[2]])


STRONG = Variation(smallest_crop=0.7, tilt=6.0, light=0.3, holed_share=1.0)
NONE = Variation(smallest_crop=1.0, tilt=0.0, light=0.0, holed_share=0.0)


def test_colours_stay_colours_and_the_seed_decides() -> None:
    pictures = torch.rand(8, 3, 40, 40, generator=generator())
    varied = vary(pictures, (24, 24), STRONG, generator(1))
    assert varied.shape == (8, 3, 24, 24)
    colours = varied[~varied.isnan()]
    assert 0 <= colours.min() <= colours.max() <= 1
    again = vary(pictures, (24, 24), STRONG, generator(1))
    torch.testing.assert_close(varied, again, rtol=0, atol=0, equal_nan=True)
    assert not torch.equal(varied, vary(pictures, (24, 24), STRONG, generator(2)))


def test_above_stays_above() -> None:
    bright_above = torch.linspace(0.9, 0.1, 48)[:, None].expand(64, 3, 48, 48).contiguous()
    crops = tilted_crops(bright_above, (24, 24), STRONG, generator())
    assert (crops[:, :, :12].mean((1, 2, 3)) > crops[:, :, 12:].mean((1, 2, 3)) + 0.1).all()


def test_half_are_mirrored() -> None:
    picture = torch.linspace(0.9, 0.1, 48).expand(400, 3, 48, 48).contiguous()
    crops = tilted_crops(picture, (24, 24), NONE, generator())
    mirrored = crops[..., :12].mean((1, 2, 3)) < crops[..., 12:].mean((1, 2, 3))
    assert 150 < mirrored.sum() < 250


def test_holes_tell_nothing_about_the_turn() -> None:
    """Where cells may begin and end is the same after a quarter turn, for every number of cells."""
    holed = with_holes(torch.zeros(512, 3, 48, 48), 1.0, generator())
    holed = holed.isnan().float()
    borders = (holed[:, 0].diff(dim=1) != 0).any(2).any(0)
    assert borders.any()
    assert torch.equal(borders, borders.flip(0))
    assert torch.equal(borders, (holed[:, 0].diff(dim=2) != 0).any(1).any(0))


def test_holes_take_the_asked_share() -> None:
    holed = with_holes(torch.zeros(400, 3, 48, 48), 0.25, generator())
    share = holed.isnan().flatten(1).any(1).float().mean()
    assert 0.18 < share < 0.32
    assert not holed.nan_to_num(0).any()
    assert not with_holes(torch.zeros(8, 3, 48, 48), 0.0, generator()).any()


@pytest.fixture
def pieces() -> Tensor:
    """Pieces of 28 pixels of a photo."""
    picture = torch.from_numpy(data.chelsea()).movedim(-1, 0).float() / 255
    return tiles(picture[:, :280, :420], Board(10, 15))[::10]


def test_how_often_pieces_are_worn(pieces: Tensor) -> None:
    assert torch.equal(wear(pieces, 0.0, generator(0)), pieces)
    worn = [wear(pieces, 1.0, generator(seed)) for seed in range(24)]
    untouched = sum(torch.equal(some, pieces) for some in worn)
    assert 0 < untouched < 12  # an eighth, on the average
    assert all(some.shape == pieces.shape and some.min() >= 0 and some.max() <= 1 for some in worn)
    assert max(float((some - pieces).abs().mean()) for some in worn) < 0.1


@pytest.mark.parametrize("size", [5, 16, 28])
def test_each_piece_is_compressed_for_itself(pieces: Tensor, size: int) -> None:
    cut = pieces[..., :size, :size]
    together = compress(cut, 60)
    assert torch.equal(together, torch.cat([compress(piece, 60) for piece in cut.split(1)]))
    assert 0 < (together - cut).abs().mean() < 0.05
    assert (compress(cut, 95) - cut).abs().mean() < (together - cut).abs().mean()
