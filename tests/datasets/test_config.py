"""The puzzles that a model is trained on unless told otherwise."""

from __future__ import annotations

from diffassemble.training.config import DataConfig


def test_one_model_serves_all_sizes_and_kinds_of_damage() -> None:
    config = DataConfig()
    assert config.grids == (3, 12)
    assert config.missing == 0.4
    assert config.erode == 2
    assert 0 < config.whole_share < 1
    assert 0 < config.erode_share < 1
    assert 0 < config.favourite_share < 1
