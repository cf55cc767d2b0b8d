"""Points on surfaces lie on them, evenly."""

import pytest
import torch

from diffassemble.core.surfaces import sample_surface, surface_area

SQUARE = torch.tensor([[0.0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0]])
TRIANGLES = torch.tensor([[0, 1, 2], [0, 2, 3]])


def test_the_area_of_a_rectangle() -> None:
    assert surface_area(SQUARE, TRIANGLES) == pytest.approx(2)


def test_points_are_even_and_normals_point_out() -> None:
    points, normals = sample_surface(SQUARE, TRIANGLES, 40_000, torch.Generator().manual_seed(0))
    assert torch.allclose(points.mean(0), torch.tensor([1.0, 0.5, 0]), atol=0.01)
    assert torch.allclose(points.var(0), torch.tensor([4 / 12, 1 / 12, 0]), atol=0.01)
    assert torch.allclose(normals, torch.tensor([0.0, 0, 1]).expand_as(normals))


def test_a_cloud_gives_its_own_points_each_alike_often() -> None:
    none = torch.zeros(0, 3, dtype=torch.long)
    points, normals = sample_surface(SQUARE, none, 10, torch.Generator().manual_seed(0))
    often = (points[:, None] == SQUARE).all(-1).sum(0)
    assert often.sum() == 10
    assert often.min() >= 2
    assert not normals.any()
