"""Votes are exact on true mates, linear, blind to order, and stay within a puzzle."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.compatibility.image import mates_of_sides
from diffassemble.compatibility.votes import POWERS, cast_votes, flatten_poses, unflatten_poses, vote_matrices
from diffassemble.geometry import Poses
from diffassemble.puzzle import Board, Mates

TrueSides = Callable[[Board, Tensor, Tensor], tuple[Tensor, Tensor]]
CHANNELS = 2


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def solved(board: Board, count: int, true_sides: TrueSides, seed: int = 0) -> tuple[Poses, Mates]:
    """A true assembly of `count` pieces and its true mates, with random weights."""
    cells = torch.randperm(board.cells, generator=seeded(seed))[:count]
    turns = torch.randint(0, 4, (count,), generator=seeded(seed))
    first, second = true_sides(board, cells, turns)
    weights = 0.01 + 0.99 * torch.rand(len(first), CHANNELS, generator=seeded(seed))
    return board.poses(cells, turns), mates_of_sides(first, second, board.pitch, weights)


def solved_in_space(count: int, pairs: int, seed: int) -> tuple[Poses, Mates]:
    """Random rigid motions, and random pairs with the relative poses that follow from them."""
    rotation = torch.linalg.qr(torch.randn(count, 3, 3, generator=seeded(seed), dtype=torch.double))[0]
    rotation[..., 0] *= torch.linalg.det(rotation)[:, None]
    translation = torch.randn(count, 3, generator=seeded(seed), dtype=torch.double)
    truth = Poses(rotation.float(), translation.float())
    first, second = torch.randint(0, count, (2, pairs), generator=seeded(seed))
    relative = truth[second].inverse() @ truth[first]
    weights = 0.01 + 0.99 * torch.rand(pairs, CHANNELS, generator=seeded(seed))
    return truth, Mates(first, second, relative, torch.zeros_like(first), weights)


def votes(mates: Mates, flat: Tensor) -> Tensor:
    """(n, width, k) → (n, channels, powers, width, k)."""
    return cast_votes(vote_matrices(mates, len(flat)), flat).unflatten(1, (CHANNELS, len(POWERS)))


def random_flat(count: int, width: int = 6, samples: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(count, width, samples, generator=seeded(seed))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 7), st.integers(1, 7), st.floats(0.1, 1), st.integers(0, 2**31))
def test_a_true_assembly_is_a_fixed_point(true_sides: TrueSides, rows: int, cols: int, kept: float, seed: int) -> None:
    board = Board(rows, cols)
    truth, mates = solved(board, max(1, round(kept * board.cells)), true_sides, seed)
    flat = flatten_poses(truth)[..., None]
    torch.testing.assert_close(votes(mates, flat), flat[:, None, None].expand(-1, CHANNELS, len(POWERS), -1, -1))


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 12), st.integers(1, 40), st.integers(0, 2**31))
def test_the_same_holds_in_space(count: int, pairs: int, seed: int) -> None:
    truth, mates = solved_in_space(count, pairs, seed)
    flat = flatten_poses(truth)[..., None]
    expected = flat[:, None, None].expand(-1, CHANNELS, len(POWERS), -1, -1)
    torch.testing.assert_close(votes(mates, flat), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dimension", [2, 3])
def test_one_round_is_the_weighted_mean_of_what_the_mates_imply(dimension: int, true_sides: TrueSides) -> None:
    plane = solved(Board(3, 4), 10, true_sides)[1]
    mates = plane if dimension == 2 else solved_in_space(10, 60, 0)[1]
    noisy = Poses(
        torch.randn(10, dimension, dimension, generator=seeded(1)), torch.randn(10, dimension, generator=seeded(2))
    )
    implied = noisy[mates.second] @ mates.relative
    first_round = votes(mates, flatten_poses(noisy)[..., None])[:, :, 0, :, 0]
    for channel in range(CHANNELS):
        for piece in range(10):
            mine = mates.first == piece
            assert mine.any()
            voted = unflatten_poses(first_round[piece : piece + 1, channel])
            weight = mates.evidence[mine, channel] / mates.evidence[mine, channel].sum()
            mean_rotation = (weight[:, None, None] * implied.rotation[mine]).sum(0)
            mean_translation = (weight[:, None] * implied.translation[mine]).sum(0)
            torch.testing.assert_close(voted.rotation[0], mean_rotation)
            torch.testing.assert_close(voted.translation[0], mean_translation)


def test_powers_are_repeated_rounds(true_sides: TrueSides) -> None:
    _, mates = solved(Board(3, 4), 10, true_sides)
    matrix = vote_matrices(mates, 10)[0]
    flat = random_flat(10)
    current, seen = flat.flatten(0, 1), votes(mates, flat)[:, 0]
    for done in range(1, POWERS[-1] + 1):
        current = matrix.to_dense() @ current
        if done in POWERS:
            torch.testing.assert_close(seen[:, POWERS.index(done)].flatten(0, 1), current, rtol=1e-4, atol=1e-4)


def test_votes_are_linear(true_sides: TrueSides) -> None:
    _, mates = solved(Board(4, 4), 14, true_sides)
    one, two = random_flat(14, seed=1), random_flat(14, seed=2)
    mixed = votes(mates, 0.7 * one - 2 * two)
    torch.testing.assert_close(mixed, 0.7 * votes(mates, one) - 2 * votes(mates, two), rtol=1e-4, atol=1e-4)


def test_samples_vote_apart(true_sides: TrueSides) -> None:
    _, mates = solved(Board(3, 3), 9, true_sides)
    flat = random_flat(9, samples=3)
    together = votes(mates, flat)
    for sample in range(3):
        alone = votes(mates, flat[..., sample : sample + 1].contiguous())
        torch.testing.assert_close(together[..., sample : sample + 1], alone)


def test_voting_takes_the_noise_away(true_sides: TrueSides) -> None:
    truth, mates = solved(Board(6, 6), 36, true_sides)
    clean = flatten_poses(truth)[..., None]
    noise = random_flat(36, samples=50)
    left = (votes(mates, 0.3 * clean + noise) - 0.3 * clean[:, None, None]).square().mean((0, 1, 3, 4)).sqrt()
    assert left[0] < 0.8 * noise.square().mean().sqrt()
    assert left[POWERS.index(8)] < 0.7 * left[0]
    assert left.max() == left[0]


def test_the_order_of_pieces_and_of_mates_does_not_matter(true_sides: TrueSides) -> None:
    _, mates = solved(Board(4, 5), 17, true_sides)
    flat = random_flat(17)
    order = torch.randperm(17, generator=seeded(3))
    place = order.argsort()
    shuffled = mates[torch.randperm(len(mates), generator=seeded(4))]
    renamed = Mates(place[shuffled.first], place[shuffled.second], shuffled.relative, shuffled.slot, shuffled.evidence)
    torch.testing.assert_close(votes(renamed, flat[order]), votes(mates, flat)[order], rtol=1e-4, atol=1e-5)


def test_votes_never_cross_puzzles(true_sides: TrueSides) -> None:
    _, one = solved(Board(3, 3), 9, true_sides, seed=1)
    _, two = solved(Board(2, 4), 8, true_sides, seed=2)
    both = Mates(
        torch.cat([one.first, two.first + 9]),
        torch.cat([one.second, two.second + 9]),
        Poses(
            torch.cat([one.relative.rotation, two.relative.rotation]),
            torch.cat([one.relative.translation, two.relative.translation]),
        ),
        torch.cat([one.slot, two.slot]),
        torch.cat([one.evidence, two.evidence]),
    )
    flat = random_flat(17)
    changed = torch.cat([flat[:9], random_flat(8, seed=9)])
    before, after = votes(both, flat), votes(both, changed)
    assert torch.equal(before[:9], after[:9])
    assert not torch.equal(before[9:], after[9:])
    torch.testing.assert_close(before[:9], votes(one, flat[:9].contiguous()))


def test_pieces_without_mates_keep_their_own_pose(true_sides: TrueSides) -> None:
    _, mates = solved(Board(2, 2), 4, true_sides)
    silent = Mates(mates.first, mates.second, mates.relative, mates.slot, mates.evidence * torch.tensor([1.0, 0.0]))
    flat = random_flat(6)
    for kept in (votes(mates, flat)[4:], votes(silent, flat)[:, 1]):
        own = flat[4:] if len(kept) == 2 else flat
        spread = own[(slice(None), *[None] * (kept.dim() - own.dim()))].expand_as(kept)
        assert torch.equal(kept, spread)


@pytest.mark.parametrize("dimension", [2, 3])
def test_flattening_can_be_undone(dimension: int) -> None:
    poses = Poses(
        torch.randn(5, dimension, dimension, generator=seeded(0)), torch.randn(5, dimension, generator=seeded(1))
    )
    flat = flatten_poses(poses)
    assert flat.shape == (5, dimension + dimension**2)
    again = unflatten_poses(flat)
    assert torch.equal(again.rotation, poses.rotation)
    assert torch.equal(again.translation, poses.translation)
