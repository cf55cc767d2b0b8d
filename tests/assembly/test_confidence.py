"""Strengths by weakest cuts against all cuts of small graphs, and calibration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffassemble.assembly.confidence import Calibration, calibration, path_confidence, weakest_group, weakest_join


def test_calibration_is_a_capped_logistic_function() -> None:
    strength = np.linspace(-40, 40, 9)
    found = Calibration(0.9, -0.4, 0.88)(strength)
    assert (np.diff(found) >= 0).all()
    assert found[0] < 1e-9
    assert found.max() == 0.88
    assert Calibration(2.0, -1.0)(np.array([0.5])) == pytest.approx(0.5)
    for kind in ("squares", "tabs", "free"):
        assert calibration(kind).slope > 0
    assert calibration("tabs", "one_side").ceiling < 0.9
    assert calibration("tabs", "never fitted") == calibration("tabs")


def test_a_join_is_as_strong_as_all_contacts_across_it() -> None:
    # 0-1-2-3 grew as a chain; 0 and 3 touch as well, so no cut is weaker than two contacts.
    joins = [(0, 1), (1, 2), (2, 3)]
    contacts = [(0, 1, 5.0), (1, 2, 1.0), (2, 3, 5.0)]
    assert weakest_join(4, joins, contacts).tolist() == [5.0, 5.0, 1.0, 1.0]  # the core is 0, of two alike the first
    closed = weakest_join(4, joins, [*contacts, (0, 3, 2.0)])
    assert closed.tolist() == [7.0, 7.0, 3.0, 3.0]
    assert weakest_join(1, [], []).tolist() == [-np.inf]


@given(st.lists(st.floats(-2, 6), min_size=10, max_size=10), st.floats(-3, 0))
def test_no_group_is_stronger_than_its_weakest_single_piece(odds: list[float], prior: float) -> None:
    contacts = [(one, two, value) for (one, two), value in zip(itertools.combinations(range(5), 2), odds, strict=True)]
    found = weakest_group(5, contacts, prior)
    for piece in range(5):
        alone = sum(value for one, two, value in contacts if piece in (one, two)) + prior
        assert found[piece] <= alone + 1e-9
    order = np.random.default_rng(0).permutation(5)
    shuffled = weakest_group(5, [(int(order[a]), int(order[b]), value) for a, b, value in contacts], prior)
    if len(set(odds)) == len(odds):
        assert shuffled[order] == pytest.approx(found)


def test_two_blocks_are_held_by_what_is_between_them() -> None:
    inside = [(0, 1, 9.0), (1, 2, 9.0), (0, 2, 9.0), (3, 4, 9.0)]
    found = weakest_group(5, [*inside, (2, 3, 1.5)])
    assert found.tolist() == [18.0, 18.0, 19.5, 1.5, 1.5]


def test_a_path_is_surest_in_its_middle() -> None:
    found = path_confidence(np.array([0.9, 0.5, 0.9, 0.9]))
    assert found == pytest.approx([0.45, 0.5, 1.0, 0.9, 0.81])
    assert path_confidence(np.zeros(0)).tolist() == [1.0]
