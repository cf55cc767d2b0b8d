"""The nearest points are the nearest points."""

from __future__ import annotations

import torch

from diffassemble.network.encoders.vector_neurons import find_neighbours

POINTS = torch.randn(3, 50, 3, generator=torch.Generator().manual_seed(0))


def test_they_are_those_of_all_pairs_and_the_nearest_is_the_point_itself() -> None:
    rows = find_neighbours(POINTS, 7).rows
    assert rows.shape == (3, 50, 7)
    expected = torch.cdist(POINTS.double(), POINTS.double()).topk(7, largest=False).indices
    assert torch.equal(rows, expected + 50 * torch.arange(3)[:, None, None])
    assert torch.equal(rows[:, :, 0].flatten(), torch.arange(150))


def test_small_clouds_and_clouds_of_equal_points_are_no_trouble() -> None:
    assert find_neighbours(POINTS[:, :3], 20).rows.shape == (3, 3, 3)
    assert find_neighbours(POINTS[:, :1], 20).rows.flatten().tolist() == [0, 1, 2]
    assert find_neighbours(POINTS, 0).rows.shape == (3, 50, 0)
    alike = find_neighbours(torch.zeros(1, 6, 3), 4).rows
    assert ((alike >= 0) & (alike < 6)).all()


def test_what_belongs_to_the_neighbours_is_gathered_within_each_cloud() -> None:
    near = find_neighbours(POINTS, 5)
    numbers = near.numbers(POINTS)
    vectors = near.vectors(torch.stack([POINTS, 2 * POINTS], -1))
    assert numbers.shape == (3, 50, 5, 3)
    assert vectors.shape == (3, 50, 3, 5, 2)
    torch.testing.assert_close(vectors[..., 1], 2 * numbers.transpose(2, 3))
    cloud, point, rank = 2, 17, 3
    assert torch.equal(numbers[cloud, point, rank], POINTS[cloud, near.rows[cloud, point, rank] - 50 * cloud])
