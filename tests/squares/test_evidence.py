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
from diffassemble.network.batch import PuzzleBatch, with_matches
from diffassemble.network.evidence import POWERS, THRESHOLDS, BoardPosterior, Clusters, grow_clusters, votes
from diffassemble.squares.edges import find_matches, matches_of_sides
from diffassemble.squares.placement import touching_sides

Solved = Callable[..., tuple[Poses, Matches]]
RIGHT, BOTTOM, LEFT, TOP = range(4)
SPACE = CosSin()
both_dimensions = pytest.mark.parametrize("dimension", [2, 3])


def voted(matches: Matches, poses: Poses) -> Poses:
    """Votes after all rounds (n·v poses) on one sample of linear poses."""
    weight = matches.probability[:, None]
    rotation, place = votes(matches, poses.rotation[:, None], poses.translation[:, None], weight, None, 1e-9)
    return Poses(rotation.flatten(0, 2), place.flatten(0, 2))


def by_clusters(clusters: Clusters, poses: Poses, samples: int = 1) -> Poses:
    """Poses (n·k) by the means of their clusters."""
    parts = (part.unflatten(0, (-1, samples)) for part in (poses.rotation, poses.translation))
    rotation, place = clusters.placed(*parts)
    return Poses(rotation.flatten(0, 1), place.flatten(0, 1))


def example(dimension: int, solved: Solved, solved_in_space: Solved, least: float = 0.01) -> tuple[Poses, Matches]:
    return solved(Board(3, 4), 12, least=least) if dimension == 2 else solved_in_space(2, least=least)


def noise(count: int, dimension: int = 2, seed: int = 0) -> Poses:
    generator = seeded(seed)
    rotation = torch.randn(count, dimension, dimension, generator=generator)
    return Poses(rotation, torch.randn(count, dimension, generator=generator))


def mixed(a: float, one: Poses, b: float, two: Poses) -> Poses:
    return Poses(a * one.rotation + b * two.rotation, a * one.translation + b * two.translation)


def assert_same(found: Poses, expected: Poses, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(found.rotation, expected.rotation, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(found.translation, expected.translation, rtol=tolerance, atol=tolerance)


def together(clusters: Clusters) -> Tensor:
    """(n, n): whether two pieces are in one cluster."""
    return clusters.label[:, None] == clusters.label


def within(clusters: Clusters) -> Poses:
    """(n·n): the second piece's pose relative to the first."""
    count = len(clusters.label)
    first, second = torch.cartesian_prod(torch.arange(count), torch.arange(count)).unbind(1)
    return clusters.frame[first].inverse() @ clusters.frame[second]


def beside(*matings: tuple[int, int, int, float]) -> Matches:
    """Matings of unturned pieces at a pitch of one: (first, at this side of, second, probability)."""
    first, side, second, chance = zip(*matings, strict=True)
    a, b = (torch.tensor(side) + 2) % 4, torch.tensor(side)
    sides = 4 * torch.tensor(first) + a, 4 * torch.tensor(second) + b
    return matches_of_sides(*sides, 1.0, torch.tensor(chance)[:, None])


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 6), st.integers(1, 6), st.floats(0.1, 1), st.integers(0, 2**31))
def test_true_assemblies_are_fixed_points_and_clusters_what_hangs_together(
    solved: Solved, solved_in_space: Solved, rows: int, cols: int, kept: float, seed: int
) -> None:
    board = Board(rows, cols)
    for truth, matches in (solved(board, max(1, round(kept * board.cells)), seed), solved_in_space(1 + seed % 3, seed)):
        count = len(truth)
        every = torch.arange(count).repeat_interleave(len(POWERS))
        assert_same(voted(matches, truth), truth[every])
        for threshold, clusters in zip(THRESHOLDS, grow_clusters(matches, count), strict=True):
            used = matches[matches.probability.double() >= threshold]
            links = coo_matrix((torch.ones(len(used)), (used.first, used.second)), shape=(count, count))
            label = torch.from_numpy(connected_components(links, directed=False)[1])
            assert torch.equal(together(clusters), label[:, None] == label)
            assert torch.equal(clusters.sizes(), together(clusters).sum(1))
            assert_same(by_clusters(clusters, truth), truth)


