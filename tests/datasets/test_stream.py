"""Every puzzle of the stream is a function of the seed, the step and its number, however many processes there are."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffassemble.core import Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.training.config import DataConfig
from diffassemble.training.pictures import PictureStore, Portion, PuzzleStream, share_out

SMALL = DataConfig(grids=(2, 5), favourite=3)


@pytest.fixture(scope="module")
def store() -> PictureStore:
    generator = torch.Generator().manual_seed(0)
    pictures = (torch.randint(0, 256, (3, 60, 80), generator=generator, dtype=torch.uint8) for _ in range(4))
    return PictureStore((tuple(pictures),), (1.0,))


def same(first: list[Puzzle], second: list[Puzzle]) -> bool:
    pairs = list(zip(first, second, strict=True))
    return all(
        one.board == two.board
        and torch.equal(one.pieces.pixels, two.pieces.pixels)
        and one.truth is not None
        and two.truth is not None
        and torch.equal(one.truth.translation, two.truth.translation)
        and torch.equal(one.truth.rotation, two.truth.rotation)
        for one, two in pairs
    )


def test_a_step_is_the_same_whatever_came_before(store: PictureStore) -> None:
    forwards, backwards = PuzzleStream(store, SMALL, 50, seed=1), PuzzleStream(store, SMALL, 50, seed=1)
    there = [forwards.batch(step) for step in range(6)]
    back = [backwards.batch(step) for step in reversed(range(6))]
    torch.rand(5)
    assert all(same(one.puzzles, two.puzzles) for one, two in zip(there, reversed(back), strict=True))


def test_seeds_steps_and_numbers_all_matter(store: PictureStore) -> None:
    config = DataConfig(grids=(3, 3), favourite=3, missing=0.0, erode=0)
    stream, other = PuzzleStream(store, config, 18, seed=1), PuzzleStream(store, config, 18, seed=2)
    pieces = [
        puzzle.pieces.pixels[0].mean()
        for batch in (stream.batch(0), stream.batch(1), other.batch(0))
        for puzzle in batch.puzzles
    ]
    assert len(pieces) == 6
    assert len({float(mean) for mean in pieces}) == 6


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
        assert_mean(alone, portions)
    assert odd > 0


def assert_mean(alone: Portion, portions: list[Portion]) -> None:
    """Averaging over processes gives each puzzle the weight it has in one process."""
    value = {id_of(puzzle): 1.0 + number**2 for number, puzzle in enumerate(alone.puzzles)}
    mean = sum(value.values()) / len(value)
    parts = [
        portion.weight * sum(value[id_of(puzzle)] for puzzle in portion.puzzles) / len(portion.puzzles)
        for portion in portions
    ]
    assert sum(parts) / len(parts) == pytest.approx(mean)


def id_of(puzzle: Puzzle) -> float:
    return float(puzzle.pieces.pixels.double().sum())


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
    sizes = [puzzle.pieces.size for puzzle in puzzles]
    assert set(sizes) == {32, 30, 28}  # none, one or two pixels lost at every side
    assert 20 < sum(size < 32 for size in sizes) < 60


def test_fine_grids_come_sharp_and_enlarged(store: PictureStore) -> None:
    stream = PuzzleStream(store, DataConfig(grids=(12, 12), favourite=12, erode=0, smallest_crop=1.0), 1, seed=0)
    sizes = {stream.batch(step).puzzles[0].pieces.size for step in range(12)}
    assert sizes == {16, 32}


def test_no_damage_if_none_is_wanted(store: PictureStore) -> None:
    config = DataConfig(grids=(2, 3), favourite=2, missing=0.0, whole_share=0.0, erode=0, erode_share=1.0)
    stream = PuzzleStream(store, config, 1, seed=0)
    puzzles = [stream.batch(step).puzzles[0] for step in range(10)]
    assert all(len(puzzle) == puzzle.board.cells and puzzle.pieces.size == 32 for puzzle in puzzles)


@settings(max_examples=30)
@given(st.integers(1, 300))
def test_batches_keep_to_their_size(pieces: int) -> None:
    picture = torch.zeros(3, 30, 30, dtype=torch.uint8)
    stream = PuzzleStream(PictureStore(((picture,),), (1.0,)), SMALL, pieces, seed=0)
    puzzles = stream.batch(0).puzzles
    cells = puzzles[0].board.cells
    assert len(puzzles) == 1 or len(puzzles) * cells <= pieces < (len(puzzles) + 1) * cells
    assert len({len(puzzle) for puzzle in puzzles}) == 1


def test_generators_of_different_numbers_differ() -> None:
    tuples = [(a, b, c) for a in range(5) for b in range(5) for c in range(5)] + [
        (a, b) for a in range(5) for b in range(5)
    ]
    drawn = {float(torch.rand((), generator=seeded(*numbers), dtype=torch.double)) for numbers in tuples}
    assert len(drawn) == len(tuples)
