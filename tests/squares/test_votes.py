"""Votes are linear, keep what is true, and go halfway to what matches imply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, Matches, Poses
from diffassemble.network.batch import join_matches
from diffassemble.network.evidence import POWERS, cast_votes, flatten_poses, unflatten_poses, vote_matrix

Solved = Callable[..., tuple[Poses, Matches]]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def votes(matches: Matches, flat: Tensor) -> Tensor:
    """(n, width, k) → (n, powers, width, k)."""
    return cast_votes(vote_matrix(matches, len(flat)), flat)


def random_flat(count: int, width: int = 6, samples: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(count, width, samples, generator=seeded(seed))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 7), st.integers(1, 7), st.floats(0.1, 1), st.integers(0, 2**31))
def test_a_true_assembly_is_a_fixed_point(solved: Solved, rows: int, cols: int, kept: float, seed: int) -> None:
    board = Board(rows, cols)
    truth, matches = solved(board, max(1, round(kept * board.cells)), seed)
    flat = flatten_poses(truth)[..., None]
    torch.testing.assert_close(votes(matches, flat), flat[:, None].expand(-1, len(POWERS), -1, -1))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 3), st.integers(0, 2**31))
def test_the_same_holds_in_space(solved_in_space: Solved, side: int, seed: int) -> None:
    truth, matches = solved_in_space(side, seed)
    flat = flatten_poses(truth)[..., None]
    torch.testing.assert_close(
        votes(matches, flat), flat[:, None].expand(-1, len(POWERS), -1, -1), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("dimension", [2, 3])
def test_one_round_goes_halfway_to_the_weighted_mean_of_what_the_matches_imply(
    dimension: int, solved: Solved, solved_in_space: Solved
) -> None:
    truth, matches = solved(Board(3, 4), 12) if dimension == 2 else solved_in_space(2)
    count = len(truth)
    noisy = Poses(
        torch.randn(count, dimension, dimension, generator=seeded(1)),
        torch.randn(count, dimension, generator=seeded(2)),
    )
    implied = noisy[matches.second] @ matches.relative
    voted = unflatten_poses(votes(matches, flatten_poses(noisy)[..., None])[:, 0, :, 0])
    for piece in range(count):
        mine = matches.first == piece
        share = matches.weight[mine] / matches.weight[mine].sum()
        mean_rotation = (share[:, None, None] * implied.rotation[mine]).sum(0)
        mean_translation = (share[:, None] * implied.translation[mine]).sum(0)
        torch.testing.assert_close(voted.rotation[piece], (noisy.rotation[piece] + mean_rotation) / 2)
        torch.testing.assert_close(voted.translation[piece], (noisy.translation[piece] + mean_translation) / 2)


def test_powers_are_repeated_rounds(solved: Solved) -> None:
    _, matches = solved(Board(3, 4), 10)
    matrix, flat = vote_matrix(matches, 10), random_flat(10)
    current, seen = flat.flatten(0, 1), votes(matches, flat)
    for done in range(1, POWERS[-1] + 1):
        current = matrix.to_dense() @ current
        if done in POWERS:
            torch.testing.assert_close(seen[:, POWERS.index(done)].flatten(0, 1), current, rtol=1e-4, atol=1e-4)


def test_votes_are_linear(solved: Solved) -> None:
    _, matches = solved(Board(4, 4), 14)
    one, two = random_flat(14, seed=1), random_flat(14, seed=2)
    mixed = votes(matches, 0.7 * one - 2 * two)
    torch.testing.assert_close(mixed, 0.7 * votes(matches, one) - 2 * votes(matches, two), rtol=1e-4, atol=1e-4)


def test_samples_vote_apart(solved: Solved) -> None:
    _, matches = solved(Board(3, 3), 9)
    flat = random_flat(9, samples=3)
    together = votes(matches, flat)
    for sample in range(3):
        alone = votes(matches, flat[..., sample : sample + 1].contiguous())
        torch.testing.assert_close(together[..., sample : sample + 1], alone)


def test_voting_takes_the_noise_away(solved: Solved) -> None:
    truth, matches = solved(Board(6, 6), 36)
    clean = flatten_poses(truth)[..., None]
    noise = random_flat(36, samples=50)
    left = (votes(matches, 0.3 * clean + noise) - 0.3 * clean[:, None]).square().mean((0, 2, 3)).sqrt()
    assert left[0] < 0.8 * noise.square().mean().sqrt()
    assert (left[1:] < left[:-1]).all()
    assert left[-1] < 0.5 * left[0]


def test_both_colours_of_the_checkerboard_are_heard(solved: Solved) -> None:
    """A piece hears its neighbours and those beyond them alike, however many rounds there are."""
    _, matches = solved(Board(1, 6), 6)
    flat = random_flat(6)
    for piece in range(6):
        changed = flat.clone()
        changed[piece] += 1
        moved = (votes(matches, changed) - votes(matches, flat)).abs().amax((2, 3))
        assert (moved[:, POWERS.index(8)] > 1e-6).all()


def test_the_order_of_pieces_and_of_matches_does_not_matter(solved: Solved) -> None:
    _, matches = solved(Board(4, 5), 17)
    flat = random_flat(17)
    order = torch.randperm(17, generator=seeded(3))
    place = order.argsort()
    shuffled = matches[torch.randperm(len(matches), generator=seeded(4))]
    renamed = replace(shuffled, first=place[shuffled.first], second=place[shuffled.second])
    torch.testing.assert_close(votes(renamed, flat[order]), votes(matches, flat)[order], rtol=1e-4, atol=1e-5)


def test_votes_never_cross_puzzles(solved: Solved) -> None:
    one, two = solved(Board(3, 3), 9, seed=1)[1], solved(Board(2, 4), 8, seed=2)[1]
    both = join_matches([one, two], [0, 9])
    flat = random_flat(17)
    changed = torch.cat([flat[:9], random_flat(8, seed=9)])
    before, after = votes(both, flat), votes(both, changed)
    assert torch.equal(before[:9], after[:9])
    assert not torch.equal(before[9:], after[9:])
    torch.testing.assert_close(before[:9], votes(one, flat[:9].contiguous()))


def test_only_the_probability_counts(solved: Solved) -> None:
    _, matches = solved(Board(3, 3), 9)
    other = replace(matches, evidence=torch.stack([matches.weight, torch.zeros(len(matches))], -1))
    assert torch.equal(votes(other, random_flat(9)), votes(matches, random_flat(9)))


def test_pieces_without_matches_keep_their_own_pose(solved: Solved) -> None:
    _, matches = solved(Board(2, 2), 4)
    flat = random_flat(6)
    assert torch.equal(votes(matches, flat)[4:], flat[4:, None].expand(-1, len(POWERS), -1, -1))
    silent = replace(matches, evidence=torch.zeros_like(matches.evidence))
    assert torch.equal(votes(silent, flat), flat[:, None].expand(-1, len(POWERS), -1, -1))


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
