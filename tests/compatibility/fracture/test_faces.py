"""The relief of a break, and its rim."""

from __future__ import annotations

import numpy as np
import torch

from diffassemble.core import Mesh
from diffassemble.fragments.descriptors import COUNTERPART_SIGNS, FACE_FEATURES, fracture_surface
from diffassemble.fragments.surface import sample


def test_the_rim_is_where_the_break_meets_the_original_surface(block: Mesh) -> None:
    whole = sample(block, 0.02, torch.Generator().manual_seed(0))
    top = whole.normals[:, 2] > 0.5
    face, features = fracture_surface(whole, top, 0.02)
    edge = np.minimum(0.5 - np.abs(face.points[:, 0]), 0.4 - np.abs(face.points[:, 1])) / 0.02
    near = edge < 4
    assert np.abs(face.rim[near] - edge[near]).max() < 1.5
    assert (face.rim[edge > 8] == 6).all()
    assert not face.original[edge > 8].any()
    assert (np.abs(face.original[edge < 2][:, 2]) < 0.5).all()
    assert np.allclose(face.smooth[edge > 4], [0, 0, 1], atol=1e-4)
    assert features.shape == (int(top.sum()), FACE_FEATURES) == (len(face.points), len(COUNTERPART_SIGNS))


def test_a_piece_that_is_all_break_has_no_rim(block: Mesh) -> None:
    whole = sample(block, 0.05, torch.Generator().manual_seed(0))
    face, _ = fracture_surface(whole, np.ones(len(whole), bool), 0.05)
    assert (face.rim == 6).all()
