"""Evidence of matches for poses: votes are linear with the truth as fixed point; true matches join clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from diffassemble.core import Board, Matches, Poses, Puzzle, turn_matrix
from diffassemble.core.seeds import seeded
from diffassemble.diffusion.spaces import CosSin
from diffassemble.network.batch import join_matches
from diffassemble.network.evidence import (
    POWERS,
    THRESHOLDS,
    BoardPosterior,
    Clusters,
    board_posterior,
    cast_votes,
    flatten_poses,
    grow_clusters,
    unflatten_poses,
    vote_matrix,
)
from diffassemble.squares.edge_model import find_matches
from diffassemble.squares.edges import matches_of_sides

Solved = Callable[..., tuple[Poses, Matches]]


def voted(matches: Matches, flat: Tensor) -> Tensor:
    """(n, width, k) → (n, powers, width, k)."""
    return cast_votes(vote_matrix(matches, len(flat)), flat)


def random_flat(count: int, width: int = 6, samples: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(count, width, samples, generator=seeded(seed))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 7), st.integers(1, 7), st.floats(0.1, 1), st.integers(0, 2**31))
def test_a_true_assembly_is_a_fixed_point(
    solved: Solved, solved_in_space: Solved, rows: int, cols: int, kept: float, seed: int
) -> None:
    board = Board(rows, cols)
    for truth, matches in (solved(board, max(1, round(kept * board.cells)), seed), solved_in_space(1 + seed % 3, seed)):
        flat = flatten_poses(truth)[..., None]
        wanted = flat[:, None].expand(-1, len(POWERS), -1, -1)
        torch.testing.assert_close(voted(matches, flat), wanted, rtol=1e-4, atol=1e-4)


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
    implied = noisy[matches.second] @ matches.pose
    halfway = unflatten_poses(voted(matches, flatten_poses(noisy)[..., None])[:, 0, :, 0])
    for piece in range(count):
        mine = matches.first == piece
        share = matches.probability[mine] / matches.probability[mine].sum()
        mean_rotation = (share[:, None, None] * implied.rotation[mine]).sum(0)
        mean_translation = (share[:, None] * implied.translation[mine]).sum(0)
        torch.testing.assert_close(halfway.rotation[piece], (noisy.rotation[piece] + mean_rotation) / 2)
        torch.testing.assert_close(halfway.translation[piece], (noisy.translation[piece] + mean_translation) / 2)


def test_votes_reach_both_colours_of_the_checkerboard(solved: Solved) -> None:
    """The votes for a piece depend on its neighbours and on those beyond them."""
    _, matches = solved(Board(1, 6), 6)
    flat = random_flat(6)
    for piece in range(6):
        changed = flat.clone()
        changed[piece] += 1
        moved = (voted(matches, changed) - voted(matches, flat)).abs().amax((2, 3))
        assert (moved[:, POWERS.index(8)] > 1e-6).all()


RIGHT, BOTTOM, LEFT, TOP = range(4)


def noise(count: int, dimension: int = 2, seed: int = 0) -> Poses:
    generator = seeded(seed)
    rotation = torch.randn(count, dimension, dimension, generator=generator)
    return Poses(rotation, torch.randn(count, dimension, generator=generator))


def mixed(a: float, one: Poses, b: float, two: Poses) -> Poses:
    return Poses(a * one.rotation + b * two.rotation, a * one.translation + b * two.translation)


def assert_same(found: Poses, expected: Poses, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found.rotation, expected.rotation, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(found.translation, expected.translation, rtol=tolerance, atol=tolerance)


def votes(clusters: Clusters, poses: Poses, samples: int = 1) -> Poses:
    """The vote of its whole cluster for the pose of every piece."""
    return clusters.members(clusters.placed(poses, samples), samples)


def together(clusters: Clusters) -> Tensor:
    """(n, n): whether two pieces are in one cluster."""
    return clusters.label[:, None] == clusters.label


def within(clusters: Clusters) -> Poses:
    """(n·n): the second piece's pose as seen from the first."""
    count = len(clusters.label)
    first, second = torch.cartesian_prod(torch.arange(count), torch.arange(count)).unbind(1)
    return clusters.frame[first].inverse() @ clusters.frame[second]