@both_dimensions
def test_one_round_goes_halfway_to_the_weighted_mean_of_what_matches_imply(
    dimension: int, solved: Solved, solved_in_space: Solved
) -> None:
    truth, matches = example(dimension, solved, solved_in_space)
    noisy = noise(len(truth), dimension)
    implied = noisy[matches.second] @ matches.pose
    halfway = voted(matches, noisy)[:: len(POWERS)]
    for piece in range(len(truth)):
        mine = matches.first == piece
        share = (matches.probability[mine] / matches.probability[mine].sum())[:, None]
        rotation, translation = share[..., None] * implied.rotation[mine], share * implied.translation[mine]
        mean = Poses(rotation.sum(0, keepdim=True), translation.sum(0, keepdim=True))
        assert_same(halfway[[piece]], mixed(0.5, noisy[[piece]], 0.5, mean))


@both_dimensions
def test_votes_and_cluster_means_are_linear(dimension: int, solved: Solved, solved_in_space: Solved) -> None:
    truth, matches = example(dimension, solved, solved_in_space)
    one, two = noise(len(truth), dimension, 1), noise(len(truth), dimension, 2)
    estimates = [lambda poses: voted(matches, poses)]
    estimates += [lambda poses, c=clusters: by_clusters(c, poses) for clusters in grow_clusters(matches, len(truth))]
    for estimate in estimates:
        assert_same(estimate(mixed(0.7, one, -2, two)), mixed(0.7, estimate(one), -2, estimate(two)))


@both_dimensions
@pytest.mark.parametrize("seed", range(2))
def test_whatever_matches_imply_nothing_collides_or_leaves_its_room(dimension: int, seed: int) -> None:
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


def test_cluster_means_are_unbiased_and_take_the_noise_away(solved: Solved) -> None:
    """The mean of c members has 1/c of the variance; a member far from the middle also swings with the rotation."""
    truth, matches = solved(Board(3, 4), 12, least=0.91)
    clusters, samples = grow_clusters(matches, 12)[0], 4000
    clean = truth[torch.arange(12).repeat_interleave(samples)]
    found = by_clusters(clusters, mixed(0.3, clean, 1, noise(12 * samples)), samples)
    left = mixed(1, found, -0.3, clean)
    rotation, translation = left.rotation.view(12, samples, 2, 2), left.translation.view(12, samples, 2)
    assert max(rotation.mean(1).abs().max(), translation.mean(1).abs().max()) < 5 * 12**-0.5 * samples**-0.5
    torch.testing.assert_close(rotation.var(1), torch.full((12, 2, 2), 1 / 12), rtol=0.15, atol=0)
    away = (truth.translation - truth.translation.mean(0)).square().sum(-1, keepdim=True)
    torch.testing.assert_close(translation.var(1), ((1 + away) / 12).expand(-1, 2), rtol=0.15, atol=0)


def test_votes_and_clusters_never_cross_puzzles(solved: Solved) -> None:
    one, two = solved(Board(3, 3), 9, seed=1)[1], solved(Board(2, 4), 8, seed=2)[1]
    puzzle = torch.arange(17) // 9
    batch = PuzzleBatch(torch.empty(17, 0), puzzle, torch.ones(17, 4), torch.ones(17, 2), None)
    both, poses = with_matches(batch, [one, two]).matches, noise(17)
    assert_same(voted(both, poses)[: 9 * len(POWERS)], voted(one, poses[:9]))
    assert_same(voted(both, poses)[9 * len(POWERS) :], voted(two, poses[9:]))
    grown = grow_clusters(both, 17), grow_clusters(one, 9), grow_clusters(two, 8)
    for clusters, first, second in zip(*grown, strict=True):
        assert torch.equal(together(clusters), torch.block_diag(together(first).int(), together(second).int()).bool())
        assert_same(by_clusters(clusters, poses)[:9], by_clusters(first, poses[:9]))
        assert torch.equal(clusters.reach()[:9], first.reach())


def test_what_contradicts_more_probable_matings_is_refused() -> None:
    """Pieces 1 and 2 both match the right of 0; only later is 2 offered another place."""
    matches = beside((1, RIGHT, 0, 0.99), (2, RIGHT, 0, 0.95), (2, RIGHT, 1, 0.3))
    *strict, possible = grow_clusters(matches, 3)
    for clusters in strict:
        assert clusters.sizes().tolist() == [2, 2, 1]
        assert torch.equal(within(clusters).translation[1], torch.tensor([1.0, 0.0]))
    assert torch.equal(possible.frame.translation, torch.tensor([[-1.0, 0], [0, 0], [1, 0]]))
    # Below 2, the hook of 3, 4, 5 and 6 would bring 6 onto 1; right of 1, it has room.
    corner = (1, RIGHT, 0, 0.99), (2, BOTTOM, 0, 0.98)
    hook = (4, RIGHT, 3, 0.99), (5, TOP, 4, 0.98), (6, TOP, 5, 0.97)
    assert grow_clusters(beside(*corner, *hook, (3, BOTTOM, 2, 0.95)), 7)[0].sizes().tolist() == [3] * 3 + [4] * 4
    assert grow_clusters(beside(*corner, *hook, (6, RIGHT, 1, 0.95)), 7)[0].sizes().tolist() == [7] * 7
    for chance, sizes in ((0.95, [2, 2, 2]), (0.6, [1, 2, 2]), (0.2, [1, 1, 2]), (0.05, [1, 1, 1])):
        found = grow_clusters(beside((1, RIGHT, 0, chance)), 2)
        assert [int(clusters.sizes().max()) for clusters in found] == sizes


