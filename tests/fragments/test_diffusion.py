"""Diffusion that hears matches: seen from what is held, blind to listing and frames, honest where it knows nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diffassemble.core import FragmentPieces, Locks, Matches, Mesh, Poses, Puzzle
from diffassemble.core.matches import CHANNELS
from diffassemble.core.poses import random_rotations
from diffassemble.core.solver import content_order
from diffassemble.fragments.diffusion import FragmentDiffusionSolver, TreeSolver
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.judge import corrupt_matches, linked, tree_poses

COUNT = 6
CONFIG = ModelConfig(backbone="vn_dgcnn", symmetry="invariant", features=4, width=16, layers=2, heads=2, space="so3",
                     contact_slots=1, join_hidden=16)  # fmt: skip


@pytest.fixture(scope="module")
def network() -> Denoiser:
    torch.manual_seed(0)
    return Denoiser(CONFIG).eval()


def broken(seed: int = 0, count: int = COUNT) -> tuple[Puzzle, Matches]:
    """Clouds listed by what they are, a true pose of each, and the matches of all neighbours in a ring with chords."""
    generator = torch.Generator().manual_seed(seed)
    points = 0.1 * torch.randn(count, 64, 3, generator=generator)
    points = points[content_order(points)]
    clouds = tuple(Mesh(cloud, torch.zeros(0, 3, dtype=torch.long)) for cloud in points)
    truth = Poses(random_rotations(count, generator), 0.25 * torch.randn(count, 3, generator=generator))
    pieces = FragmentPieces(points, clouds, torch.zeros(count, 3))
    puzzle = Puzzle(pieces, None, tuple(f"fragment_{i}" for i in range(count)), truth)
    found = [(i, j) for i in range(count) for j in range(i) if (i - j) % count in (1, 3, count - 1)]
    pairs = torch.tensor(found, dtype=torch.long).view(-1, 2)
    pairs = torch.cat([pairs, pairs.flip(1)])
    first, second = pairs.unbind(1)
    evidence = torch.full((len(pairs), CHANNELS), 0.9)
    return puzzle, Matches(first, second, truth[second].inverse() @ truth[first], torch.zeros_like(first), evidence)


def seen_from(poses: Poses, piece: int) -> Poses:
    return poses[[piece] * len(poses)].inverse() @ poses


def apart(one: Poses, two: Poses) -> float:
    return float(
        torch.maximum((one.rotation - two.rotation).abs().max(), (one.translation - two.translation).abs().max())
    )


def last_step(solver, puzzle: Puzzle, seed: int = 0):  # type: ignore[no-untyped-def]
    *_, step = solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(seed))
    return step


@pytest.mark.parametrize("seed", range(3))
def test_true_matches_give_the_true_assembly(network: Denoiser, seed: int) -> None:
    puzzle, matches = broken(seed)
    assert puzzle.truth is not None
    largest = int(puzzle.fragments.areas.argmax())
    for solver in (TreeSolver(lambda _: matches), FragmentDiffusionSolver(network, 5, 2, 0.0, lambda _: matches)):
        step = last_step(solver, puzzle)
        assert apart(seen_from(step.poses, largest), seen_from(puzzle.truth, largest)) < 0.05
        assert step.placements.confidence.min() > 0.7


def test_the_answer_is_blind_to_the_listing(network: Denoiser) -> None:
    puzzle, matches = broken()
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(1))
    solver = FragmentDiffusionSolver(network, 5, 2, 0.0, lambda _: matches)
    one, other = last_step(solver, puzzle), last_step(solver, puzzle.reordered(order))
    assert apart(one.poses[order], other.poses) < 1e-3
    assert torch.allclose(one.placements.confidence[order], other.placements.confidence, atol=1e-4)


def test_a_turn_of_what_is_locked_turns_the_answer_with_it(network: Denoiser) -> None:
    puzzle, matches = broken()
    assert puzzle.truth is not None
    held = torch.arange(COUNT) == 2
    motion = Poses(random_rotations(1, torch.Generator().manual_seed(5)), torch.tensor([[0.4, -0.2, 0.1]]))
    solver = FragmentDiffusionSolver(network, 5, 1, 0.0, lambda _: matches)
    one = last_step(solver, replace(puzzle, locks=Locks(held, puzzle.truth)))
    moved = motion[[0] * COUNT] @ puzzle.truth
    other = last_step(solver, replace(puzzle, locks=Locks(held, moved)))
    assert apart(motion[[0] * COUNT] @ one.poses, other.poses) < 1e-3
    assert apart(one.poses[held], puzzle.truth[held]) < 1e-5


def test_one_fragment_and_fragments_without_matches_get_an_honest_answer(network: Denoiser) -> None:
    nothing = broken()[1][torch.zeros(0, dtype=torch.long)]
    for count in (1, 4):
        puzzle, _ = broken(count=count)
        for solver in (TreeSolver(lambda _: nothing), FragmentDiffusionSolver(network, 3, 2, 0.0, lambda _: nothing)):
            step = last_step(solver, puzzle)
            assert bool(step.poses.translation.isfinite().all())
            rest = torch.arange(count) != puzzle.fragments.areas.argmax()
            assert bool((step.placements.confidence[rest] <= 0.1).all())


def test_a_fragment_without_any_match_is_guessed_and_the_others_are_not(network: Denoiser) -> None:
    puzzle, matches = broken()
    alone = int(puzzle.fragments.areas.argmin())
    heard = matches[((matches.first != alone) & (matches.second != alone)).nonzero()[:, 0]]
    for solver in (TreeSolver(lambda _: heard), FragmentDiffusionSolver(network, 5, 2, 0.0, lambda _: heard)):
        step = last_step(solver, puzzle)
        assert step.placements.confidence[alone] <= 0.1
        assert bool((step.placements.confidence[torch.arange(COUNT) != alone] > 0.7).all())


@pytest.mark.parametrize("seed", range(3))
def test_where_all_matches_are_wrong_loops_do_not_close_and_nobody_is_sure(network: Denoiser, seed: int) -> None:
    puzzle, matches = broken(seed)
    wrong = corrupt_matches(matches, 0.999, 0.0, torch.Generator().manual_seed(seed))
    rest = torch.arange(COUNT) != puzzle.fragments.areas.argmax()
    for solver in (TreeSolver(lambda _: wrong), FragmentDiffusionSolver(network, 5, 2, 0.0, lambda _: wrong)):
        assert bool((last_step(solver, puzzle).placements.confidence[rest] < 0.5).all())


def test_a_denied_link_is_doubted_and_one_that_loops_bear_out_is_not() -> None:
    """A square with a tail: one side of the square says something else than the three others do."""
    truth = Poses(random_rotations(5, torch.Generator().manual_seed(0)), torch.randn(5, 3))
    one, two = torch.tensor([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]).unbind(1)
    first, second = torch.cat([one, two]), torch.cat([two, one])
    relative = truth[second].inverse() @ truth[first]
    matches = Matches(first, second, relative, torch.zeros_like(first), torch.full((10, CHANNELS), 0.9))
    held = torch.arange(5) == 0
    whole = linked(matches, truth, held, torch.ones(5))
    relative.translation[[3, 8]] += 1.0
    denied = linked(matches, truth, held, torch.ones(5))
    assert bool((denied[1:] < whole[1:] - 0.1).all())
    # Nothing denies the tail itself: it is as sure as what it hangs on, times its own probability.
    assert float(denied[4] / denied[3]) == pytest.approx(0.9, abs=0.06)


def test_where_matches_contradict_each_other_nobody_is_sure(network: Denoiser) -> None:
    puzzle, matches = broken()
    wrong = corrupt_matches(matches, 0.999, 0.0, torch.Generator().manual_seed(0))
    both = Matches(
        *(torch.cat([getattr(one, name) for one in (matches, wrong)]) for name in ("first", "second")),
        Poses(
            *(torch.cat([getattr(one.pose, name) for one in (matches, wrong)]) for name in ("rotation", "translation"))
        ),
        torch.cat([matches.slot, wrong.slot]),
        torch.cat([matches.evidence, wrong.evidence]),
    )
    half = len(matches) // 2
    order = torch.cat(
        [torch.arange(half), 2 * half + torch.arange(half), half + torch.arange(half), 3 * half + torch.arange(half)]
    )
    step = last_step(TreeSolver(lambda _: both[order]), puzzle)
    rest = torch.arange(COUNT) != puzzle.fragments.areas.argmax()
    assert bool((step.placements.confidence[rest] < 0.75).all())


def test_a_chain_is_as_sure_as_all_its_links() -> None:
    puzzle, matches = broken()
    assert puzzle.truth is not None
    chain = matches[((matches.first - matches.second).abs() == 1).nonzero()[:, 0]]
    held = torch.arange(COUNT) == 0
    sure = linked(chain, puzzle.truth, held, torch.ones(len(held)))
    assert torch.allclose(sure, 0.9 ** torch.arange(COUNT).float(), atol=0.06)  # it counts draws
    placed = tree_poses(chain, Locks(held, puzzle.truth))
    assert apart(placed, puzzle.truth) < 1e-4


def test_two_objects_mixed_are_not_joined_by_what_is_not_there(network: Denoiser) -> None:
    puzzle, matches = broken()
    split = (matches.first < 3) == (matches.second < 3)
    apart_only = matches[split.nonzero()[:, 0]]
    step = last_step(FragmentDiffusionSolver(network, 3, 2, 0.0, lambda _: apart_only), puzzle)
    own = int(puzzle.fragments.areas.argmax()) < 3
    others = (torch.arange(COUNT) < 3) != own
    assert bool((step.placements.confidence[others] <= 0.1).all())


def test_spoilt_matches_stay_as_probable_and_two_sided() -> None:
    _, matches = broken()
    found = corrupt_matches(matches, 0.5, 0.3, torch.Generator().manual_seed(0))
    half = len(found) // 2
    assert 0 < half < len(matches) // 2
    assert torch.equal(found.first[:half], found.second[half:])
    back = found.pose[torch.arange(half)] @ found.pose[half + torch.arange(half)]
    assert torch.allclose(back.rotation, torch.eye(3).expand(half, 3, 3), atol=1e-5)
    assert torch.equal(corrupt_matches(matches, 0.0, 0.0, torch.Generator()).pose.rotation, matches.pose.rotation)
