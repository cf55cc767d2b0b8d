"""Matches are the best of what is possible, and as clear as their rivals are far."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from diffassemble.squares.baselines.candidates import Candidates, Matches, on_cycles, turn_between
from diffassemble.squares.edges import Borders, border_scores


def pixels(count: int) -> torch.Tensor:
    return torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(count))


def candidates(count: int, keep: int = 100) -> Candidates:
    return Candidates.of(Borders.of(pixels(count)).best(keep))


@pytest.mark.parametrize("seed", range(3))
def test_ratios_by_their_definition(seed: int) -> None:
    """Score of the pair over the best score that either side has with anybody else, among possible pairs."""
    given, scores = candidates(5), border_scores(pixels(5)).numpy().astype(float)
    forbidden = np.random.default_rng(seed).random(scores.shape) < 0.5
    forbidden |= forbidden.T
    rows = np.arange(20)[:, None]
    found = given.best(~forbidden[rows, given.side])
    listed = np.where(forbidden, np.inf, scores)
    seen = set()
    for (a, b), ratio in zip(found.sides.tolist(), found.ratio, strict=True):
        assert listed[a].min() == pytest.approx(listed[a, b], rel=1e-4)
        others = [np.delete(listed[a], b).min(), np.delete(listed[b], a).min()]
        if np.isfinite(others).all():
            assert ratio == pytest.approx((listed[a, b] + 0.02) / (min(others) + 0.02), rel=1e-3)
        seen |= {(a, b), (b, a)}
    best = {(a, int(listed[a].argmin())) for a in range(20) if np.isfinite(listed[a]).any()}
    assert best <= seen


def test_each_pair_is_listed_once_and_is_clear_only_if_mutual() -> None:
    given = candidates(12)
    found = given.best(np.ones(given.side.shape, bool))
    pairs = {frozenset(pair) for pair in found.sides.tolist()}
    assert len(pairs) == len(found)
    mutual = given.side[given.side[found.sides[:, 0], 0], 0] == found.sides[:, 0]
    assert ((found.ratio < 1) == mutual).all()


def test_weights_fall_with_the_ratio() -> None:
    ratio = np.array([0.0, 0.3, 0.9, 1.0, 5.0])
    weight = Matches(np.zeros((5, 2), np.int64), ratio).weight
    assert (np.diff(weight) < 0).all()
    assert weight[0] == 1
    assert weight[-1] > 0


def test_a_lone_piece_has_no_candidates() -> None:
    lone = candidates(1)
    assert lone.probable().shape == (0, 2)
    assert len(lone.best(np.ones(lone.side.shape, bool))) == 0


def test_nothing_possible_gives_no_matches() -> None:
    given = candidates(4)
    assert len(given.best(np.zeros(given.side.shape, bool))) == 0


def test_the_most_probable_pairs_come_first() -> None:
    given = candidates(6, keep=7)
    pairs = given.probable(above=0.05)
    place = [np.flatnonzero(given.side[a] == b)[0] for a, b in pairs]
    probability = given.probability[pairs[:, 0], place]
    assert (np.diff(probability) <= 0).all()
    assert (probability > 0.05).all()
    assert len(pairs) == (given.probability > 0.05).sum()


def test_the_turn_between_two_pieces_makes_their_sides_face_each_other() -> None:
    sides = np.array(list(itertools.product(range(4), repeat=2)))
    # Turned like this, the first side looks the opposite way of the second.
    assert ((sides[:, 0] + turn_between(sides) - sides[:, 1]) % 4 == 2).all()


@pytest.mark.parametrize("seed", range(20))
def test_edges_on_cycles_are_those_without_which_nothing_falls_apart(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = 12
    first, second = generator.integers(0, count, (2, int(generator.integers(0, 20))))
    first, second = first[first != second], second[first != second]

    def parts(edges: np.ndarray) -> int:
        label = list(range(count))
        for a, b in zip(first[edges], second[edges], strict=True):
            label = [label[a] if value == label[b] else value for value in label]
        return len(set(label))

    every = np.ones(len(first), bool)
    for edge, on_cycle in enumerate(on_cycles(first, second, count)):
        without = every.copy()
        without[edge] = False
        assert on_cycle == (parts(without) == parts(every))
