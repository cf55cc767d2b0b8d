"""A piece that is moved by hand snaps, others make room, and what is locked does not budge."""

from __future__ import annotations

import torch

from diffassemble.core import Board, FragmentPieces, ImagePieces, Mesh, Poses, Puzzle
from diffassemble.web.editing import Arrangement

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
