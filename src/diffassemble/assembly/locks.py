"""Answers that keep what is locked.

Solvers that support locks apply them in every step; whatever a solver answers, `assembly.answer.held_steps` puts locked
pieces to their places and moves others out of their cells. scipy.optimize is imported where it is used: importing it
takes longer than most puzzles.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from diffassemble.core.board import Board, Placement
from diffassemble.core.matches import Matches
from diffassemble.core.poses import Poses
from diffassemble.core.puzzle import Locks


def realises(matches: Matches, poses: Poses, near: float | Float[Tensor, "m"], angle: float) -> Bool[Tensor, "m"]:
    """Which matches given poses realise: nearer than `near` to the pose of the match, and turned by less than `angle`.

    Lengths are those of poses and matches, which must agree; angles are radians.
    """
    pose = Poses(matches.pose.rotation.to(poses.rotation), matches.pose.translation.to(poses.translation))
    goal = poses[matches.second] @ pose
    apart = (goal.translation - poses.translation[matches.first]).norm(dim=1)
    relative = goal.rotation.mT @ poses.rotation[matches.first]
    # |R − 1|² = 2 (d − trace R), which is 4 (1 − cos angle) for d = 2 and 3.
    cosine = 1 - (relative - torch.eye(relative.shape[-1])).square().sum((1, 2)) / 4
    return (apart < near) & (cosine > math.cos(angle))


def moved_to_locks(poses: Poses, locks: Locks) -> Poses:
    """Loose poses in space, moved as a whole so that the locked pieces come close to their places."""
    given, wanted = poses[locks.held], locks.poses[locks.held]
    left, _, right = torch.linalg.svd((wanted.rotation @ given.rotation.mT).sum(0))
    # The nearest rotation; what would mirror gives way in the direction that matters least.
    left[:, -1] *= torch.linalg.det(left @ right).sign()
    rotation = left @ right
    shift = (wanted.translation - given.translation @ rotation.T).mean(0)
    return Poses(rotation @ poses.rotation, poses.translation @ rotation.T + shift)


def hold(placement: Placement, board: Board, locks: Locks) -> Placement:
    """A placement with the locked pieces in their cells: turned and shifted as a whole to agree with most of them.

    Pieces whose cell is taken or off the board go to the nearest free ones.
    """
    wanted_cells, wanted_turns = board.snap(locks.poses)
    wanted = torch.stack([wanted_cells // board.cols, wanted_cells % board.cols], 1)
    best, most = None, -1
    for by in board.fitting_turns():
        _, cells, turns = board.turned(*placement, by)
        place = torch.stack([cells // board.cols, cells % board.cols], 1)
        turned_right = locks.held & (turns == wanted_turns)
        # No shift, and those that put some locked piece right, the smallest first.
        shifts = torch.cat([torch.zeros(1, 2, dtype=torch.long), (wanted - place)[turned_right]]).unique(dim=0)
        for shift in shifts[shifts.abs().sum(1).argsort(stable=True)]:
            agreeing = int(((place + shift == wanted).all(1) & turned_right).sum())
            if agreeing > most:
                best, most = (place + shift, turns), agreeing
    assert best is not None
    return _settle(*best, board, locks)


def settle(placement: Placement, board: Board, locks: Locks) -> Placement:
    """A placement with the locked pieces in their cells; only those in their way go elsewhere, as near as can be."""
    cells, turns = placement
    return _settle(torch.stack([cells // board.cols, cells % board.cols], 1), turns, board, locks)


def settle_loose(poses: Poses, board: Board, locks: Locks) -> Placement:
    """The placement nearest to loose poses that has the locked pieces in their cells."""
    col, row = (poses.translation / board.pitch).unbind(1)
    places = torch.stack([row + (board.rows - 1) / 2, col + (board.cols - 1) / 2], 1)
    return _settle(places, board.nearest_turns(poses), board, locks)


def _settle(
    places: Int[Tensor, "n 2"] | Float[Tensor, "n 2"], turns: Int[Tensor, "n"], board: Board, locks: Locks
) -> Placement:
    from scipy.optimize import linear_sum_assignment

    wanted, wanted_turns = board.snap(locks.poses)
    loose = (~locks.held).nonzero().flatten()
    taken = torch.zeros(board.cells, dtype=torch.bool)
    taken[wanted[locks.held]] = True
    free = (~taken).nonzero().flatten()
    there = torch.stack([free // board.cols, free % board.cols], 1)
    # The root lets few pieces go far rather than many a little.
    apart = torch.cdist(places[loose].double(), there.double()).sqrt()
    pieces, chosen = (torch.from_numpy(index) for index in linear_sum_assignment(apart.numpy()))
    cells = wanted.clone()
    cells[loose[pieces]] = free[chosen]
    return cells, torch.where(locks.held, wanted_turns, turns)
