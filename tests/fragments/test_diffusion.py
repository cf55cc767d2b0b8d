"""Solvers by a network: answers do not depend on listing and frames; what geometry joins moves together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
import torch

from diffassemble.core import FragmentPieces, Locks, Matches, Mesh, Placements, Poses, Puzzle, Solver, Step
from diffassemble.core.matches import CHANNELS
from diffassemble.core.poses import random_rotations
from diffassemble.core.solver import content_order
from diffassemble.fragments.diffusion import BELIEF, FragmentDiffusionSolver, FragmentHybridSolver, TreeSolver
from diffassemble.fragments.standing import cloud_of
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.judge import corrupt_matches, linked, tree_poses

COUNT = 6
CONFIG = ModelConfig(backbone="vn_dgcnn", symmetry="invariant", features=4, width=16, layers=1, heads=2, space="so3",
                     contact_slots=1, join_hidden=16)  # fmt: skip


@pytest.fixture(scope="module")
def network() -> Denoiser:
    torch.manual_seed(0)
    return Denoiser(CONFIG).eval()


def matches_of(pairs: list[tuple[int, int]], truth: Poses, evidence: float = 0.9) -> Matches:
    """The true matches of some pairs, in both directions."""
    both = torch.tensor([*pairs, *((two, one) for one, two in pairs)], dtype=torch.long).view(-1, 2)
    first, second = both.unbind(1)
    relative = truth[second].inverse() @ truth[first]
    return Matches(first, second, relative, torch.zeros_like(first), torch.full((len(both), CHANNELS), evidence))


def broken(seed: int = 0, count: int = COUNT) -> tuple[Puzzle, Matches]:
    """Clouds listed by what they are, a true pose of each, and the matches of all neighbours in a ring with chords."""
    generator = torch.Generator().manual_seed(seed)
    points = 0.1 * torch.randn(count, 64, 3, generator=generator)
    points = points[content_order(points)]
    clouds = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in points)
    truth = Poses(random_rotations(count, generator), 0.25 * torch.randn(count, 3, generator=generator))
    pieces = FragmentPieces(points, clouds, torch.zeros(count, 3))
    puzzle = Puzzle(pieces, None, tuple(f"fragment_{i}" for i in range(count)), truth)
    pairs = [(i, j) for i in range(count) for j in range(i) if (i - j) % count in (1, 3, count - 1)]
    return puzzle, matches_of(pairs, truth)


def chosen(matches: Matches, kept: torch.Tensor) -> Matches:
    return matches[kept.nonzero()[:, 0]]


def seen_from(poses: Poses, piece: int) -> Poses:
    return poses[[piece] * len(poses)].inverse() @ poses


def apart(one: Poses, two: Poses) -> float:
    turned, moved = (one.rotation - two.rotation).abs().max(), (one.translation - two.translation).abs().max()
    return float(torch.maximum(turned, moved))


def answer(solver: Solver, puzzle: Puzzle, seed: int = 0) -> Placements:
    *_, step = solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(seed))
    assert step.done == 1.0
    return step.placements


def both_solvers(network: Denoiser, matches: Matches) -> tuple[Solver, Solver]:
    return TreeSolver(lambda _: matches), FragmentDiffusionSolver(network, 3, 2, 0.0, lambda _: matches)


@pytest.mark.parametrize("seed", range(2))
def test_true_matches_give_the_true_assembly_whatever_the_listing(network: Denoiser, seed: int) -> None:
    puzzle, matches = broken(seed)
    assert puzzle.truth is not None
    largest = int(puzzle.fragments.areas.argmax())
    for solver in both_solvers(network, matches):
        found = answer(solver, puzzle)
        assert apart(seen_from(found.poses, largest), seen_from(puzzle.truth, largest)) < 0.05
        assert found.confidence.min() > 0.7
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(1))
    other = answer(solver, puzzle.reordered(order))
    assert apart(found.poses[order], other.poses) < 1e-3
    assert torch.allclose(found.confidence[order], other.confidence, atol=1e-4)


def test_a_turn_of_what_is_locked_turns_the_answer_with_it(network: Denoiser) -> None:
    puzzle, matches = broken()
    assert puzzle.truth is not None
    held = torch.arange(COUNT) == 2
    motion = Poses(random_rotations(1, torch.Generator().manual_seed(5)), torch.tensor([[0.4, -0.2, 0.1]]))
    solver = FragmentDiffusionSolver(network, 5, 1, 0.0, lambda _: matches)
    one = answer(solver, replace(puzzle, locks=Locks(held, puzzle.truth)))
    other = answer(solver, replace(puzzle, locks=Locks(held, motion[[0] * COUNT] @ puzzle.truth)))
    assert apart(motion[[0] * COUNT] @ one.poses, other.poses) < 1e-3
    assert apart(one.poses[held], puzzle.truth[held]) < 1e-5


def test_pieces_that_no_matches_reach_are_guessed_and_the_others_are_not(network: Denoiser) -> None:
    for count in (1, 4):
        puzzle, matches = broken(count=count)
        for solver in both_solvers(network, chosen(matches, matches.first < 0)):
            found = answer(solver, puzzle)
            assert bool(found.poses.translation.isfinite().all())
            assert bool((found.confidence[torch.arange(count) != puzzle.fragments.areas.argmax()] <= 0.1).all())
    puzzle, matches = broken()
    largest, alone = int(puzzle.fragments.areas.argmax()), int(puzzle.fragments.areas.argmin())
    for solver in both_solvers(network, chosen(matches, (matches.first != alone) & (matches.second != alone))):
        sure = answer(solver, puzzle).confidence
        assert sure[alone] <= 0.1
        assert bool((sure[torch.arange(COUNT) != alone] > 0.7).all())
    for solver in both_solvers(network, chosen(matches, (matches.first < 3) == (matches.second < 3))):
        sure = answer(solver, puzzle).confidence  # two objects
        assert bool((sure[(torch.arange(COUNT) < 3) != (largest < 3)] <= 0.1).all())


@pytest.mark.parametrize("seed", range(2))
def test_where_matches_are_wrong_or_contradict_each_other_nothing_is_sure(network: Denoiser, seed: int) -> None:
    puzzle, matches = broken(seed)
    wrong = corrupt_matches(matches, 0.999, 0.0, torch.Generator().manual_seed(seed))
    rest = torch.arange(COUNT) != puzzle.fragments.areas.argmax()
    for solver in both_solvers(network, wrong):
        assert bool((answer(solver, puzzle).confidence[rest] < 0.5).all())
    poses = (torch.cat([getattr(one.pose, name) for one in (matches, wrong)]) for name in ("rotation", "translation"))
    names = ("first", "second", "slot", "evidence")
    first, second, slot, evidence = (torch.cat([getattr(one, name) for one in (matches, wrong)]) for name in names)
    order = torch.arange(len(first)).view(2, 2, -1).transpose(0, 1).flatten()
    both = Matches(first, second, Poses(*poses), slot, evidence)[order]
    assert bool((answer(TreeSolver(lambda _: both), puzzle).confidence[rest] < 0.75).all())


def test_a_denied_link_is_doubted_and_a_chain_is_as_sure_as_all_its_links() -> None:
    """A square with a tail: one side of the square contradicts the three others."""
    truth = Poses(random_rotations(5, torch.Generator().manual_seed(0)), torch.randn(5, 3))
    matches, held = matches_of([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)], truth), torch.arange(5) == 0
    whole = linked(matches, truth, held, torch.ones(5))
    matches.pose.translation[[3, 8]] += 1.0
    denied = linked(matches, truth, held, torch.ones(5))
    assert bool((denied[1:] < whole[1:] - 0.1).all())
    # Nothing denies the tail itself: it is as sure as what it is joined to, times its own probability.
    assert float(denied[4] / denied[3]) == pytest.approx(0.9, abs=0.06)
    chain = matches_of([(0, 1), (1, 2), (2, 3), (3, 4)], truth)
    sure = linked(chain, truth, held, torch.ones(5))
    assert torch.allclose(sure, 0.9 ** torch.arange(5).float(), atol=0.06)  # it counts draws
    assert apart(tree_poses(chain, Locks(held, truth)), truth) < 1e-4


# Hybrid

SURE = torch.tensor([0.9, 0.8, 0.0, 0.95])


@dataclass(frozen=True)
class KnownMend:
    """Knows how the first, second and fourth fragment are placed to each other, but not the frame of the whole."""

    frame: Poses
    guesses: bool = False
    name: str = "mend"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        truth = Poses(torch.eye(3).repeat(len(puzzle), 1, 1), puzzle.fragments.origins)
        poses = self.frame[[0] * len(puzzle)] @ truth
        yield Step.last(Placements(poses, puzzle.fragments.points[:, -1, 0], guess=poses if self.guesses else None))


@dataclass(frozen=True)
class Central:
    """Puts everything that is not locked at the origin, with one confidence."""

    sure: float = 1.0
    seen: list[Puzzle] = field(default_factory=list)
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        self.seen.append(puzzle)
        sure, objects = torch.full((len(puzzle),), self.sure), torch.full((len(puzzle),), -1)
        yield Step.last(Placements(Poses.identity(len(puzzle), 3), sure, objects, notes=("",) * len(puzzle)))


def fragments(seed: int = 0) -> Puzzle:
    """Four clouds where they belong; the last point of each is its confidence, its origin its place."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(4, 50, 3, generator=generator)
    points[:, -1, 0] = SURE
    origins = 5 * torch.randn(4, 3, generator=generator)
    clouds = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in points)
    return Puzzle(FragmentPieces(points, clouds, origins), None, ("a", "b", "c", "d"))