@pytest.mark.parametrize("side", [RIGHT, BOTTOM, LEFT, TOP])
def test_no_cluster_is_longer_than_its_board_in_either_direction(side: int) -> None:
    row = (1, side, 0, 0.99), (2, side, 1, 0.98), (3, side, 2, 0.97)
    for cells, sizes in ((4, [4, 4, 4, 4]), (3, [3, 3, 3, 1]), (2, [2, 2, 2, 2])):
        room = torch.tensor([[0.0, cells - 1.0]]).expand(4, -1)
        assert grow_clusters(beside(*row), 4, room)[0].sizes().tolist() == sizes
    corner = beside((1, side, 0, 0.99), (2, (side + 1) % 4, 1, 0.98))
    assert grow_clusters(corner, 3, torch.tensor([[0.0, 2.0]]).expand(3, -1))[0].sizes().tolist() == [2, 2, 1]
    assert grow_clusters(corner, 3, torch.tensor([[1.0, 1.0]]).expand(3, -1))[0].sizes().tolist() == [3, 3, 3]


def test_clusters_of_a_photo_are_nested_mostly_true_and_independent_of_order(photo_puzzle: Puzzle) -> None:
    matches, count = find_matches(photo_puzzle), len(photo_puzzle)
    truth = within(Clusters(torch.zeros(count, dtype=torch.long), photo_puzzle.truth))
    certain = grow_clusters(matches, count)[0]
    right = (truth.translation - within(certain).translation).norm(dim=-1) < photo_puzzle.board.pitch / 4
    assert together(certain).float().mean() > 0.5
    assert right[together(certain).flatten()].float().mean() > 0.7
    # The same matings, each with a probability of its own, mostly low and whether it is true or not.
    chance = ((torch.randperm(len(matches), generator=seeded(0)) + 1) / len(matches)) ** 8
    matches = replace(matches, evidence=chance[:, None])
    order = torch.randperm(count, generator=seeded(3))
    place, shuffled = order.argsort(), matches[torch.randperm(len(matches), generator=seeded(4))]
    renamed = replace(shuffled, first=place[shuffled.first], second=place[shuffled.second])
    found, other = grow_clusters(matches, count), grow_clusters(renamed, count)
    for clusters, again in zip(found, other, strict=True):
        for label in clusters.label.unique():
            placed = clusters.frame.translation[clusters.label == label]
            torch.testing.assert_close(placed.amax(0), -placed.amin(0))
        assert torch.equal(together(again), together(clusters)[order][:, order])
        assert torch.equal(again.reach(), clusters.reach()[order])
        assert_same(again.frame, clusters.frame[order], 0)
    for tight, wide in pairwise(found):
        settled = together(tight)
        assert together(wide)[settled].all()
        assert_same(within(wide)[settled.flatten()], within(tight)[settled.flatten()])


@pytest.mark.parametrize("turned", range(4))
def test_reach_is_given_side_by_side_in_the_frame_of_the_piece(turned: int) -> None:
    board, cells = Board(2, 3), torch.arange(6)
    turns = torch.tensor([0, 0, turned, 0, turned, 0])
    first, second = touching_sides(board, cells, turns)
    matches = matches_of_sides(first, second, board.pitch, torch.full((len(first), 1), 0.95))
    # Cells beyond the piece to the right, bottom, left and top of the board.
    beyond = [[2, 1, 0, 0], [1, 1, 1, 0], [0, 1, 2, 0], [2, 0, 0, 1], [1, 0, 1, 1], [0, 0, 2, 1]]
    # Side a of a piece that is turned by t faces the board's side a + t.
    expected = [[cells[(side + turn) % 4] for side in range(4)] for cells, turn in zip(beyond, turns, strict=True)]
    for clusters in grow_clusters(matches, 6):
        torch.testing.assert_close(clusters.reach() / board.pitch, torch.tensor(expected).float())
        tilted = replace(clusters, frame=Poses(clusters.frame.rotation @ turn_matrix(torch.tensor(1)) * (1 + 1e-6),
                                               clusters.frame.translation))  # fmt: skip
        torch.testing.assert_close(tilted.reach(pairs=7), clusters.reach().roll(-1, 1), rtol=1e-4, atol=1e-4)


