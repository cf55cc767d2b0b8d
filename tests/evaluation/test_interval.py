"""Bootstrap intervals."""

from __future__ import annotations

import numpy as np
import pytest

from diffassemble.evaluation.interval import bootstrap_interval


def test_equal_scores_leave_no_doubt() -> None:
    assert bootstrap_interval([80.0] * 20) == (80.0, 80.0)


def test_interval_is_near_the_normal_one_and_repeats() -> None:
    values = np.random.default_rng(1).normal(70, 10, size=400).tolist()
    low, high = bootstrap_interval(values)
    half = 1.96 * np.std(values) / np.sqrt(400)
    assert low == pytest.approx(np.mean(values) - half, abs=0.25)
    assert high == pytest.approx(np.mean(values) + half, abs=0.25)
    assert bootstrap_interval(values) == bootstrap_interval(values[::-1]) == (low, high)
