"""Pieces stand in the scene where they are, and corrections keep what is locked."""

from __future__ import annotations

import pytest
import torch
from PIL import Image

from diffassemble.core import Board, FragmentPieces, ImagePieces, Mesh, Poses, Puzzle
from diffassemble.core.poses import random_rotations
from diffassemble.rendering.picture import confidence_colour
from diffassemble.web.editing import Arrangement
from diffassemble.web.scene import _framed, from_scene, laid_out, to_scene

BOARD = Board(2, 2)
PUZZLE = Puzzle(ImagePieces(torch.rand(4, 3, 4, 4, generator=torch.Generator().manual_seed(0))), BOARD, tuple("abcd"))
START = Arrangement.unlocked(BOARD.poses(torch.arange(4), torch.zeros(4, dtype=torch.long)))


def near(cell: int, turn: int) -> Poses:
    exact = BOARD.poses(torch.tensor([cell]), torch.tensor([turn]))
    return Poses(exact.rotation, exact.translation + 0.2)


def test_pieces_snap_and_swap() -> None:
    cells, turns = BOARD.snap(START.moved(0, near(3, 1), PUZZLE).poses)
    assert cells.tolist() == [3, 1, 2, 0]
    assert turns.tolist() == [1, 0, 0, 0]


def test_locked_pieces_stay() -> None:
    locked = START.with_lock(3, True)
    assert locked.moved(0, near(3, 0), PUZZLE) is locked
    assert locked.moved(3, near(0, 0), PUZZLE) is locked
    assert locked.turned(3, PUZZLE) is locked
    assert locked.locks is not None
    assert locked.locks.held.tolist() == [False, False, False, True]
    assert START.locks is None
    assert locked.with_lock(3, False).locks is None


def test_turning() -> None:
    _, turns = BOARD.snap(START.turned(2, PUZZLE).turned(2, PUZZLE).poses)
    assert turns.tolist() == [0, 0, 2, 0]


def test_fragments_go_where_they_are_put() -> None:
    mesh = Mesh(torch.rand(4, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(0, 3, dtype=torch.long))
    pieces = FragmentPieces(torch.zeros(2, 4, 3), (mesh, mesh), torch.zeros(2, 3))
    puzzle = Puzzle(pieces, None, ("a", "b"))
    there = Poses(torch.eye(3)[None], torch.tensor([[0.1, 0.2, 0.3]]))
    moved = Arrangement.unlocked(Poses.identity(2, 3)).moved(1, there, puzzle)
    assert torch.equal(moved.poses.translation[1], there.translation[0])
    assert not moved.poses.translation[0].any()


@pytest.mark.parametrize("dimensions", [2, 3])
def test_poses_there_and_back(dimensions: int) -> None:
    generator = torch.Generator().manual_seed(0)
    fragments = Poses(random_rotations(12, generator), torch.randn(12, 3, generator=generator))
    poses = fragments if dimensions == 3 else Board(3, 4).poses(torch.arange(12), torch.arange(12) % 4)
    places, turns = to_scene(poses)
    assert dimensions == 3 or not places[:, 2].any()
    for number in range(12):
        back = from_scene(places[number], turns[number], dimensions)
        assert torch.allclose(back.rotation[0], poses.rotation[number], atol=1e-5)
        assert torch.allclose(back.translation[0], poses.translation[number], atol=1e-6)


def test_noisy_poses_get_the_nearest_rotation() -> None:
    poses = Poses(torch.tensor([[[0.1, -2.0], [2.0, 0.1]]]), torch.zeros(1, 2))
    back = from_scene(*(values[0] for values in to_scene(poses)), 2)
    assert Board(1, 1).snap(back)[1].tolist() == [1]


def test_pieces_are_laid_out_in_order() -> None:
    pixels = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    puzzle = Puzzle(ImagePieces(pixels), Board(2, 3), tuple("abcde"))
    cells, turns = puzzle.board.snap(laid_out(puzzle))
    assert cells.tolist() == list(range(5))
    assert not turns.any()


def test_colours_and_frames() -> None:
    grey = Image.new("RGB", (28, 28), (128, 128, 128))
    assert _framed(grey, None, None) is grey
    framed = _framed(grey, None, (1, 2, 3))
    assert framed.getpixel((0, 14)) == (1, 2, 3)
    assert framed.getpixel((14, 14)) == (128, 128, 128)
    red, _, blue = _framed(grey, 0.0, None).getpixel((14, 14))
    assert red > blue
    assert confidence_colour(0.0)[0] > confidence_colour(1.0)[0]
