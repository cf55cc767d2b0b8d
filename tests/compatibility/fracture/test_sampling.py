"""Surfaces are sampled evenly, at the spacing asked for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from diffassemble.core import FragmentPieces, InputError, Mesh
from diffassemble.fragments.surface import Sample, cloud_gap, facing_outward, is_cloud, sample, sample_near, spacing_of


def cloud_of(points: np.ndarray) -> Mesh:
    return Mesh(torch.from_numpy(points), torch.zeros(0, 3, dtype=torch.long))


def pieces_of(*meshes: Mesh) -> FragmentPieces:
    return FragmentPieces(torch.zeros(len(meshes), 1, 3), meshes, torch.zeros(len(meshes), 3))


def test_a_sample_has_one_point_in_the_square_of_its_spacing(block: Mesh) -> None:
    drawn = sample(block, 0.03, torch.Generator().manual_seed(0))
    area = 2 * (0.8 + 0.5 + 0.4)
    assert len(drawn) == pytest.approx(area / 0.03**2, rel=0.1)
    assert drawn.area * len(drawn) == pytest.approx(area, rel=1e-5)
    assert np.allclose(np.abs(drawn.normals).max(1), 1)
    assert ((drawn.points * drawn.normals).sum(1) > 0.2).all()
    assert len(drawn.thinned(0.06)) == pytest.approx(len(drawn) / 4, rel=0.2)


def test_a_sample_near_points_stays_there(block: Mesh) -> None:
    near = np.array([[0.5, 0, 0]], np.float32)
    drawn = sample_near(block, 0.02, near, 0.2, torch.Generator().manual_seed(0))
    assert len(drawn) == pytest.approx(np.pi * 0.2**2 / 0.02**2, rel=0.2)
    assert np.linalg.norm(drawn.points - near, axis=1).max() <= 0.2
    assert len(sample_near(block, 0.02, near + 9, 0.2, torch.Generator().manual_seed(0))) == 0


def test_clouds_are_told_by_their_lack_of_triangles(ball: Sample, block: Mesh) -> None:
    cloud = cloud_of(ball.points)
    assert is_cloud(cloud)
    assert not is_cloud(block)
    assert cloud_gap(cloud) == pytest.approx(np.sqrt(4 * np.pi / 3500), rel=0.1)
    drawn = sample(cloud, 0.1, torch.Generator().manual_seed(0))
    assert ((drawn.normals * drawn.points).sum(1) > 0.9).all()


def test_the_spacing_follows_the_surface_but_is_no_finer_than_a_cloud(block: Mesh, ball: Sample) -> None:
    assert spacing_of(pieces_of(block)) == pytest.approx(np.sqrt(3.4 / 40000), rel=1e-4)
    assert spacing_of(pieces_of(cloud_of(ball.points))) == pytest.approx(0.06, rel=0.1)
    with pytest.raises(InputError, match="neither surface nor extent"):
        spacing_of(pieces_of(cloud_of(np.zeros((5, 3), np.float32))))


def test_solids_inside_out_are_turned_round(block: Mesh) -> None:
    wrong = Mesh(block.vertices + 3, block.faces.flip(1))
    drawn = sample(facing_outward(wrong), 0.05, torch.Generator().manual_seed(0))
    assert (((drawn.points - 3) * drawn.normals).sum(1) > 0.2).all()
    assert facing_outward(block) is block
    sheet = Mesh(wrong.vertices, wrong.faces[:3])
    assert facing_outward(sheet) is sheet
