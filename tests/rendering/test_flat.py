"""Flat pieces are drawn where they are, without seams; they move to their places; plans show numbers and turns."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.assembly.layout import in_rows, on_table
from diffassemble.core import Board, Placements, Poses, Puzzle, turn_matrix
from diffassemble.core.contours import outline_pieces
from diffassemble.core.poses import angles, plane_rotations
from diffassemble.outlines.cut import cut_shapes
from diffassemble.rendering import flat
from diffassemble.rendering.animation import along, encode_gif
from diffassemble.rendering.picture import STYLE, TABLE, confidence_colour
from diffassemble.squares.cut import crop_to_board, resize_to_board

Make = Callable[..., Puzzle]
Solved = Callable[..., Answer]


@pytest.fixture(scope="module")
def tabs(cat: torch.Tensor) -> Puzzle:
    small = torch.nn.functional.interpolate(cat[None], (120, 180), mode="area")[0]
    return cut_shapes(small, "tabs", 12, torch.Generator().manual_seed(0), size=42)


def answer(puzzle: Puzzle, poses: Poses | None = None, **changes: object) -> Answer:
    poses = puzzle.truth if poses is None else poses
    assert poses is not None
    found = Answer(puzzle, Placements(poses, torch.linspace(0, 1, len(puzzle))), (), "oracle", 0.1)
    return found.with_placements(**changes)


def levels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB")).astype(float)


@pytest.mark.parametrize(("dimension", "down"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("length", [math.inf, 3.0])
def test_boxes_in_rows_and_on_tables_lie_apart(dimension: int, down: int, length: float) -> None:
    generator = np.random.default_rng(0)
    low = generator.normal(size=(30, dimension))
    high = low + generator.random((30, dimension)) ** 2 + 0.01
    rows = in_rows(low, high, (5.0, -2.0), 0.1, length, down)
    for shift in (rows, on_table(low, high, 0.05, 1.5, down)):
        start, end = (low + shift)[:, [0, down]], (high + shift)[:, [0, down]]
        apart = (start[:, None] > end[None] + 0.049).any(-1)
        assert (apart | apart.T | np.eye(30, dtype=bool)).all()
    start, end = (low + rows)[:, [0, down]], (high + rows)[:, [0, down]]
    assert start.min(0) == pytest.approx([5.0, -2.0])
    assert end[:, 0].max() <= 5.0 + length + 1e-9
    assert (np.ptp(start[:, 1]) < 1e-9) == math.isinf(length)
    shift = on_table(low, high, 0.05, 1.5, down)
    reached = np.ptp(np.concatenate([low + shift, high + shift]), axis=0)
    assert 0.6 < reached[0] / reached[down] / 1.5 < 1.7
    assert abs(reached[0] / 2 - (high + shift)[:, 0].max()) < 0.1 * reached[0]
    assert in_rows(low[:0], high[:0]).shape == (0, dimension)


@pytest.mark.parametrize(("rows", "cols", "missing"), [(4, 4, 0.25), (3, 5, 0.0), (7, 9, 0.0)])
def test_squares_are_copied_pixel_by_pixel_and_missing_ones_leave_grey_cells(
    cat: torch.Tensor, make_puzzle: Make, solved: Solved, rows: int, cols: int, missing: float
) -> None:
    assembly, board = solved(make_puzzle(rows, cols, missing=missing)), Board(rows, cols)
    picture = resize_to_board(crop_to_board(cat, board), board, (16, 16))
    expected = (picture * 255).round().byte().movedim(0, -1).numpy().copy()
    for cell in set(range(board.cells)) - set(board.snap(assembly.poses)[0].tolist()):
        row, col = divmod(cell, cols)
        expected[16 * row : 16 * row + 16, 16 * col : 16 * col + 16] = STYLE.empty_cell
    assert np.array_equal(np.asarray(flat.draw_assembly(assembly)), expected)


@pytest.mark.parametrize("size", [(6, 6), (3, 5), (1, 2), (20, 20)])
def test_presentable_pictures_of_any_board(make_puzzle: Make, solved: Solved, size: tuple[int, int]) -> None:
    assembly = solved(make_puzzle(*size, missing=0.3 if size == (3, 5) else 0.0))
    pair, tinted = flat.draw_before_after(assembly), flat.draw_confidence(assembly)
    assert 700 < pair.width < 1500
    assert pair.height < 700
    assert 300 < tinted.width < 1000
    assert max(flat.draw_pieces(assembly.puzzle).size) == STYLE.panel


def test_the_true_whole_is_the_picture_and_has_no_seams(cat: torch.Tensor, tabs: Puzzle) -> None:
    drawn = levels(flat.draw_assembly(answer(tabs)))
    height, width = round(120 * 42 / math.sqrt(120 * 180 / 12)), round(180 * 42 / math.sqrt(120 * 180 / 12))
    assert np.abs(np.subtract(drawn.shape[:2], (height, width))).max() <= 2
    assert tabs.truth is not None
    left, top = tabs.outlines.corner(tabs.truth)
    drawn = drawn[-top:, -left:]
    small = torch.nn.functional.interpolate(cat[None], (120, 180), mode="area")
    whole = torch.nn.functional.interpolate(small, (height, width), mode="bicubic", antialias=True)[0]
    apart = np.abs(drawn[2 : height - 2, 2 : width - 2] - 255 * whole.movedim(0, -1).numpy()[2:-2, 2:-2])
    assert apart.mean() < 3
    # Dark pieces on a light table: a seam would be a light line.
    plain = cut_shapes(torch.full((3, 120, 180), 0.2), "tabs", 12, torch.Generator().manual_seed(1), size=42)
    assert np.abs(levels(flat.draw_assembly(answer(plain)))[3:-3, 3:-3] - 51).max() <= 2


def test_unplaced_pieces_are_not_drawn_and_confidence_is_shown_in_its_colours(tabs: Puzzle) -> None:
    assert tabs.truth is not None
    corner = int(tabs.truth.translation.sum(1).argmax())
    own = torch.arange(len(tabs)) == corner
    assembly = answer(tabs, confidence=(~own).float(), objects=-own.long())
    origin = torch.tensor(tabs.outlines.corner(tabs.truth))
    x, y = (tabs.truth.translation[corner] - origin).round().long().tolist()
    assert flat.draw_assembly(assembly).getpixel((x, y)) == TABLE
    assert assembly.status[corner] == "unplaced"
    grey = tuple(torch.cat([torch.full_like(one[:3], 128), one[3:]]) for one in tabs.outlines.textures)
    sure = torch.linspace(0, 1, len(tabs))
    sure[3] = torch.nan  # placed by a person
    shown = flat.draw_confidence(answer(replace(tabs, pieces=replace(tabs.outlines, textures=grey)), confidence=sure))
    points = np.concatenate(tabs.outlines.placed_contours(tabs.truth))
    low, high = points.min(0), points.max(0)
    for index in (0, 3, len(tabs) - 1):
        x, y = (tabs.truth.translation[index].numpy() - low + 20).astype(int).tolist()
        wanted = 0.55 * np.array(confidence_colour(float(sure[index]))) + 0.45 * 128
        # The map is centred over its legend, which is wider.
        x += (300 - math.ceil(high[0] - low[0])) // 2
        assert np.abs(np.array(shown.getpixel((x, y))) - wanted).max() < 4


def test_pieces_move_from_the_table_to_their_places(tabs: Puzzle) -> None:
    frames = flat.animate(answer(tabs), 6)
    assert (len(frames), len({frame.size for frame in frames})) == (6, 1)
    inked = [(np.abs(levels(frame) - TABLE).max(-1) > 20) for frame in frames]
    # At the end they fill the whole without gaps, at first they lie apart.
    for shown, least, most in ((inked[-1], 0.97, 1.0), (inked[0], 0.0, 0.8)):
        rows, cols = np.nonzero(shown)
        assert least < shown[rows.min() : rows.max(), cols.min() : cols.max()].mean() <= most
    assert flat.draw_before_after(answer(tabs)).width > 600
    assert max(flat.draw_pair(answer(tabs), 0, 1).size) <= STYLE.pair + 1


@pytest.mark.parametrize("steps", [0, 3, 40])
def test_animations_pass_through_few_moments_and_end_at_the_answer(
    make_puzzle: Make, solved: Solved, steps: int
) -> None:
    puzzle = make_puzzle(3, 3)
    assert puzzle.truth is not None
    generator = torch.Generator().manual_seed(2)
    noise = Poses(torch.randn(9, 2, 2, generator=generator), torch.randn(9, 2, generator=generator))
    still, moved = flat.animate(solved(puzzle), 4), flat.animate(solved(puzzle, (noise,) * steps), 4)
    same = [one.tobytes() == other.tobytes() for one, other in zip(still, moved, strict=True)]
    assert (same[0], same[1], same[-1]) == (True, steps == 0, True)
    quarters = [Poses(turn_matrix(torch.tensor([turn])), torch.zeros(1, 2)) for turn in (3, 0)]
    assert angles(along(quarters, torch.tensor([0.5])))[0] == pytest.approx(-np.pi / 4, abs=1e-6)  # the shorter way


def test_gif_loops_rests_at_the_end_and_stays_small(make_puzzle: Make, solved: Solved) -> None:
    frames = flat.animate(solved(make_puzzle(6, 6)), 12)
    with Image.open(io.BytesIO(encode_gif(frames))) as gif:
        durations = []
        for index in range(gif.n_frames):
            gif.seek(index)
            durations.append(gif.info["duration"])
        assert (gif.info["loop"], gif.n_frames, durations[-1]) == (0, len(frames), 2000)
        assert max(durations[1:-1]) < 200
        last = np.asarray(gif.convert("RGB")).astype(int)
    assert np.abs(last - np.asarray(frames[-1].resize(gif.size))).mean() < 6
    generator = np.random.default_rng(0)
    noise = [Image.fromarray(generator.integers(0, 256, (500, 500, 3), dtype=np.uint8)) for _ in range(4)]
    encoded = encode_gif(noise, limit=400_000)
    assert len(encoded) <= 400_000
    assert Image.open(io.BytesIO(encoded)).width < 480
    assert Image.open(io.BytesIO(encode_gif([Image.new("RGB", (30, 20))]))).size == (30, 20)


@pytest.mark.parametrize(("turn", "towards"), [(0.0, (0, -1)), (math.pi / 2, (1, 0)), (math.pi, (0, 1))])
def test_arrows_of_a_plan_point_where_the_top_is(turn: float, towards: tuple[int, int]) -> None:
    texture = torch.full((4, 80, 80), 255, dtype=torch.uint8)
    poses = Poses(plane_rotations(torch.tensor([turn, 0.0])), torch.tensor([[0.0, 0.0], [200.0, 0.0]]))
    puzzle = Puzzle(outline_pieces([texture, texture]), None, ("piece_000.png", "piece_001.png"))
    plan = levels(flat.draw_plan(answer(puzzle, poses)))
    blue = (plan[..., 2] > 140) & (plan[..., 0] < 60)
    blue[:, plan.shape[1] // 2 :] = False
    # Degrees are blue, too, but on the other side of the number, or farther from the arrow's ray.
    rows, cols = np.nonzero(blue)
    middle = np.array([0.01 * 280 + 40, 0.01 * 280 + 40]) * 96 / 80
    along_ray = (np.stack([cols, rows], 1) - middle) @ np.array(towards)
    assert along_ray.max() > 0.4 * 96 * 0.95
