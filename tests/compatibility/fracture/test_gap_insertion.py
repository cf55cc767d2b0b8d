"""A chip is cast into the hole it left, and elsewhere it is not believed to belong."""

from __future__ import annotations

import numpy as np

from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.gap_insertion import INSERTED, find_gaps, insert_into_gaps, insertion_probability


def test_a_chip_finds_its_hole(standing: tuple[Cluster, Fragment, np.ndarray]) -> None:
    whole, chip, truth = standing
    matches = insert_into_gaps(chip, whole, find_gaps(whole, chip.spacing / 3), 1)
    points = chip.pyramid.levels[0].points
    off = points @ (matches[0].pose - truth)[:9].reshape(3, 3).T + (matches[0].pose - truth)[9:]
    assert np.linalg.norm(off, axis=1).max() < chip.spacing
    assert matches[0].level == INSERTED
    assert matches[0].probability > 0.5
    assert [match.probability for match in matches] == sorted((match.probability for match in matches), reverse=True)


def test_what_touches_more_is_more_probable() -> None:
    base = np.array([0.6, 0.05, 0.1], np.float32)
    for column, change in ((0, 0.2), (1, -0.05), (2, 0.2)):
        better = base.copy()
        better[column] += change
        assert insertion_probability(better) > insertion_probability(base)