def assert_true(clusters: Clusters, truth: Poses, tolerance: float = 1e-5) -> None:
    """Every cluster is as in the truth, up to one rigid motion."""
    for label in clusters.label.unique():
        mine = clusters.label == label
        frame, true = clusters.frame[mine], truth[mine]
        motion = true[:1] @ frame[:1].inverse()
        assert_same(motion[[0] * len(frame)] @ frame, true, tolerance)


def doubtful(matches: Matches) -> Matches:
    """The same matings, each with a probability of its own, mostly low and whether it is true or not."""
    chance = ((torch.randperm(len(matches), generator=seeded(0)) + 1) / len(matches)) ** 8
    return replace(matches, evidence=chance[:, None])


def beside(*matings: tuple[int, int, int, float]) -> Matches:
    """Matings of unturned pieces at a pitch of one: (first, at this side of, second, probability)."""
    first, side, second, chance = zip(*matings, strict=True)
    a, b = (torch.tensor(side) + 2) % 4, torch.tensor(side)
    sides = 4 * torch.tensor(first) + a, 4 * torch.tensor(second) + b
    return matches_of_sides(*sides, 1.0, torch.tensor(chance)[:, None])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 7), st.integers(1, 7), st.floats(0.1, 1), st.integers(0, 2**31))
def test_clusters_are_what_hangs_together(solved: Solved, rows: int, cols: int, kept: float, seed: int) -> None:
    board = Board(rows, cols)
    truth, matches = solved(board, max(1, round(kept * board.cells)), seed)
    count = len(truth)
    for threshold, clusters in zip(THRESHOLDS, grow_clusters(matches, count), strict=True):
        used = matches[matches.probability.double() >= threshold]
        links = coo_matrix((torch.ones(len(used)), (used.first, used.second)), shape=(count, count))
        label = torch.from_numpy(connected_components(links, directed=False)[1])
        assert torch.equal(together(clusters), label[:, None] == label)
        assert torch.equal(clusters.sizes(), together(clusters).sum(1))
        assert_true(clusters, truth)
        assert_same(votes(clusters, truth), truth)


