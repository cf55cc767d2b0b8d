"""Peak memory."""

from __future__ import annotations

import numpy as np

from diffassemble.evaluation.memory import peak_megabytes


def test_peak_grows_with_what_is_used_and_stays() -> None:
    before = peak_megabytes()
    big = np.ones(40_000_000)
    during = peak_megabytes()
    del big
    assert 10 < before < 100_000
    assert during >= before
    assert during >= 320
    assert peak_megabytes() >= during
