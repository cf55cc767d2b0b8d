"""What geometry joins moves together; the network says how the whole stands and where loose fragments may belong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import torch

from diffassemble.core import FragmentPieces, Locks, Matches, Mesh, Placements, Poses, Puzzle, Solver, Step
from diffassemble.core.matches import CHANNELS
from diffassemble.core.poses import random_rotations
from diffassemble.fragments.diffusion import BELIEF, FragmentDiffusionSolver, FragmentHybridSolver
from diffassemble.fragments.standing import cloud_of
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser

SURE = torch.tensor([0.9, 0.8, 0.0, 0.95])


@dataclass(frozen=True)
class KnownMend:
    """Knows how the first, second and fourth fragment lie to each other, but not how the whole stood."""

    frame: Poses
    guesses: bool = False
    name: str = "mend"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        truth = Poses(torch.eye(3).repeat(len(puzzle), 1, 1), puzzle.fragments.origins)
        sure = puzzle.fragments.points[:, -1, 0]
        poses = self.frame[[0] * len(puzzle)] @ truth
        yield Step.last(Placements(poses, sure, guess=poses if self.guesses else None))


@dataclass(frozen=True)
class Oracle:
    """Puts everything that is not locked at the origin."""

    seen: list[Puzzle]
    sure: float = 1.0
    name: str = "diffusion"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        self.seen.append(puzzle)
        yield Step.last(Placements(Poses.identity(len(puzzle), 3), torch.full((len(puzzle),), self.sure)))


def fragments(seed: int = 0) -> Puzzle:
    """Four clouds where they belong; each knows its confidence by its last point, and its place by its origin."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(4, 50, 3, generator=generator)
    points[:, -1, 0] = SURE
    origins = 5 * torch.randn(4, 3, generator=generator)
    clouds = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in points)
    return Puzzle(FragmentPieces(points, clouds, origins), None, ("a", "b", "c", "d"))


@pytest.fixture
def frame() -> Poses:
    return Poses(random_rotations(1, torch.Generator().manual_seed(0)), torch.tensor([[0.3, -0.2, 0.5]]))


def hybrid(frame: Poses, seen: list[Puzzle]) -> FragmentHybridSolver:
    return FragmentHybridSolver(KnownMend(frame), Oracle(seen), lambda cloud: frame.inverse().rotation[0])


def test_joined_fragments_keep_their_places_to_each_other_and_the_whole_is_stood_up(frame: Poses) -> None:
    puzzle, seen = fragments(), []
    solver = hybrid(frame, seen)
    assert isinstance(solver, Solver)
    *_, last = solver.steps(puzzle, torch.Generator().manual_seed(1))
    assert last.done == 1.0
    assert torch.allclose(last.placements.confidence, torch.tensor([0.9, 0.8, BELIEF.guess, 0.95]))
    joined = torch.tensor([0, 1, 3])
    assert torch.allclose(last.poses.rotation[joined], torch.eye(3).expand(3, 3, 3), atol=1e-5)
    apart = last.poses.translation[joined] - last.poses.translation[0]
    wanted = puzzle.fragments.origins[joined] - puzzle.fragments.origins[0]
    assert torch.allclose(apart, wanted, atol=1e-4)
    (given,) = seen
    assert given.locks is not None
    order = [given.names.index(name) for name in puzzle.names]
    assert given.locks.held[order].tolist() == [True, True, False, True]


@pytest.mark.parametrize("sure", [BELIEF.unknown, 0.6])
def test_where_no_matches_lead_a_guess_by_geometry_counts(frame: Poses, sure: float) -> None:
    puzzle, mend = fragments(), KnownMend(frame, guesses=True)
    *_, last = FragmentHybridSolver(mend, Oracle([], sure)).steps(puzzle, torch.Generator().manual_seed(1))
    *_, mended = mend.steps(puzzle, torch.Generator())
    wanted = mended.poses.translation[2] if sure == BELIEF.unknown else torch.zeros(3)
    assert torch.allclose(last.poses.translation[2], wanted, atol=1e-5)
    assert float(last.placements.confidence[2]) == pytest.approx(BELIEF.guess * sure)


