"""Flat pieces are drawn where they stand, without seams; plans tell numbers and turns."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from diffassemble.assembly.answer import Answer
from diffassemble.core import Placements, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.core.poses import plane_rotations
from diffassemble.core.puzzle import labels
from diffassemble.outlines.cut import cut_shapes
from diffassemble.rendering.outlines import (
    animate,
    draw_assembly,
    draw_before_after,
    draw_confidence,
    draw_pair,
    laid_out,
)
from diffassemble.rendering.picture import TABLE, confidence_colour
from diffassemble.rendering.plan import draw_plan


@pytest.fixture(scope="module")
def puzzle(cat: torch.Tensor) -> Puzzle:
    small = torch.nn.functional.interpolate(cat[None], (120, 180), mode="area")[0]
    return cut_shapes(small, "tabs", 12, torch.Generator().manual_seed(0), size=42)


def solved(puzzle: Puzzle, poses: Poses | None = None, **told: object) -> Answer:
    poses = puzzle.truth if poses is None else poses
    assert poses is not None
    answer = Answer(puzzle, Placements(poses, torch.linspace(0, 1, len(puzzle))), (), "oracle", 0.1)
    return answer.with_placements(**told)


def levels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB")).astype(float)


def test_the_true_whole_is_the_picture_and_has_no_seams(cat: torch.Tensor, puzzle: Puzzle) -> None:
    drawn = levels(draw_assembly(solved(puzzle)))
    height, width = round(120 * 42 / math.sqrt(120 * 180 / 12)), round(180 * 42 / math.sqrt(120 * 180 / 12))
    assert abs(drawn.shape[0] - height) <= 2
    assert abs(drawn.shape[1] - width) <= 2
    assert puzzle.truth is not None
    left, top = puzzle.outlines.corner(puzzle.truth)
    drawn = drawn[-top:, -left:]
    small = torch.nn.functional.interpolate(cat[None], (120, 180), mode="area")
    whole = torch.nn.functional.interpolate(small, (height, width), mode="bicubic", antialias=True)[0]
    apart = np.abs(drawn[2 : height - 2, 2 : width - 2] - 255 * whole.movedim(0, -1).numpy()[2:-2, 2:-2])
    assert apart.mean() < 3
    # Dark pieces on a light table: a seam would be a light line.
    plain = cut_shapes(torch.full((3, 120, 180), 0.2), "tabs", 12, torch.Generator().manual_seed(1), size=42)
    inner = levels(draw_assembly(solved(plain)))[3:-3, 3:-3]
    assert np.abs(inner - 51).max() <= 2


def test_a_turned_whole_is_the_same_picture_turned(puzzle: Puzzle) -> None:
    assert puzzle.truth is not None
    turn = Poses(plane_rotations(torch.full((len(puzzle),), math.pi / 2)), torch.full((len(puzzle), 2), 7.0))
    straight, turned = (levels(draw_assembly(solved(puzzle, poses))) for poses in (puzzle.truth, turn @ puzzle.truth))
    again = np.rot90(turned)
    height, width = (min(sides) for sides in zip(straight.shape[:2], again.shape[:2], strict=True))
    assert np.abs(straight[3 : height - 3, 3 : width - 3] - again[3 : height - 3, 3 : width - 3]).mean() < 6


def test_what_was_left_out_is_not_drawn(puzzle: Puzzle) -> None:
    assert puzzle.truth is not None
    corner = int(puzzle.truth.translation.sum(1).argmax())
    sure = torch.ones(len(puzzle))
    sure[corner] = 0
    objects = torch.tensor([-1 if index == corner else 0 for index in range(len(puzzle))])
    drawn = draw_assembly(solved(puzzle, confidence=sure, objects=objects))
    left, top = puzzle.outlines.corner(puzzle.truth)
    x, y = (puzzle.truth.translation[corner] - torch.tensor([left, top])).round().long().tolist()
    assert drawn.getpixel((x, y)) == TABLE
    assert "unplaced" in solved(puzzle, confidence=sure, objects=objects).status


def test_confidence_is_shown_in_its_colours(puzzle: Puzzle) -> None:
    assert puzzle.truth is not None
    flat = tuple(torch.cat([torch.full_like(one[:3], 128), one[3:]]) for one in puzzle.outlines.textures)
    grey = replace(puzzle, pieces=replace(puzzle.outlines, textures=flat))
    shown = draw_confidence(solved(grey))
    points = np.concatenate(puzzle.outlines.placed_contours(puzzle.truth))
    low, high = points.min(0), points.max(0)
    for index, sure in ((0, 0.0), (len(puzzle) - 1, 1.0)):
        x, y = (puzzle.truth.translation[index].numpy() - low + 20).astype(int).tolist()
        wanted = 0.55 * np.array(confidence_colour(sure)) + 0.45 * 128
        # The map is centred over its legend, which is wider.
        x += (300 - math.ceil(high[0] - low[0])) // 2
        assert np.abs(np.array(shown.getpixel((x, y))) - wanted).max() < 4


def test_pieces_on_the_table_lie_apart(puzzle: Puzzle) -> None:
    outlines = puzzle.outlines.placed_contours(laid_out(puzzle.outlines))
    boxes = [(points.min(0), points.max(0)) for points in outlines]
    for index, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:index]:
            assert (low > other_high).any() or (other_low > high).any()


def test_pieces_move_to_their_places(puzzle: Puzzle) -> None:
    frames = animate(solved(puzzle), 6)
    assert len(frames) == 6
    assert len({frame.size for frame in frames}) == 1
    inked = [(np.abs(levels(frame) - TABLE).max(-1) > 20) for frame in frames]
    rows, cols = np.nonzero(inked[-1])
    # At the end they fill the whole without gaps, at first they lie apart.
    assert inked[-1][rows.min() : rows.max(), cols.min() : cols.max()].mean() > 0.97
    rows, cols = np.nonzero(inked[0])
    assert inked[0][rows.min() : rows.max(), cols.min() : cols.max()].mean() < 0.8
    assert draw_before_after(solved(puzzle)).width > 600
    assert max(draw_pair(solved(puzzle), 0, 1).size) <= 281


def test_numbers_are_those_of_the_files() -> None:
    assert labels(["piece_000.png", "piece_017.png", "piece_003.png"]) == ["0", "17", "3"]
    assert labels(["page2 strip_08.jpg", "page2 strip_11.jpg"]) == ["8", "11"]
    assert labels(["a1.png", "b1.png"]) == ["0", "1"]
    assert labels(["sky.png", "tree.png"]) == ["0", "1"]


@pytest.mark.parametrize(("turn", "towards"), [(0.0, (0, -1)), (math.pi / 2, (1, 0)), (math.pi, (0, 1))])
def test_arrows_of_a_plan_point_where_the_top_is(turn: float, towards: tuple[int, int]) -> None:
    texture = torch.full((4, 80, 80), 255, dtype=torch.uint8)
    poses = Poses(plane_rotations(torch.tensor([turn, 0.0])), torch.tensor([[0.0, 0.0], [200.0, 0.0]]))
    puzzle = Puzzle(outline_pieces([texture, texture]), None, ("piece_000.png", "piece_001.png"))
    plan = levels(draw_plan(solved(puzzle, poses)))
    blue = (plan[..., 2] > 140) & (plan[..., 0] < 60)
    blue[:, plan.shape[1] // 2 :] = False
    # Degrees are blue, too, but stand on the other side of the number, or farther from the arrow's ray.
    rows, cols = np.nonzero(blue)
    scale = 96 / 80
    middle = np.array([0.01 * 280 + 40, 0.01 * 280 + 40]) * scale
    along = (np.stack([cols, rows], 1) - middle) @ np.array(towards)
    assert along.max() > 0.4 * 96 * 0.95
