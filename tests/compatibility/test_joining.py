"""Joining keeps rings, sizes, labels and frames in step, honours the mating, and moves the smaller cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from diffassemble.network.forest import join


@dataclass(frozen=True)
class State:
    """n pieces, at first each for itself and at the origin."""

    label: np.ndarray
    following: np.ndarray
    size: np.ndarray
    frame: np.ndarray

    @staticmethod
    def of(count: int, dimension: int) -> State:
        frame = np.tile(np.eye(dimension + 1), (count, 1, 1))
        return State(np.arange(count), np.arange(count), np.ones(count, np.int64), frame)

    def join(
        self, pairs: np.ndarray, relative: np.ndarray, closest: float, room: tuple[float, ...] | None = None
    ) -> None:
        shape = len(self.label), self.frame.shape[-1] - 1
        limits = np.full(shape, np.inf) if room is None else np.tile(np.array(room), (shape[0], 1))
        apart = np.full(len(pairs), closest)
        join(pairs, relative, apart, limits, self.label, self.following, self.size, self.frame)


def random_motions(count: int, dimension: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    rotation = np.linalg.qr(generator.normal(size=(count, dimension, dimension)))[0]
    rotation[..., 0] *= np.linalg.det(rotation)[:, None]
    motions = np.tile(np.eye(dimension + 1), (count, 1, 1))
    motions[:, :-1, :-1] = rotation
    motions[:, :-1, -1] = generator.normal(size=(count, dimension))
    return motions


def shift(*step: float) -> np.ndarray:
    motion = np.eye(len(step) + 1)
    motion[:-1, -1] = step
    return motion[None]


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_labels_rings_and_sizes_agree_and_nothing_collides(dimension: int, seed: int) -> None:
    count, matings, closest = 20, 60, 0.16
    pairs = np.random.default_rng(seed).integers(0, count, (matings, 2))
    state = State.of(count, dimension)
    state.join(pairs, random_motions(matings, dimension, seed), closest)
    assert len(set(state.label.tolist())) < count
    for piece in range(count):
        ring, member = [piece], int(state.following[piece])
        while member != piece:
            ring.append(member)
            member = int(state.following[member])
        assert sorted(ring) == np.flatnonzero(state.label == state.label[piece]).tolist()
        assert state.size[state.label[piece]] == len(ring)
        for other in set(ring) - {piece}:
            assert np.square(state.frame[piece, :-1, -1] - state.frame[other, :-1, -1]).sum() >= closest - 1e-9
    turns = state.frame[:, :-1, :-1]
    np.testing.assert_allclose(turns @ turns.transpose(0, 2, 1), np.tile(np.eye(dimension), (count, 1, 1)), atol=1e-12)
    assert (state.frame[:, -1] == np.eye(dimension + 1)[-1]).all()


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_chain_lies_as_its_matings_say(dimension: int) -> None:
    """Links in any order, so that now the first and now the second cluster of a pair is the smaller one."""
    count = 12
    pairs = np.stack([np.arange(1, count), np.arange(count - 1)], 1)
    relative = random_motions(count - 1, dimension, seed=0)
    for seed in range(5):
        state, order = State.of(count, dimension), np.random.default_rng(seed).permutation(count - 1)
        state.join(pairs[order], relative[order], closest=0.0)
        assert (state.label == state.label[0]).all()
        np.testing.assert_allclose(state.frame[:-1] @ relative, state.frame[1:], atol=1e-12)


def test_the_smaller_cluster_moves() -> None:
    state, step = State.of(5, 2), shift(1.0, 0.0)
    state.join(np.array([[1, 0], [2, 1]]), np.concatenate([step, step]), 0.25)
    before = state.frame.copy()
    state.join(np.array([[0, 3]]), step, 0.25)
    assert (state.frame[:3] == before[:3]).all()
    assert state.frame[3, :2, 2].tolist() == (before[0, :2, 2] - [1, 0]).tolist()
    state.join(np.array([[4, 2]]), step, 0.25)
    assert (state.frame[:3] == before[:3]).all()
    assert state.frame[4, :2, 2].tolist() == (before[2, :2, 2] + [1, 0]).tolist()


def test_a_refused_mating_changes_nothing() -> None:
    state, step = State.of(3, 2), shift(1.0, 0.0)
    state.join(np.array([[1, 0]]), step, 0.25)
    kept = [part.copy() for part in (state.label, state.following, state.size, state.frame)]
    state.join(np.array([[2, 0]]), step, 0.25)
    for part, before in zip((state.label, state.following, state.size, state.frame), kept, strict=True):
        assert (part == before).all()
    state.join(np.array([[2, 0]]), shift(0.4, 0.0), 0.16 - 1e-9)
    assert (state.label == state.label[0]).all()


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_no_box_exceeds_the_room(dimension: int, seed: int) -> None:
    count, matings, room = 20, 60, (1.0, 2.0, 2.5)[:dimension]
    pairs = np.random.default_rng(seed).integers(0, count, (matings, 2))
    free, bound = State.of(count, dimension), State.of(count, dimension)
    for state, limits in ((free, None), (bound, room)):
        state.join(pairs, random_motions(matings, dimension, seed), 0.01, limits)
    assert len(set(free.label.tolist())) < len(set(bound.label.tolist())) < count
    for label in set(bound.label.tolist()):
        places = bound.frame[bound.label == label, :-1, -1]
        assert (np.sort(np.ptp(places, axis=0)) <= room).all()


def test_without_matings_nothing_happens() -> None:
    state = State.of(4, 3)
    state.join(np.zeros((0, 2), np.int64), np.zeros((0, 4, 4)), 0.0)
    assert state.label.tolist() == state.following.tolist() == [0, 1, 2, 3]