SHAPES = {"one piece": [(0, 0)], "a line": [(0, 0), (1, 0), (2, 0)], "a corner": [(0, 0), (1, 0), (0, 1)]}


def cluster_of(shape: list[tuple[int, int]], board: Board, seed: int = 0) -> Clusters:
    """One cluster of unequally turned pieces, relative to the middle of its box."""
    places = torch.tensor(shape) * board.pitch
    middle = (places.amax(0) + places.amin(0)) / 2
    turns = torch.randint(4, (len(shape),), generator=seeded(seed))
    return Clusters(torch.zeros(len(shape), dtype=torch.long), Poses(turn_matrix(turns), places - middle))


def posterior_of(clusters: Clusters, board: Board) -> BoardPosterior:
    room, count = board.centres().amax(0) - board.centres().amin(0), len(clusters.label)
    return BoardPosterior.of(clusters, room.expand(count, 2), torch.full((count,), board.pitch))


def mean_of(posterior: BoardPosterior, noisy: Tensor, alpha_bar: Tensor) -> Poses:
    """The mean frames (n·k) given noisy vectors (n, k, 4)."""
    poses = SPACE.to_poses(noisy.flatten(0, 1))
    parts = (part.unflatten(0, noisy.shape[:2]) for part in (poses.rotation, poses.translation))
    return Poses(*(part.flatten(0, 1) for part in posterior.mean(*parts, alpha_bar)))


def all_places(clusters: Clusters, board: Board) -> tuple[list[Poses], list[Tensor]]:
    """By trying: every frame that puts each member exactly onto a cell, and the members' vectors in it."""
    frames, vectors = [], []
    for turn in range(4):
        rotation = turn_matrix(torch.tensor([turn]))
        first = (rotation[0] @ clusters.frame.translation[0]).expand(board.cells, 2)
        for shift in board.centres() - first:
            frame = Poses(rotation, shift[None])
            members = frame[[0] * len(clusters.label)] @ clusters.frame
            if torch.cdist(members.translation, board.centres()).amin(1).max() < 1e-4:
                frames.append(frame)
                vectors.append(SPACE.to_vector(members))
    return frames, vectors


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("board", [Board(3, 3), Board(2, 4), Board(4, 3), Board(1, 4)])
def test_open_places_put_every_member_on_a_cell(shape: str, board: Board) -> None:
    clusters = cluster_of(SHAPES[shape], board)
    along_x, along_y = posterior_of(clusters, board).open[0].sum(-1).unbind(-1)
    assert int((along_x * along_y).sum()) == len(all_places(clusters, board)[0])
    # One that fits nowhere still gets finite means.
    found = mean_of(
        posterior_of(clusters, board), torch.randn(len(SHAPES[shape]), 1, 4), torch.full((len(SHAPES[shape]), 1), 0.5)
    )
    assert found.translation.isfinite().all()


@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 1000), st.floats(0.001, 0.98))
@settings(max_examples=20, deadline=None)
def test_the_mean_is_that_of_all_places_weighted_by_their_likelihood(shape: str, seed: int, alpha_bar: float) -> None:
    board = Board(3, 4)
    clusters = cluster_of(SHAPES[shape], board, seed)
    frames, vectors = all_places(clusters, board)
    true = vectors[seed % len(vectors)]
    noisy = alpha_bar**0.5 * true[:, None] + (1 - alpha_bar) ** 0.5 * torch.randn(
        len(true), 2, 4, generator=seeded(seed)
    )
    found = mean_of(posterior_of(clusters, board), noisy, torch.full((len(true), 2), alpha_bar))
    for sample in range(2):
        missed = torch.stack([(noisy[:, sample] - alpha_bar**0.5 * vector).square().sum() for vector in vectors])
        chance = torch.softmax(-missed.double() / (2 * (1 - alpha_bar)), 0).float()
        rotation = sum(c * frame.rotation for c, frame in zip(chance, frames, strict=True))
        translation = sum(c * frame.translation for c, frame in zip(chance, frames, strict=True))
        every = torch.zeros(len(true), dtype=torch.long)
        assert_same(found[sample::2], Poses(rotation, translation)[every], 1e-3)