@pytest.mark.parametrize("side", [2, 3])
def test_the_same_holds_in_space(side: int, solved_in_space: Solved) -> None:
    truth, matches = solved_in_space(side, side, least=0.91)
    count = len(truth)
    seen = torch.stack([(truth.inverse()[[i] * count] @ truth).translation for i in range(count)])
    for clusters in grow_clusters(matches, count):
        assert together(clusters).all()
        assert_true(clusters, truth, 1e-4)
        assert_same(votes(clusters, truth), truth, 1e-4)
        reach = torch.cat([seen.amax(1), -seen.amin(1)], -1)
        torch.testing.assert_close(clusters.reach(), reach, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_whatever_matches_say_nothing_collides_or_leaves_its_room(dimension: int, seed: int) -> None:
    count, room = 20, torch.tensor([1.0, 2.0, 2.5])[:dimension]
    rotation = torch.linalg.qr(torch.randn(60, dimension, dimension, generator=seeded(seed)).double())[0]
    rotation[..., 0] *= torch.linalg.det(rotation)[:, None]
    relative = Poses(rotation.float(), torch.nn.functional.normalize(noise(60, dimension, seed).translation))
    pairs = torch.randint(0, count, (60, 2), generator=seeded(seed))
    matches = Matches(*pairs.unbind(1), relative, torch.zeros(60, dtype=torch.long), torch.ones(60, 1))
    clusters = grow_clusters(matches, count, room.expand(count, -1))[0]
    free = grow_clusters(matches, count)[0]
    assert len(free.label.unique()) < len(clusters.label.unique()) < count
    for label in clusters.label.unique():
        places = clusters.frame.translation[clusters.label == label]
        assert ((places.amax(0) - places.amin(0)).sort().values <= room + 1e-3).all()
        assert (torch.cdist(places, places) + 9 * torch.eye(len(places))).min() > 0.5 - 1e-4


@pytest.mark.parametrize("dimension", [2, 3])
def test_votes_are_linear(dimension: int, solved: Solved, solved_in_space: Solved) -> None:
    _, matches = solved(Board(3, 6), 18) if dimension == 2 else solved_in_space(3)
    count = len(matches.first.unique())
    one, two = noise(count, dimension, 1), noise(count, dimension, 2)
    flat = [voted(matches, flatten_poses(poses)[..., None]) for poses in (one, two, mixed(0.7, one, -2, two))]
    torch.testing.assert_close(flat[2], 0.7 * flat[0] - 2 * flat[1], rtol=1e-4, atol=1e-4)
    for clusters in grow_clusters(matches, count):
        separate = mixed(0.7, votes(clusters, one), -2, votes(clusters, two))
        assert_same(votes(clusters, mixed(0.7, one, -2, two)), separate, 1e-4)


def test_votes_are_unbiased_and_take_the_noise_away(solved: Solved) -> None:
    """The mean of c members has 1/c of the variance; a member far from the middle also swings with the rotation."""
    truth, matches = solved(Board(3, 4), 12, least=0.91)
    clusters, samples = grow_clusters(matches, 12)[0], 4000
    clean = truth[torch.arange(12).repeat_interleave(samples)]
    voted = votes(clusters, mixed(0.3, clean, 1, noise(12 * samples)), samples)
    left = mixed(1, voted, -0.3, clean)
    rotation, translation = left.rotation.view(12, samples, 2, 2), left.translation.view(12, samples, 2)
    assert max(rotation.mean(1).abs().max(), translation.mean(1).abs().max()) < 5 * 12**-0.5 * samples**-0.5
    torch.testing.assert_close(rotation.var(1), torch.full((12, 2, 2), 1 / 12), rtol=0.15, atol=0)
    away = (truth.translation - truth.translation.mean(0)).square().sum(-1, keepdim=True)
    torch.testing.assert_close(translation.var(1), ((1 + away) / 12).expand(-1, 2), rtol=0.15, atol=0)


def test_votes_and_clusters_never_cross_puzzles(solved: Solved) -> None:
    one, two = solved(Board(3, 3), 9, seed=1)[1], solved(Board(2, 4), 8, seed=2)[1]
    both = join_matches([one, two], [0, 9])
    poses = noise(17)
    changed = Poses(*(torch.cat([part[:9], -part[9:]]) for part in (poses.rotation, poses.translation)))
    before, after = (voted(both, flatten_poses(some)[..., None]) for some in (poses, changed))
    assert torch.equal(before[:9], after[:9])
    assert not torch.equal(before[9:], after[9:])
    torch.testing.assert_close(before[:9], voted(one, flatten_poses(poses[:9])[..., None]))
    grown = grow_clusters(both, 17), grow_clusters(one, 9), grow_clusters(two, 8)
    for clusters, first, second in zip(*grown, strict=True):
        assert torch.equal(together(clusters), torch.block_diag(together(first).int(), together(second).int()).bool())
        assert_same(votes(clusters, poses)[:9], votes(clusters, changed)[:9], 0)
        assert_same(votes(clusters, poses)[:9], votes(first, poses[:9]))
        assert_same(votes(clusters, poses)[9:], votes(second, poses[9:]))
        assert torch.equal(clusters.reach()[:9], first.reach())


def test_what_contradicts_more_probable_matings_is_passed_over() -> None:
    """Pieces 1 and 2 both match the right of 0; only later is 2 offered another place."""
    matches = beside((1, RIGHT, 0, 0.99), (2, RIGHT, 0, 0.95), (2, RIGHT, 1, 0.3))
    sure, likely, possible = grow_clusters(matches, 3)
    for clusters in (sure, likely):
        assert clusters.sizes().tolist() == [2, 2, 1]
        assert torch.equal(within(clusters).translation[1], torch.tensor([1.0, 0.0]))
    assert possible.sizes().tolist() == [3, 3, 3]
    assert torch.equal(possible.frame.translation, torch.tensor([[-1.0, 0], [0, 0], [1, 0]]))


def test_clusters_whose_other_members_would_collide_are_not_joined() -> None:
    """Laid below 2, the hook of 3, 4, 5 and 6 would bring 6 onto 1; laid right of 1, it has room."""
    corner = (1, RIGHT, 0, 0.99), (2, BOTTOM, 0, 0.98)
    hook = (4, RIGHT, 3, 0.99), (5, TOP, 4, 0.98), (6, TOP, 5, 0.97)
    refused = grow_clusters(beside(*corner, *hook, (3, BOTTOM, 2, 0.95)), 7)[0]
    assert refused.sizes().tolist() == [3] * 3 + [4] * 4
    joined = grow_clusters(beside(*corner, *hook, (6, RIGHT, 1, 0.95)), 7)[0]
    assert joined.sizes().tolist() == [7] * 7


def test_improbable_matches_join_nothing() -> None:
    for chance, sizes in ((0.95, [2, 2, 2]), (0.6, [1, 2, 2]), (0.2, [1, 1, 2]), (0.05, [1, 1, 1])):
        found = grow_clusters(beside((1, RIGHT, 0, chance)), 2)
        assert [int(clusters.sizes().max()) for clusters in found] == sizes


@pytest.mark.parametrize("side", [RIGHT, BOTTOM, LEFT, TOP])
def test_no_cluster_is_longer_than_its_board_however_that_lies(side: int) -> None:
    row = (1, side, 0, 0.99), (2, side, 1, 0.98), (3, side, 2, 0.97)
    for cells, sizes in ((4, [4, 4, 4, 4]), (3, [3, 3, 3, 1]), (2, [2, 2, 2, 2])):
        room = torch.tensor([[0.0, cells - 1.0]]).expand(4, -1)
        assert grow_clusters(beside(*row), 4, room)[0].sizes().tolist() == sizes
    corner = beside((1, side, 0, 0.99), (2, (side + 1) % 4, 1, 0.98))
    assert grow_clusters(corner, 3, torch.tensor([[0.0, 2.0]]).expand(3, -1))[0].sizes().tolist() == [2, 2, 1]
    assert grow_clusters(corner, 3, torch.tensor([[1.0, 1.0]]).expand(3, -1))[0].sizes().tolist() == [3, 3, 3]


def test_true_clusters_have_room_each_on_its_own_board(solved: Solved) -> None:
    for rows, cols in ((1, 5), (4, 1), (3, 4), (7, 7)):
        board = Board(rows, cols)
        _, matches = solved(board, board.cells)
        room = board.pitch * torch.tensor(sorted((rows - 1, cols - 1))).expand(board.cells, -1)
        both = grow_clusters(matches, board.cells, room), grow_clusters(matches, board.cells)
        for bound, free in zip(*both, strict=True):
            assert torch.equal(bound.label, free.label)
            assert_same(bound.frame, free.frame, 0)
    row = beside((1, RIGHT, 0, 0.99), (2, RIGHT, 1, 0.98))
    room = torch.tensor([[0.0, 1.0]] * 3 + [[0.0, 2.0]] * 3)
    assert grow_clusters(join_matches([row, row], [0, 3]), 6, room)[0].sizes().tolist() == [2, 2, 1, 3, 3, 3]


def test_clusters_are_nested_and_their_frames_start_in_the_middle_of_their_boxes(photo_puzzle: Puzzle) -> None:
    matches = doubtful(find_matches(photo_puzzle))
    found = grow_clusters(matches, len(photo_puzzle))
    assert len({len(clusters.label.unique()) for clusters in found}) == len(THRESHOLDS)
    for clusters in found:
        for label in clusters.label.unique():
            placed = clusters.frame.translation[clusters.label == label]
            torch.testing.assert_close(placed.amax(0), -placed.amin(0))
    for tight, wide in pairwise(found):
        settled = together(tight)
        assert together(wide)[settled].all()
        assert_same(within(wide)[settled.flatten()], within(tight)[settled.flatten()])


def test_the_order_of_pieces_and_of_matches_does_not_matter(photo_puzzle: Puzzle) -> None:
    matches, count = doubtful(find_matches(photo_puzzle)), len(photo_puzzle)
    order = torch.randperm(count, generator=seeded(3))
    place = order.argsort()
    shuffled = matches[torch.randperm(len(matches), generator=seeded(4))]
    renamed = replace(shuffled, first=place[shuffled.first], second=place[shuffled.second])
    poses, flat = noise(count), random_flat(count)
    torch.testing.assert_close(voted(renamed, flat[order]), voted(matches, flat)[order], rtol=1e-4, atol=1e-5)
    for plain, other in zip(grow_clusters(matches, count), grow_clusters(renamed, count), strict=True):
        assert torch.equal(together(other), together(plain)[order][:, order])
        assert torch.equal(other.reach(), plain.reach()[order])
        assert_same(other.frame, plain.frame[order], 0)
        assert_same(votes(other, poses[order]), votes(plain, poses)[order])


@pytest.mark.parametrize("turned", range(4))
def test_reach_is_given_side_by_side_in_the_piece_s_own_frame(turned: int, true_sides: Callable[..., tuple]) -> None:
    board, cells = Board(2, 3), torch.arange(6)
    turns = torch.tensor([0, 0, turned, 0, turned, 0])
    first, second = true_sides(board, cells, turns)
    matches = matches_of_sides(first, second, board.pitch, torch.full((len(first), 1), 0.95))
    # Cells beyond the piece to the right, bottom, left and top of the board.
    beyond = [[2, 1, 0, 0], [1, 1, 1, 0], [0, 1, 2, 0], [2, 0, 0, 1], [1, 0, 1, 1], [0, 0, 2, 1]]
    # Side a of a piece that is turned by t faces the board's side a + t.
    expected = [[cells[(side + turn) % 4] for side in range(4)] for cells, turn in zip(beyond, turns, strict=True)]
    for clusters in grow_clusters(matches, 6):
        torch.testing.assert_close(clusters.reach() / board.pitch, torch.tensor(expected).float())


def test_reach_is_the_same_by_boxes_by_blocks_and_by_all_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    label, place = torch.randint(0, 9, (60,), generator=generator), torch.randn(60, 2, generator=generator)
    quarter = turn_matrix(torch.randint(0, 4, (60,), generator=generator))
    pairs = Clusters(label, Poses(quarter, place))._reach_of(torch.arange(60))
    assert torch.equal(Clusters(label, Poses(quarter, place)).reach(), pairs)
    tilted = Clusters(label, Poses(quarter @ torch.tensor([[0.6, -0.8], [0.8, 0.6]]), place))
    whole = tilted.reach()
    assert torch.equal(tilted.reach(pairs=200), whole)


def test_pieces_without_matches_stay_alone_and_keep_their_own_pose(solved: Solved) -> None:
    _, matches = solved(Board(2, 2), 4)
    flat = random_flat(6)
    kept = flat[:, None].expand(-1, len(POWERS), -1, -1)
    assert torch.equal(voted(matches, flat)[4:], kept[4:])
    assert torch.equal(voted(replace(matches, evidence=torch.zeros_like(matches.evidence)), flat), kept)
    for clusters in grow_clusters(matches[torch.zeros(0, dtype=torch.long)], 3):
        assert clusters.sizes().tolist() == [1, 1, 1]
        assert not clusters.reach().any()
        assert_same(votes(clusters, noise(6), 2), noise(6), 0)


def test_clusters_of_a_photo_are_mostly_true(photo_puzzle: Puzzle) -> None:
    truth, count = photo_puzzle.truth, len(photo_puzzle)
    sure = grow_clusters(find_matches(photo_puzzle), count)[0]
    expected, found = within(Clusters(torch.zeros(count, dtype=torch.long), truth)), within(sure)
    right = (expected.translation - found.translation).norm(dim=-1) < photo_puzzle.board.pitch / 4
    assert together(sure).float().mean() > 0.5
    assert right[together(sure).flatten()].float().mean() > 0.7


SPACE = CosSin()


SHAPES = {"one piece": [(0, 0)], "a line": [(0, 0), (1, 0), (2, 0)], "a corner": [(0, 0), (1, 0), (0, 1)]}


def cluster_of(shape: list[tuple[int, int]], board: Board, seed: int = 0) -> Clusters:
    """One cluster of unequally turned pieces, relative to the middle of its box."""
    places = torch.tensor(shape) * board.pitch
    middle = (places.amax(0) + places.amin(0)) / 2
    turns = torch.randint(4, (len(shape),), generator=seeded(seed))
    return Clusters(torch.zeros(len(shape), dtype=torch.long), Poses(turn_matrix(turns), places - middle))


def room_of(board: Board) -> Tensor:
    return board.centres().amax(0) - board.centres().amin(0)


def stands_of(clusters: Clusters, board: Board) -> BoardPosterior:
    count = len(clusters.label)
    return board_posterior(clusters, room_of(board).expand(count, 2), torch.full((count,), board.pitch))


def all_stands(clusters: Clusters, board: Board) -> tuple[list[Poses], list[Tensor]]:
    """By trying: every frame that puts each member exactly onto a cell, and the members' vectors in it."""
    frames, vectors = [], []
    for turn in range(4):
        rotation = turn_matrix(torch.tensor([turn]))
        first = (rotation[0] @ clusters.frame.translation[0]).expand(board.cells, 2)
        for shift in board.centres() - first:
            frame = Poses(rotation, shift[None])
            members = frame[[0] * len(clusters.label)] @ clusters.frame
            apart = torch.cdist(members.translation, board.centres()).amin(1)
            if apart.max() < 1e-4:
                frames.append(frame)
                vectors.append(SPACE.to_vector(members))
    return frames, vectors


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("board", [Board(3, 3), Board(2, 4), Board(4, 3), Board(1, 4)])
def test_open_stands_are_the_poses_with_every_member_on_a_cell(shape: str, board: Board) -> None:
    clusters = cluster_of(SHAPES[shape], board)
    frames, _ = all_stands(clusters, board)
    along_x, along_y = stands_of(clusters, board).open[0].sum(-1).unbind(-1)
    assert int((along_x * along_y).sum()) == len(frames)


@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 1000), st.floats(0.001, 0.98))
@settings(max_examples=40, deadline=None)
def test_the_mean_is_that_of_all_stands_weighed_by_their_likelihood(shape: str, seed: int, alpha_bar: float) -> None:
    board, samples = Board(3, 4), 2
    clusters = cluster_of(SHAPES[shape], board, seed)
    frames, vectors = all_stands(clusters, board)
    true = vectors[seed % len(vectors)]
    noise = torch.randn(len(true), samples, 4, generator=seeded(seed))
    noisy = alpha_bar**0.5 * true[:, None] + (1 - alpha_bar) ** 0.5 * noise
    found = stands_of(clusters, board).mean(
        SPACE.to_poses(noisy.flatten(0, 1)), torch.full((len(true), samples), alpha_bar)
    )
    for sample in range(samples):
        missed = torch.stack([(noisy[:, sample] - alpha_bar**0.5 * vector).square().sum() for vector in vectors])
        chance = torch.softmax(-missed.double() / (2 * (1 - alpha_bar)), 0).float()
        rotation = sum(c * frame.rotation[0] for c, frame in zip(chance, frames, strict=True))
        translation = sum(c * frame.translation[0] for c, frame in zip(chance, frames, strict=True))
        for member in range(len(true)):
            row = member * samples + sample
            torch.testing.assert_close(found.rotation[row], rotation, rtol=1e-3, atol=1e-3)
            torch.testing.assert_close(found.translation[row], translation, rtol=1e-3, atol=1e-3)