@pytest.fixture
def frame() -> Poses:
    return Poses(random_rotations(1, torch.Generator().manual_seed(0)), torch.tensor([[0.3, -0.2, 0.5]]))


def test_joined_fragments_keep_their_places_to_each_other_and_the_whole_is_upright(frame: Poses) -> None:
    puzzle, loose = fragments(), Central()
    solver = FragmentHybridSolver(KnownMend(frame), loose, lambda cloud: frame.inverse().rotation[0])
    found, joined = answer(solver, puzzle, 1), torch.tensor([0, 1, 3])
    assert torch.allclose(found.confidence, torch.tensor([0.9, 0.8, BELIEF.guess, 0.95]))
    assert torch.allclose(found.poses.rotation[joined], torch.eye(3).expand(3, 3, 3), atol=1e-5)
    places, wanted = found.poses.translation[joined], puzzle.fragments.origins[joined]
    assert torch.allclose(places - places[0], wanted - wanted[0], atol=1e-4)
    (given,) = loose.seen
    assert given.locks is not None
    assert given.locks.held[[given.names.index(name) for name in puzzle.names]].tolist() == [True, True, False, True]
    order = torch.tensor([2, 0, 3, 1])
    assert apart(answer(solver, puzzle.reordered(order), 1).poses, found.poses[order]) < 1e-5


