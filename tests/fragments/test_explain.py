"""Why fragments are not sure or left out is read off made-up ends of a search."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from manifold3d import Manifold

from diffassemble.core import FragmentPieces, Mesh, Placements, Poses, Puzzle, Step
from diffassemble.core.placements import status_of
from diffassemble.core.solver import in_content_order
from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.clusters import Cluster, Fragment
from diffassemble.fragments.contact import Pose, compose, inverse, pose_rows
from diffassemble.fragments.explain import LATE, LOOSE, NO_BREAK, NOWHERE, SMALL, explained, open_places
from diffassemble.fragments.gap_insertion import INSERTED
from diffassemble.fragments.matches import PairSearch, prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.verification import Match

NAMES = ("a", "b", "c")


class Heap:
    """Three fragments of a block, the largest first, and what a search may have found out about them."""

    def __init__(self, fragments: list[Fragment], truth: list[Pose], models: FractureModels) -> None:
        self.fragments, self.truth, self.models = fragments, truth, models
        self.until(math.inf)

    def until(self, time: float) -> None:
        self.state = AssemblyState(PairSearch(self.fragments, self.models), 0, time)

    def pose(self, first: int, second: int, shift: float = 0.0) -> Pose:
        """Where a piece stands beside another, too far up by a shift."""
        pose = compose(inverse(self.truth[second]), self.truth[first])
        pose[11] += shift
        return pose

    def single(self, piece: int) -> Cluster:
        return next(cluster for cluster in self.state.clusters if cluster.members == (piece,))

    def learn(self, first: int, second: int, pose: Pose, chance: float) -> None:
        match = Match(pose, chance, INSERTED, 3, np.zeros(3, np.float32))
        self.state.add_matches(self.single(first), self.single(second), [match])

    def join(self) -> None:
        best = self.state.best_match()
        assert best is not None
        self.state.join(*best)

    def notes(self, *confidence: float) -> list[str]:
        objects = [0 if sure else -1 for sure in confidence]
        return list(explained(self.state, [float(sure) for sure in confidence], objects, NAMES))


@pytest.fixture(scope="module")
def prepared(models: FractureModels) -> tuple[list[Fragment], list[Pose]]:
    generator = torch.Generator().manual_seed(2)
    puzzle = scatter(fracture(mesh_of(Manifold.cube((1.0, 0.7, 0.4), True)), 3, generator), generator)
    puzzle = puzzle.reordered(puzzle.fragments.areas.argsort(descending=True))
    assert puzzle.truth is not None
    return prepare(puzzle.fragments, models, 0), list(pose_rows(puzzle.truth))


@pytest.fixture
def heap(prepared: tuple[list[Fragment], list[Pose]], models: FractureModels) -> Heap:
    fragments, truth = prepared
    return Heap([copy.copy(fragment) for fragment in fragments], truth, models)


@pytest.mark.parametrize(
    ("confidence", "own", "status"),
    [
        (1.0, 0, "sure"),
        (0.9, 1, "sure"),
        (0.899, 0, "likely"),
        (0.5, 0, "likely"),
        (0.499, 0, "guessed"),
        (0.001, 0, "guessed"),
        (0.0, 0, "unplaced"),
        (0.0, -1, "unplaced"),
        (0.5, -1, "guessed"),  # a network's guess of what was joined to nothing
    ],
)
def test_statuses(confidence: float, own: int, status: str) -> None:
    assert status_of(confidence, own) == status


def test_what_matches_nothing_fits_nowhere(heap: Heap) -> None:
    assert heap.notes(1, 0, 0) == ["", NOWHERE, NOWHERE]
    heap.until(-math.inf)
    assert heap.notes(1, 0, 0) == ["", LATE, LATE]


def test_without_a_break(heap: Heap) -> None:
    points = len(heap.fragments[1].pyramid.levels[0])
    heap.fragments[1].found = [np.arange(points) < 5]
    heap.fragments[2].found = [np.ones(6, bool)]
    assert heap.notes(1, 0, 0) == ["", NO_BREAK, SMALL]


def test_equal_places_are_counted_once_each(heap: Heap) -> None:
    heap.learn(1, 0, heap.pose(1, 0), 0.09)
    heap.learn(0, 1, heap.pose(0, 1), 0.08)  # the same place, told the other way round
    assert heap.notes(1, 0, 0)[1] == NOWHERE
    heap.learn(1, 2, heap.pose(1, 2), 0.07)
    heap.learn(1, 0, heap.pose(1, 0, 0.5), 0.06)
    heap.learn(1, 0, heap.pose(1, 0, 1.0), 0.02)  # not nearly as good
    assert len(open_places(heap.state, heap.single(1))) == 3
    assert heap.notes(1, 0, 0)[1] == "fits 3 places about equally well"


def test_places_that_hardly_count(heap: Heap) -> None:
    heap.learn(1, 0, heap.pose(1, 0), 0.03)
    heap.learn(1, 0, heap.pose(1, 0, 0.5), 0.03)
    assert heap.notes(1, 0, 0)[1] == NOWHERE


def test_pieces_that_hold_together_beside_the_rest(heap: Heap) -> None:
    heap.learn(1, 2, heap.pose(1, 2), 0.8)
    heap.join()
    assert heap.notes(1, 0, 0)[1:] == [f"joined to {other}, but together they fit nowhere" for other in "cb"]


def test_a_place_with_a_free_rival(heap: Heap) -> None:
    heap.learn(1, 0, heap.pose(1, 0), 0.6)
    heap.learn(1, 0, heap.pose(1, 0, 0.02), 0.6)  # the same
    heap.join()
    assert heap.notes(1, 0.6, 0)[1] == LOOSE
    heap.state.pairs[1, 0].append(Match(heap.pose(1, 0, 2.0), 0.5, INSERTED, 3, np.zeros(3, np.float32)))
    assert heap.notes(1, 0.6, 0)[1] == "fits 2 places about equally well"


def test_two_good_fits_are_told_as_two_places_not_as_one_sure_join(heap: Heap) -> None:
    heap.learn(1, 0, heap.pose(1, 0), 0.97)
    heap.learn(1, 0, heap.pose(1, 0, 2.0), 0.96)
    heap.join()
    assert heap.state.confidence[1] < 0.6
    assert heap.notes(1, heap.state.confidence[1], 0)[1] == "fits 2 places about equally well"


def test_a_place_that_is_taken_is_no_rival(heap: Heap) -> None:
    heap.learn(1, 0, heap.pose(1, 0), 0.6)
    middle = heap.single(0).body.points.mean(0)
    inside = heap.pose(1, 0)
    inside[9:] = middle - inside[:9].reshape(3, 3) @ heap.single(1).body.points.mean(0)
    heap.learn(1, 0, inside, 0.5)
    heap.join()
    assert heap.notes(1, 0.6, 0)[1] == LOOSE


def test_doubt_is_passed_on(heap: Heap) -> None:
    heap.learn(1, 2, heap.pose(1, 2), 0.95)
    heap.learn(1, 0, heap.pose(1, 0), 0.6)
    heap.join()
    heap.join()
    assert heap.notes(1, 0.6, 0.57) == ["", LOOSE, "as sure as b, to which it was joined before"]


def test_many_sure_joins(heap: Heap) -> None:
    heap.learn(1, 2, heap.pose(1, 2), 0.92)
    heap.learn(1, 0, heap.pose(1, 0), 0.93)
    heap.join()
    heap.join()
    assert heap.notes(1, 0.93, 0.85)[1:] == ["", "several joins lie between it and the largest fragment"]


def test_notes_follow_their_pieces() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(4, 5, 3, generator=generator)
    clouds = tuple(Mesh(own, torch.zeros(0, 3, dtype=torch.long)) for own in points)
    puzzle = Puzzle(FragmentPieces(points, clouds, torch.zeros(4, 3)), None, tuple("wxyz"))

    def named(ordered: Puzzle) -> Iterator[Step]:
        yield Step.last(Placements(Poses.identity(4, 3), torch.ones(4), notes=ordered.names))

    assert next(in_content_order(puzzle, named)).placements.notes == puzzle.names