@dataclass(frozen=True)
class NothingFits:
    """Leaves everything out."""

    name: str = "mend"

    def steps(self, puzzle: Puzzle, generator: torch.Generator) -> Iterator[Step]:
        count = len(puzzle)
        yield Step.last(Placements(Poses.identity(count, 3), torch.zeros(count), torch.full((count,), -1)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("what", ["one fragment", "no match", "all wrong", "two objects"])
def test_bad_input_gets_an_answer_with_an_honest_confidence(what: str, seed: int) -> None:
    """Where geometry joins nothing, nothing is told above one half, whatever matches say; less where they differ."""
    puzzle = fragments(seed).reordered(torch.tensor([0])) if what == "one fragment" else fragments(seed)
    count = len(puzzle)
    pairs = {"all wrong": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], "two objects": [(0, 1), (2, 3)]}.get(what, [])
    both = torch.tensor([*pairs, *((b, a) for a, b in pairs)], dtype=torch.long).view(-1, 2)
    places = random_rotations(len(both), torch.Generator().manual_seed(3)), torch.ones(len(both), 3) / 4
    said = Matches(*both.unbind(1), Poses(*places), torch.zeros(len(both), dtype=torch.long),
                   torch.full((len(both), CHANNELS), 0.95))  # fmt: skip
    torch.manual_seed(0)
    config = ModelConfig(backbone="vn_dgcnn", symmetry="invariant", features=4, width=16, layers=1, heads=2,
                         space="so3", contact_slots=1, join_hidden=16)  # fmt: skip
    diffusion = FragmentDiffusionSolver(Denoiser(config).eval(), 2, 2, 0.0, lambda _: mirrored(said))
    *_, last = FragmentHybridSolver(NothingFits(), diffusion).steps(puzzle, torch.Generator().manual_seed(0))
    assert bool(last.poses.rotation.isfinite().all())
    assert bool(last.poses.translation.isfinite().all())
    assert bool((last.placements.confidence <= BELIEF.guess).all())
    assert last.placements.confidence.shape == (count,)
    if what == "no match":
        assert bool((last.placements.confidence < 0.1).all())
    if what == "all wrong":  # the same matches without contradiction give 0.475
        assert bool((last.placements.confidence < 0.4).all())


def mirrored(matches: Matches) -> Matches:
    """The first half of some matches, then the same the other way round."""
    half = len(matches) // 2
    forth = matches.pose[torch.arange(half)]
    back = forth.inverse()
    rotation = torch.cat([forth.rotation, back.rotation])
    return replace(matches, pose=Poses(rotation, torch.cat([forth.translation, back.translation])))


def test_the_order_of_fragments_does_not_matter(frame: Poses) -> None:
    puzzle, order = fragments(), torch.tensor([2, 0, 3, 1])
    *_, one = hybrid(frame, []).steps(puzzle, torch.Generator().manual_seed(1))
    *_, other = hybrid(frame, []).steps(puzzle.reordered(order), torch.Generator().manual_seed(1))
    assert torch.allclose(one.poses.translation[order], other.poses.translation, atol=1e-5)


def test_locked_fragments_say_how_the_object_stands(frame: Poses) -> None:
    seen: list[Puzzle] = []
    puzzle = replace(fragments(), locks=Locks(torch.tensor([True, False, False, False]), Poses.identity(4, 3)))
    *_, last = hybrid(frame, seen).steps(puzzle, torch.Generator().manual_seed(1))
    assert not seen
    assert torch.allclose(last.poses.rotation, frame.rotation.expand(4, 3, 3), atol=1e-6)


def test_points_of_the_joined_lie_on_the_joined() -> None:
    puzzle = fragments()
    poses = Poses(random_rotations(4, torch.Generator().manual_seed(1)), puzzle.fragments.origins)
    cloud = cloud_of(puzzle, poses, SURE > 0, 500)
    every = poses.apply(puzzle.fragments.points)[SURE > 0].flatten(0, 1)
    assert float(torch.cdist(cloud, every).amin(1).max()) < 1e-2


def test_the_real_network_places_the_loose_beside_the_joined(frame: Poses) -> None:
    config = ModelConfig(backbone="vn_dgcnn", features=8, width=16, layers=1, heads=2, hidden=16, space="so3",
                         edge_features=False, votes=False, board=False, posed=True)  # fmt: skip
    solver = FragmentHybridSolver(KnownMend(frame), FragmentDiffusionSolver(Denoiser(config), 2, 2))
    *_, last = solver.steps(fragments(), torch.Generator().manual_seed(0))
    assert bool(last.poses.rotation.isfinite().all())
    assert torch.allclose(torch.linalg.det(last.poses.rotation), torch.ones(4), atol=1e-4)
