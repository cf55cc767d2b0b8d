"""Moving pictures: where they start, where they end, how large they get."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.core import Poses, Puzzle, turn_matrix
from diffassemble.core.poses import angles
from diffassemble.rendering.animation import animate, between, encode_gif
from diffassemble.rendering.picture import draw_poses

Make = Callable[..., Puzzle]
Solved = Callable[..., Answer]


def noisy_history(puzzle: Puzzle, steps: int = 10) -> tuple[Poses, ...]:
    """Straight from noise to the truth."""
    generator, truth = torch.Generator().manual_seed(2), puzzle.truth
    assert truth is not None
    rotation = torch.randn(len(puzzle), 2, 2, generator=generator)
    translation = torch.randn(len(puzzle), 2, generator=generator)
    shares = torch.linspace(0, 1, steps)
    return tuple(
        Poses(torch.lerp(rotation, truth.rotation, share), torch.lerp(translation, truth.translation, share))
        for share in shares
    )


def test_frames_run_from_the_first_to_the_last_pose(make_puzzle: Make, solved: Solved) -> None:
    puzzle = make_puzzle(4, 4)
    history = noisy_history(puzzle)
    assembly = solved(puzzle, history)
    frames = animate(assembly, frames=9)
    assert len(frames) == 9
    assert len({frame.size for frame in frames}) == 1
    assert frames[0].width <= 484
    cell = 80
    for frame, poses in ((frames[0], history[0]), (frames[-1], assembly.poses)):
        expected = draw_poses(puzzle, poses, cell=cell, margin=80)
        difference = np.abs(np.asarray(frame).astype(int) - np.asarray(expected))
        assert difference.mean() < 0.1
    assert np.array_equal(np.asarray(frames[-1]), np.asarray(draw_poses(puzzle, assembly.poses, cell=80, margin=80)))


def test_the_answer_ends_the_animation_even_if_history_stops_before(make_puzzle: Make, solved: Solved) -> None:
    puzzle = make_puzzle(3, 3)
    whole, early = (animate(solved(puzzle, noisy_history(puzzle)[:stop]), frames=4) for stop in (10, 5))
    assert np.array_equal(np.asarray(whole[-1]), np.asarray(early[-1]))


def test_without_history_pieces_set_out_from_the_table(make_puzzle: Make, solved: Solved) -> None:
    puzzle = make_puzzle(3, 5, missing=0.2)
    frames = animate(solved(puzzle), frames=5)
    order = torch.arange(12)
    start = draw_poses(puzzle, puzzle.board.poses(order, torch.zeros_like(order)), cell=64, margin=80)
    assert np.array_equal(np.asarray(frames[0]), np.asarray(start))


def test_pieces_turn_the_shorter_way() -> None:
    keys = [Poses(turn_matrix(torch.tensor([turn])), torch.zeros(1, 2)) for turn in (3, 0)]
    middle = between(keys, np.array([0.5]))[0]
    assert angles(middle)[0] == pytest.approx(-np.pi / 4, abs=1e-6)


def test_gif_loops_rests_at_the_end_and_stays_small(make_puzzle: Make, solved: Solved, tmp_path: Path) -> None:
    puzzle = make_puzzle(6, 6)
    frames = animate(solved(puzzle, noisy_history(puzzle)))
    path = tmp_path / "steps.gif"
    path.write_bytes(encode_gif(frames))
    assert path.stat().st_size < 3_000_000
    with Image.open(path) as gif:
        durations = []
        for index in range(gif.n_frames):
            gif.seek(index)
            durations.append(gif.info["duration"])
        assert gif.info["loop"] == 0
        assert gif.width <= 480
        assert gif.n_frames == len(frames)
        assert durations[-1] == 2000
        assert max(durations[1:-1]) < 200
        last = np.asarray(gif.convert("RGB")).astype(int)
    assert np.abs(last - np.asarray(frames[-1].resize(gif.size))).mean() < 6


def test_a_gif_shrinks_until_it_fits() -> None:
    generator = np.random.default_rng(0)
    noise = [Image.fromarray(generator.integers(0, 256, (500, 500, 3), dtype=np.uint8)) for _ in range(4)]
    encoded = encode_gif(noise, limit=400_000)
    assert len(encoded) <= 400_000
    assert Image.open(io.BytesIO(encoded)).width < 480


def test_one_frame_is_enough() -> None:
    assert Image.open(io.BytesIO(encode_gif([Image.new("RGB", (30, 20))]))).size == (30, 20)
