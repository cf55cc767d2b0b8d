"""A break's block is a solid that ends in a rough, bent sheet at its centre."""

import numpy as np
import pytest
import torch
from manifold3d import Error

from diffassemble.fragments.breaking import across, block_below


def test_frames_are_right_handed_with_the_normal_last() -> None:
    for seed in range(5):
        sheet = across(np.array([0.0, 3.0, 4.0]), np.zeros(3), torch.Generator().manual_seed(seed))
        assert sheet.frame @ sheet.frame.T == pytest.approx(np.eye(3), abs=1e-9)
        assert np.linalg.det(sheet.frame) == pytest.approx(1)
        assert sheet.frame[2] == pytest.approx([0, 0.6, 0.8])


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_solid_and_reach_below_everything(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = np.random.default_rng(seed).uniform(-0.5, 0.5, (200, 3)) * (1, 0.3, 0.1)
    sheet = across(np.array([1.0, 0.2, 0.1]), np.zeros(3), generator)
    block = block_below(sheet, points, generator)
    assert block.status() == Error.NoError
    assert block.volume() > 0
    assert len(block.decompose()) == 1
    corners = (np.array(block.to_mesh().vert_properties)[:, :3] - sheet.centre) @ sheet.frame.T
    local = (points - sheet.centre) @ sheet.frame.T
    assert (corners.min(0) < local.min(0)).all()
    assert (corners.max(0)[:2] > local.max(0)[:2]).all()
    top = corners[corners[:, 2] > corners[:, 2].min() + 1e-4]
    assert top[:, 2].std() > 1e-3
