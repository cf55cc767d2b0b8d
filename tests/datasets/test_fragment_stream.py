"""Every batch is a function of its step, and processes share it out."""

from dataclasses import replace

import pytest
import torch

from diffassemble.core import Mesh
from diffassemble.training.config import FragmentConfig
from diffassemble.training.fragment_data import FragmentStream, Pool, make_pool

CORNERS = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = torch.tensor([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
CONFIG = FragmentConfig(points=64, whole_share=1.0)


def pool(pieces: int) -> Pool:
    meshes = [Mesh(CORNERS + torch.tensor([i * 1.0, 0, 0]), FACES) for i in range(pieces)]
    return make_pool(meshes, torch.Generator().manual_seed(pieces), points=128)


@pytest.fixture(scope="module")
def stream() -> FragmentStream:
    return FragmentStream([[pool(2), pool(3)], [], [pool(5)]], CONFIG, pieces=20, seed=0)


def test_a_batch_is_the_same_every_time_and_another_at_every_step(stream: FragmentStream) -> None:
    first, again, other = (stream.batch(step).puzzles for step in (4, 4, 5))
    assert all(torch.equal(a.fragments.points, b.fragments.points) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0].fragments.points[0], other[0].fragments.points[0])
    assert sum(map(len, first)) >= 20


@pytest.mark.parametrize("world", [2, 3])
def test_processes_together_get_what_one_alone_would(stream: FragmentStream, world: int) -> None:
    alone, parts = stream.batch(1), [stream.batch(1, rank, world) for rank in range(world)]
    shared = [puzzle for part in parts for puzzle in part.puzzles]
    assert torch.equal(
        torch.cat([puzzle.fragments.points for puzzle in alone.puzzles]),
        torch.cat([puzzle.fragments.points for puzzle in shared]),
    )
    total = sum(map(len, alone.puzzles))
    for part in parts:
        assert part.weight == pytest.approx(sum(map(len, part.puzzles)) * world / total)


def test_pieces_get_lost_but_never_all() -> None:
    config = replace(CONFIG, whole_share=0.0, missing=0.9)
    lossy = FragmentStream([[pool(5)], [], []], config, pieces=20, seed=0)
    counts = [len(puzzle) for step in range(8) for puzzle in lossy.batch(step).puzzles]
    assert min(counts) == 2
    assert min(counts) < max(counts) <= 5
