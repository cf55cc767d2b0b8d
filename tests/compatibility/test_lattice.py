"""BoardPosterior are all the places on the board, and the posterior mean over them is exact."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from diffassemble.core import Board, Poses, turn_matrix
from diffassemble.diffusion.spaces import CosSin
from diffassemble.network.board_places import BoardPosterior, board_posterior
from diffassemble.network.evidence import Clusters

SPACE = CosSin()
SHAPES = {
    "one piece": [(0, 0)],
    "a line": [(0, 0), (1, 0), (2, 0)],
    "a corner": [(0, 0), (1, 0), (0, 1)],
}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def cluster_of(shape: list[tuple[int, int]], board: Board, seed: int = 0) -> Clusters:
    """One cluster of unequally turned pieces, told from the middle of its box."""
    places = torch.tensor(shape) * board.pitch
    middle = (places.amax(0) + places.amin(0)) / 2
    turns = torch.randint(4, (len(shape),), generator=seeded(seed))
    return Clusters(torch.zeros(len(shape), dtype=torch.long), Poses(turn_matrix(turns), places - middle))


def stands_of(clusters: Clusters, board: Board) -> BoardPosterior:
    centres, count = board.centres(), len(clusters.label)
    room = (centres.amax(0) - centres.amin(0)).expand(count, 2)
    return board_posterior(clusters, room, torch.full((count,), board.pitch))


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


def test_clusters_are_judged_apart_each_on_its_own_board() -> None:
    small, large = Board(2, 2), Board(3, 4)
    one, two = cluster_of(SHAPES["a corner"], small), cluster_of(SHAPES["a line"], large, 1)
    both = Clusters(
        torch.cat([one.label, two.label + 7]),
        Poses(*(torch.cat(parts) for parts in zip(_parts(one), _parts(two), strict=True))),
    )
    room = torch.cat([_room(small).expand(3, 2), _room(large).expand(3, 2)])
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


def _parts(clusters: Clusters) -> tuple[Tensor, Tensor]:
    return clusters.frame.rotation, clusters.frame.translation


def _room(board: Board) -> Tensor:
    return board.centres().amax(0) - board.centres().amin(0)