@pytest.mark.parametrize("sure", [BELIEF.unknown, 0.6])
def test_where_no_matches_lead_a_guess_by_geometry_counts(frame: Poses, sure: float) -> None:
    puzzle, mend = fragments(), KnownMend(frame, guesses=True)
    found = answer(FragmentHybridSolver(mend, Central(sure)), puzzle)
    wanted = answer(mend, puzzle).poses.translation[2] if sure == BELIEF.unknown else torch.zeros(3)
    assert torch.allclose(found.poses.translation[2], wanted, atol=1e-5)
    assert float(found.confidence[2]) == pytest.approx(BELIEF.guess * sure)


@pytest.mark.parametrize("what", ["one fragment", "no match", "all wrong", "two objects"])
def test_where_geometry_joins_nothing_confidence_is_at_most_one_half(network: Denoiser, what: str) -> None:
    puzzle = fragments().reordered(torch.tensor([0])) if what == "one fragment" else fragments()
    pairs = {"all wrong": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], "two objects": [(0, 1), (2, 3)]}.get(what, [])
    places = Poses(random_rotations(4, torch.Generator().manual_seed(3)), torch.ones(4, 3) / 4)
    matches = matches_of(pairs, places, 0.95)
    wrong = Poses(random_rotations(len(pairs), torch.Generator().manual_seed(4)), torch.ones(len(pairs), 3) / 4)
    ends = zip(vars(wrong).values(), vars(wrong.inverse()).values(), strict=True)
    matches = replace(matches, pose=Poses(*(torch.cat(both) for both in ends)))
    diffusion = FragmentDiffusionSolver(network, 2, 2, 0.0, lambda _: matches)
    found = answer(FragmentHybridSolver(Central(0.0), diffusion), puzzle)
    assert bool(found.poses.rotation.isfinite().all())
    assert bool((found.confidence <= {"no match": 0.1, "all wrong": 0.4}.get(what, BELIEF.guess)).all())
    assert found.notes is not None
    guessed = [note.endswith("placed by guess of a network") for note in found.notes]
    assert guessed == (found.confidence > 0).tolist()


def test_locked_fragments_determine_the_frame(frame: Poses) -> None:
    loose = Central()
    puzzle = replace(fragments(), locks=Locks(torch.tensor([True, False, False, False]), Poses.identity(4, 3)))
    found = answer(FragmentHybridSolver(KnownMend(frame), loose), puzzle)
    assert not loose.seen
    assert torch.allclose(found.poses.rotation, frame.rotation.expand(4, 3, 3), atol=1e-6)


def test_points_of_the_joined_are_on_the_joined() -> None:
    puzzle = fragments()
    poses = Poses(random_rotations(4, torch.Generator().manual_seed(1)), puzzle.fragments.origins)
    cloud = cloud_of(puzzle, poses, SURE > 0, 500)
    every = poses.apply(puzzle.fragments.points)[SURE > 0].flatten(0, 1)
    assert float(torch.cdist(cloud, every).amin(1).max()) < 1e-2


def test_the_published_form_places_the_loose_beside_the_joined(frame: Poses) -> None:
    config = ModelConfig(backbone="vn_dgcnn", features=8, width=16, layers=1, heads=2, hidden=16, space="so3",
                         edge_features=False, votes=False, board=False, posed=True)  # fmt: skip
    found = answer(FragmentHybridSolver(KnownMend(frame), FragmentDiffusionSolver(Denoiser(config), 2, 2)), fragments())
    assert torch.allclose(torch.linalg.det(found.poses.rotation), torch.ones(4), atol=1e-4)
