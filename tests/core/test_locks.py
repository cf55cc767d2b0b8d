"""Locked poses go where their pieces go, and count where they are held."""

from __future__ import annotations

import torch

from diffassemble.core import Board, ImagePieces, Locks, Poses, Puzzle


def locks() -> Locks:
    board = Board(2, 2)
    return Locks(torch.tensor([True, False, False, True]), board.poses(torch.arange(4), torch.arange(4)))


def test_held_poses_are_put_in() -> None:
    poses = locks().applied(Poses.identity(4, 2))
    assert torch.equal(poses.translation[0], locks().poses.translation[0])
    assert torch.equal(poses.rotation[3], locks().poses.rotation[3])
    assert not poses.translation[1:3].any()


def test_they_follow_their_pieces() -> None:
    pixels = torch.rand(4, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    puzzle = Puzzle(ImagePieces(pixels), Board(2, 2), tuple("abcd"), locks=locks())
    order = torch.tensor([3, 1, 0, 2])
    turned = puzzle.reordered(order)
    assert turned.locks.held.tolist() == [True, False, True, False]
    assert torch.equal(turned.locks.poses.translation, locks().poses.translation[order])
    assert turned.without_truth().locks is turned.locks