def test_posteriors_are_separate_each_on_its_own_board() -> None:
    small, large = Board(2, 2), Board(3, 4)
    one, two = cluster_of(SHAPES["a corner"], small), cluster_of(SHAPES["a line"], large, 1)
    frame = Poses(*(torch.cat([vars(c.frame)[part] for c in (one, two)]) for part in ("rotation", "translation")))
    both = Clusters(torch.cat([one.label, two.label + 7]), frame)
    room = torch.cat([room_of(small).expand(3, 2), room_of(large).expand(3, 2)])
    pitch = torch.tensor([small.pitch] * 3 + [large.pitch] * 3)
    noisy = SPACE.to_poses(torch.randn(6, 4, generator=seeded(3)))
    alpha_bar = torch.tensor([[0.2]] * 3 + [[0.6]] * 3)
    together = board_posterior(both, room, pitch).mean(noisy, alpha_bar)
    apart = [
        stands_of(clusters, board).mean(noisy[rows], alpha_bar[rows])
        for clusters, board, rows in ((one, small, slice(0, 3)), (two, large, slice(3, 6)))
    ]
    torch.testing.assert_close(together.rotation, torch.cat([a.rotation for a in apart]))
    torch.testing.assert_close(together.translation, torch.cat([a.translation for a in apart]))


def test_a_cluster_that_fits_nowhere_still_gets_an_answer() -> None:
    answer = stands_of(cluster_of(SHAPES["a line"], Board(2, 2)), Board(2, 2)).mean(
        SPACE.to_poses(torch.randn(3, 4, generator=seeded(0))), torch.full((3, 1), 0.5)
    )
    assert answer.rotation.isfinite().all()
    assert answer.translation.isfinite().all()
