"""Every puzzle to learn from is a function of seed, step and number; pictures and objects are varied within bounds."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from skimage import data
from torch import Tensor

from diffassemble.core import Board, InputError, Matches, Mesh, Poses, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.fragments.datasets import Fracture, break_solids, find_fractures
from diffassemble.io.atomic import cache_folder
from diffassemble.io.pictures import write_picture
from diffassemble.network.encoders import OutlineEncoder
from diffassemble.outlines.cut import SHAPES
from diffassemble.squares.cut import tiles
from diffassemble.training.config import Config
from diffassemble.training.data import Mixture, remaining, share_out, split_apart
from diffassemble.training.edge_model import compress, wear
from diffassemble.training.fragments import Pool, make_pool, pool_of
from diffassemble.training.loop import Task
from diffassemble.training.outlines import cut_pictures, make_puzzle, make_sheet, with_losses
from diffassemble.training.pictures import (
    DataConfig,
    PictureConfig,
    PuzzleStream,
    load_picture,
    load_pictures,
    random_crop,
)
from diffassemble.training.upright import Variation, load_thin, relit, tilted_crops, with_holes
from diffassemble_research.tasks import joined, stretched


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def content(puzzles: list[Puzzle]) -> list[Tensor]:
    """All that puzzles of any kind consist of."""
    found = []
    for puzzle in puzzles:
        assert puzzle.truth is not None
        found += [puzzle.pieces.content, puzzle.truth.translation, puzzle.truth.rotation]
    return found


def same(first: list[Puzzle], second: list[Puzzle]) -> bool:
    return all(torch.equal(one, two) for one, two in zip(content(first), content(second), strict=True))


@pytest.mark.parametrize("name", ["jigsaw", "outlines", "fragments", "fragments-paper-form"])
def test_a_batch_is_the_same_every_time_and_shared_out_without_loss(name: str, tasks: dict[str, Task]) -> None:
    task: Any = tasks[name]
    forwards, backwards = ([task.portion(step) for step in steps] for steps in (range(4), reversed(range(4))))
    assert all(same(one.puzzles, two.puzzles) for one, two in zip(forwards, reversed(backwards), strict=True))
    assert not same(forwards[0].puzzles[:1], forwards[1].puzzles[:1])
    for step, alone in enumerate(forwards):
        total = sum(map(len, alone.puzzles))
        for world in (2, 3):
            portions = [task.portion(step, rank, world) for rank in range(world)]
            working = [portion for portion in portions if portion.weight > 0]
            assert same(alone.puzzles, [puzzle for portion in working for puzzle in portion.puzzles])
            starts = [portion.first for portion in working]
            assert starts == sorted(set(starts))
            assert sum(portion.weight for portion in portions) == pytest.approx(world)
            if name.startswith("fragments"):
                assert all(one.weight == pytest.approx(sum(map(len, one.puzzles)) * world / total) for one in working)


@given(st.integers(1, 50), st.integers(1, 9))
def test_nothing_is_shared_out_twice_or_lost(total: int, world: int) -> None:
    shares = [share_out(total, rank, world) for rank in range(world)]
    assert sorted(number for numbers, weight in shares if weight for number in numbers) == list(range(total))
    assert all(len(numbers) > 0 for numbers, _ in shares)
    assert sum(weight for _, weight in shares) / world == pytest.approx(1)
    assert all(weight == pytest.approx(len(numbers) * world / total) for numbers, weight in shares if weight)


@given(st.integers(0, 90), st.integers(0, 60))
def test_what_is_held_apart_is_at_most_a_quarter_and_never_learnt_from(count: int, most: int) -> None:
    train, held = split_apart(range(count), most)
    assert sorted(train + held) == list(range(count))
    assert len(held) == min(most, count // 4)


def test_groups_are_drawn_from_by_their_shares() -> None:
    mixture, chance = Mixture(((0,), (100, 200), (255,)), (1.0, 3.0, 0.0)), generator()
    drawn = [mixture.draw(chance) for _ in range(2000)]
    shares = [drawn.count(level) / len(drawn) for level in (0, 100, 200, 255)]
    assert shares == pytest.approx([0.25, 0.375, 0.375, 0.0], abs=0.05)


# Pictures.

SMALL = DataConfig(grids=(2, 5), favourite=3)


def stream_of(folder: Path, pieces: int, config: DataConfig = SMALL) -> PuzzleStream:
    training: Any = type("Training", (), {"pieces": pieces, "seed": 0})
    return PuzzleStream(Config(None, replace(config, folders=(folder,)), training))


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noise")
    for number in range(4):
        write_picture(torch.rand(3, 60, 80, generator=generator(number)), folder / f"{number}.png")
    return folder


def test_all_kinds_of_puzzles_come(noise: Path) -> None:
    stream = stream_of(noise, 1)
    puzzles = [stream.batch(step).puzzles[0] for step in range(200)]
    boards = [puzzle.board for puzzle in puzzles]
    assert {board.rows for board in boards} == {board.cols for board in boards} == {2, 3, 4, 5}
    assert 30 < sum(board.rows != board.cols for board in boards) < 80
    assert 80 < sum(board.rows == board.cols == 3 for board in boards) < 130
    given = [len(puzzle) / puzzle.board.cells for puzzle in puzzles]
    assert 60 < sum(share == 1 for share in given) < 140
    assert 0.5 <= min(given) < 0.7
    assert all(0 <= puzzle.pixels.min() <= puzzle.pixels.max() <= 1 for puzzle in puzzles)
    sizes = [puzzle.pictures.size for puzzle in puzzles]
    assert set(sizes) == {32, 30, 28}  # none, one or two pixels lost at every side
    assert 20 < sum(size < 32 for size in sizes) < 60


@settings(max_examples=20)
@given(st.integers(1, 300))
def test_batches_keep_to_their_size(noise: Path, pieces: int) -> None:
    puzzles = stream_of(noise, pieces).batch(0).puzzles
    cells = puzzles[0].board.cells
    assert len(puzzles) == 1 or len(puzzles) * cells <= pieces < (len(puzzles) + 1) * cells
    assert len({len(puzzle) for puzzle in puzzles}) == 1


def test_pictures_too_small_for_the_grids_are_named_before_training(tmp_path: Path) -> None:
    config = DataConfig(grids=(2, 3), favourite=2)
    least = 20  # 3 pieces of 5 pixels, in a crop of three quarters
    for index, side in enumerate([least] * 4 + [least - 1]):
        Image.effect_noise((side, side + 3), 50).save(tmp_path / f"{index}.png")
    with pytest.raises(InputError, match=rf"4\.png: is {least - 1}x{least + 2} pixels"):
        stream_of(tmp_path, 18, config)
    (tmp_path / "4.png").unlink()
    stream = stream_of(tmp_path, 18, config)
    for step in range(30):  # no crop of a picture that is accepted is too small
        stream.batch(step)


def test_colours_and_shapes_are_kept_and_large_pictures_thinned(tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    (tmp_path / "small").mkdir()
    Image.fromarray(levels).save(tmp_path / "small" / "a.png")
    pictures, _ = load_pictures(PictureConfig((tmp_path / "small",)), load_picture)
    assert torch.equal(pictures.draw(generator()), torch.from_numpy(levels).movedim(-1, 0))
    Image.new("RGB", (1600, 1100), (10, 20, 30)).save(tmp_path / "large.png")
    for picture, shape in (
        (load_picture(tmp_path / "large.png"), (3, 550, 800)),
        (load_thin(tmp_path / "large.png", 12), (3, 12, 17)),
    ):
        assert picture.shape == shape
        assert picture[:, 0, 0].tolist() == [10, 20, 30]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(60, 90), st.integers(60, 90), st.integers(0, 1000))
def test_crops_have_the_shape_of_the_board_and_are_inside(
    rows: int, cols: int, height: int, width: int, seed: int
) -> None:
    # The value of every pixel is its place, so a crop can be compared with it.
    places = torch.stack([torch.arange(height)[:, None].expand(-1, width), torch.arange(width).expand(height, -1)])
    picture = torch.cat([places, places[:1]]).float()
    crop = random_crop(picture, Board(rows, cols), 0.75, generator(seed))
    largest = min(height / rows, width / cols)
    assert 0.75 * largest * rows - 1 <= crop.shape[1] <= largest * rows
    assert 0.75 * largest * cols - 1 <= crop.shape[2] <= largest * cols
    top, left = int(crop[0, 0, 0]), int(crop[1, 0, 0])
    assert torch.equal(crop, picture[:, top : top + crop.shape[1], left : left + crop.shape[2]])


def test_crops_keep_what_is_above_and_half_are_mirrored() -> None:
    down, across = (torch.linspace(0.9, 0.1, 48).expand(200, 3, 48, 48) for _ in range(2))
    crops = tilted_crops(down.mT.contiguous(), Variation(0.7, 6.0), generator())
    assert (crops[:, :, :24].mean((1, 2, 3)) > crops[:, :, 24:].mean((1, 2, 3)) + 0.1).all()
    crops = tilted_crops(across.contiguous(), Variation(1.0, 0.0), generator())
    mirrored = crops[..., :24].mean((1, 2, 3)) < crops[..., 24:].mean((1, 2, 3))
    assert 70 < mirrored.sum() < 130
    light = relit(crops, 0.3, generator())
    assert 0 <= light.min() <= light.max() <= 1


def test_holes_take_the_asked_share_and_reveal_nothing_about_the_turn() -> None:
    """Where cells may begin and end is the same after a quarter turn, for every number of cells."""
    black = torch.zeros(512, 3, 48, 48)
    holed = with_holes(black, 1.0, generator()).isnan().float()
    borders = (holed[:, 0].diff(dim=1) != 0).any(2).any(0)
    assert borders.any()
    assert torch.equal(borders, borders.flip(0))
    assert torch.equal(borders, (holed[:, 0].diff(dim=2) != 0).any(1).any(0))
    some = with_holes(black, 0.25, generator())
    assert 0.18 < some.isnan().flatten(1).any(1).float().mean() < 0.32
    assert not some.nan_to_num(0).any()
    assert not with_holes(black[:8], 0.0, generator()).any()


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


@pytest.mark.parametrize("size", [5, 28])
def test_each_piece_is_compressed_alone(pieces: Tensor, size: int) -> None:
    cut = pieces[..., :size, :size]
    together = compress(cut, 60)
    assert torch.equal(together, torch.cat([compress(piece, 60) for piece in cut.split(1)]))
    assert 0 < (together - cut).abs().mean() < 0.05
    assert (compress(cut, 95) - cut).abs().mean() < (together - cut).abs().mean()


# Sheets of flat pieces.


@pytest.mark.parametrize("shape", SHAPES)
def test_sheets_know_which_pieces_touch(shape: str) -> None:
    sheet = make_sheet(shape, 6, seeded(0))
    pairs = {tuple(pair) for pair in sheet.pairs.tolist()}
    assert pairs == {(two, one) for one, two in pairs}
    assert {one for one, _ in pairs} == set(range(6))
    if shape == "strips":
        assert len(pairs) == 10
    # Seen from the sheet, the frames of both sides are at one place and face each other.
    place = sheet.centres[sheet.pairs[:, 0]] + sheet.contact.translation
    number = {pair: index for index, pair in enumerate(map(tuple, sheet.pairs.tolist()))}
    back = torch.tensor([number[two, one] for one, two in sheet.pairs.tolist()])
    assert float((place - place[back]).norm(dim=-1).median()) < 20
    facing = (sheet.contact.rotation[:, :, 0] * sheet.contact.rotation[back][:, :, 0]).sum(-1)
    assert float(facing.median()) < -0.95


def test_synthetic_matches_are_calibrated() -> None:
    given, right = [], []
    sheets = [make_sheet(shape, 20, seeded(1)) for shape in ("tabs", "shards")]
    for number in range(120):
        puzzle, matches = make_puzzle(sheets[number % 2], 0.2, seeded(2, number))
        assert puzzle.truth is not None
        there = puzzle.truth[matches.second] @ matches.pose
        size = float(puzzle.outlines.areas.median().sqrt())
        true = (there.translation - puzzle.truth[matches.first].translation).norm(dim=-1) < 0.2 * size
        true &= (there.rotation - puzzle.truth[matches.first].rotation).norm(dim=(-1, -2)) < 0.2
        given.append(matches.probability)
        right.append(true.float())
    chance, true = torch.cat(given), torch.cat(right)
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.7), (0.7, 0.95), (0.95, 1.0)):
        some = (chance >= low) & (chance < high)
        assert int(some.sum()) > 50
        within = 0.01 + 1.5 / float(some.sum()) ** 0.5
        assert float(true[some].mean()) == pytest.approx(float(chance[some].mean()), abs=within)


def test_features_of_outlines_are_invariant_to_turns_and_first_points() -> None:
    encoder = OutlineEncoder("outline", "invariant", 8)
    outline = make_sheet("torn", 4, seeded(0)).contours[0][::4][None]
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    moved = (outline @ turn.T).roll(17, 1)
    assert torch.allclose(encoder(outline), encoder(moved), atol=1e-3)
    assert not torch.allclose(encoder(outline), encoder(outline * torch.tensor([1.0, 0.5])), atol=1e-2)


def test_pieces_of_pictures_are_compared_and_matches_of_lost_ones_dropped(
    noise: Path, configs: dict[str, Config]
) -> None:
    config = replace(configs["outlines"].data, folders=(noise,), pictures=1, shapes=("tabs",), pieces=(6, 6))
    ((puzzle, matches),) = cut_pictures(config, 0, 24)
    assert len(puzzle) == 6
    left, fewer = with_losses(puzzle, matches, 0.5, seeded(1))
    assert len(left) == 3
    assert len(fewer) <= len(matches)
    ones = torch.ones(4, 3)
    given = Matches(torch.tensor([0, 1, 2, 3]), torch.tensor([1, 2, 3, 0]), Poses.identity(4, 2), torch.arange(4), ones)
    found = remaining(given, torch.tensor([3, 0, 1]), 4)
    assert [found.first.tolist(), found.second.tolist(), found.slot.tolist()] == [[1, 0], [2, 1], [0, 3]]


# Pools of points of broken objects.


def boxes(count: int) -> list[Mesh]:
    """A bar of length 6 around (3, 0, 5), broken across."""
    ends = np.linspace(0, 6, count + 1)
    solids = [trimesh.creation.box(bounds=[[low, -1, 4], [high, 1, 6]]) for low, high in pairwise(ends)]
    return [Mesh(torch.tensor(solid.vertices).float(), torch.tensor(solid.faces)) for solid in solids]


@pytest.fixture(scope="module")
def pool() -> Pool:
    return make_pool(boxes(5), generator())


def test_truth_puts_a_whole_of_size_one_together(pool: Pool) -> None:
    assert pool.points.shape == (5, 4096, 3)
    half = torch.tensor([0.5, 1 / 6, 1 / 6])
    assert torch.allclose(pool.points.amax((0, 1)), half, atol=1e-3)
    assert torch.allclose(pool.points.amin((0, 1)), -half, atol=1e-3)
    puzzle, _ = pool.scatter(generator(1))
    given, truth = puzzle.fragments, puzzle.truth
    assert truth is not None
    assert given.points.shape == (5, 1000, 3)
    assert given.points.mean(1).abs().max() < 1e-6
    own = {tuple(point) for point in (pool.points * 65000).round().long().reshape(-1, 3).tolist()}
    drawn = (truth.apply(given.points) * 65000).round().long()
    assert all(tuple(point) in own for point in drawn.reshape(-1, 3).tolist())
    assert all(len(cloud.unique(dim=0)) > 990 for cloud in drawn)
    assert torch.allclose(truth.rotation @ truth.rotation.mT, torch.eye(3).expand(5, 3, 3), atol=1e-5)
    assert (torch.linalg.det(truth.rotation) > 0).all()


def test_stretched_objects_keep_size_one(pool: Pool) -> None:
    other = stretched(pool, torch.tensor([-1.0, 3.0, 6.0]))
    high = other.points.amax((0, 1))
    assert torch.allclose(high, torch.tensor([0.25, 0.25, 0.5]), atol=1e-3)
    assert torch.allclose(other.points.amin((0, 1)), -high, atol=1e-3)
    assert (other.points[0, :, 0].mean() > 0) == (pool.points[0, :, 0].mean() < 0)


@pytest.mark.parametrize(("missing", "left"), [(0.0, 5), (0.2, 4), (0.6, 2), (0.99, 2)])
def test_missing_pieces(pool: Pool, missing: float, left: int) -> None:
    puzzle, _ = pool.scatter(generator(), points=100, missing=missing)
    assert len(puzzle) == len(puzzle.names) == left
    assert puzzle.fragments.points.shape == (left, 100, 3)


def test_joined_fragments_are_the_same_object_in_fewer_pieces_with_points_spread_by_area() -> None:
    pool, chance = make_pool([boxes(6)[0], boxes(2)[1]], generator()), generator(1)  # a sixth and a half of the bar
    fewer = [joined(pool, chance) for _ in range(20)]
    assert {len(one) for one in fewer} == {1, 2}
    whole = next(one for one in fewer if len(one) == 1)
    assert torch.allclose(whole.areas.sum(), pool.areas.sum())
    small = (whole.points[0, :, 0] < -0.5 + 1 / 6 + 1e-3).float().mean()
    assert float(small) == pytest.approx(float(pool.areas[0] / pool.areas.sum()), abs=0.03)
    every = {tuple(row) for row in pool.steps.flatten(0, 1).tolist()}
    assert all(tuple(row) in every for row in whole.steps[0].tolist())


def test_pools_are_kept_until_files_change_and_broken_ones_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "data" / "everyday" / "Bar" / "x" / "fractured_0"
    folder.mkdir(parents=True)
    for index, mesh in enumerate(boxes(3)):
        trimesh.Trimesh(mesh.vertices.numpy(), mesh.faces.numpy(), process=False).export(folder / f"piece_{index}.obj")
    fracture = find_fractures(tmp_path / "data")[0]
    first = pool_of(fracture)
    (kept,) = (cache_folder() / "pools").iterdir()
    sound = kept.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Fracture, "meshes", lambda self: pytest.fail("parsed again"))
        assert torch.equal(pool_of(fracture).steps, first.steps)
    for broken in (b"", sound[:100], b"something else"):
        kept.write_bytes(broken)
        assert torch.equal(pool_of(fracture).steps, first.steps)
        assert kept.read_bytes() == sound
    file = fracture.files[1]
    file.write_text(file.read_text().replace("v 4.", "v 3."))
    os.utime(file, ns=(1, 1))
    assert not torch.equal(pool_of(fracture).steps, first.steps)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # no place for a cache
    assert len(pool_of(fracture)) == 3


def test_what_is_kept_of_made_solids_is_found_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (made,) = break_solids(1, 1, (2, 2))
    pool_of(made)
    monkeypatch.chdir(tmp_path)
    pool_of(made)
    assert len(list((cache_folder() / "pools").iterdir())) == 1
