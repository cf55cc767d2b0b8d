"""Pairwise evidence is used where either form of it is."""

from __future__ import annotations

import pytest

from diffassemble.network.config import ModelConfig


@pytest.mark.parametrize("edge_features", [False, True])
@pytest.mark.parametrize("votes", [False, True])
def test_pairwise(edge_features: bool, votes: bool) -> None:
    assert ModelConfig(edge_features=edge_features, votes=votes).pairwise == (edge_features or votes)
