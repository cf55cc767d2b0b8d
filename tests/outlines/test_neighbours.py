"""Who touches whom, against lattices; and what to join next."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from diffassemble.assembly.answer import Answer
from diffassemble.core import Locks, Placements, Poses, Puzzle
from diffassemble.core.contours import outline_pieces
from diffassemble.core.poses import plane_rotations
from diffassemble.outlines.cut import cut_shapes
from diffassemble.outlines.neighbours import next_joins, touching


def cut(shape: str, pieces: int, **options: int) -> Puzzle:
    picture = torch.rand(3, 160, 200, generator=torch.Generator().manual_seed(0))
    return cut_shapes(picture, shape, pieces, torch.Generator().manual_seed(0), **options)


def test_widths_of_boxes() -> None:
    boxes = [torch.full((4, high, wide), 255, dtype=torch.uint8) for high, wide in ((40, 40), (200, 30), (25, 90))]
    assert outline_pieces(boxes).widths.tolist() == pytest.approx([40, 30, 25], rel=0.02)


@pytest.mark.parametrize("erode", [0, 2])
def test_neighbours_on_a_lattice(erode: int) -> None:
    puzzle = cut("tabs", 20, size=48, erode=erode)
    assert puzzle.truth is not None
    turn = Poses(plane_rotations(torch.full((20,), 0.7)), torch.full((20, 2), -30.0))
    pairs = touching(puzzle.outlines, turn @ puzzle.truth).pairs
    cells = (puzzle.truth.translation / 48).floor()
    apart = (cells[:, None] - cells).abs().sum(-1)
    near = {(i, j) for i in range(20) for j in range(i + 1, 20) if apart[i, j] == 1}
    assert {tuple(pair) for pair in pairs.tolist()} == near
    assert len(near) == 4 * 4 + 5 * 3


def test_neighbours_of_strips() -> None:
    puzzle = cut("strips", 9)
    assert puzzle.truth is not None
    order = puzzle.truth.translation[:, 0].argsort().tolist()
    wanted = {tuple(sorted(pair)) for pair in itertools.pairwise(order)}
    assert {tuple(pair) for pair in touching(puzzle.outlines, puzzle.truth).pairs.tolist()} == wanted


def test_pieces_apart_have_no_neighbours() -> None:
    puzzle = cut("tabs", 4, size=30)
    poses = Poses(torch.eye(2).repeat(4, 1, 1), 100.0 * torch.arange(4)[:, None].expand(4, 2))
    assert len(touching(puzzle.outlines, poses).pairs) == 0
    assert next_joins(Answer(puzzle, Placements(poses, torch.ones(4)), (), "x", 0.0)) == []


def test_next_joins_are_the_surest_that_are_not_made() -> None:
    puzzle = cut("tabs", 12, size=40)
    assert puzzle.truth is not None
    assembly = Answer(puzzle, Placements(puzzle.truth, torch.linspace(0.2, 0.9, 12)), (), "x", 0.0)
    joins = next_joins(assembly, 30)
    assert len(joins) == 17
    assert [join.sure for join in joins] == sorted((join.sure for join in joins), reverse=True)
    assert all(
        join.sure == pytest.approx(float(assembly.confidence[[join.piece, join.neighbour]].min())) for join in joins
    )
    assert len(next_joins(assembly)) == 10
    held = torch.zeros(12, dtype=torch.bool)
    held[[joins[0].piece, joins[0].neighbour]] = True
    locked = replace(assembly, puzzle=replace(puzzle, locks=Locks(held, puzzle.truth)))
    assert joins[0] not in next_joins(locked, 30)
    assert len(next_joins(locked, 30)) == 16
    out = assembly.with_placements(objects=torch.tensor((-1, *[0] * 11)))
    assert not [join for join in next_joins(out, 30) if 0 in (join.piece, join.neighbour)]


def test_words_tell_where_and_how() -> None:
    boxes = [torch.full((4, 40, 40), 255, dtype=torch.uint8)] * 2
    poses = Poses(plane_rotations(torch.tensor([0.0, torch.pi / 2])), torch.tensor([[0.0, 0.0], [41.0, 0.0]]))
    puzzle = Puzzle(outline_pieces(boxes), None, ("piece_004.png", "piece_007.png"))
    (join,) = next_joins(Answer(puzzle, Placements(poses, torch.tensor([0.9, 0.8])), (), "x", 0.0))
    assert join.words == "7 right of 4, 0.80 sure: turn 4 by 0°, turn 7 by 90°"
