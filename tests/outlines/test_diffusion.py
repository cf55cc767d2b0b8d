"""Diffusion of flat pieces: true by true matches, blind to listing, scale and frames, and honest."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diffassemble.core import Locks, Matches, OutlinePieces, Poses, Puzzle, Step
from diffassemble.core.matches import CHANNELS
from diffassemble.core.poses import plane_rotations
from diffassemble.core.solver import content_order
from diffassemble.network.batch import pack
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.outlines.diffusion import OutlineDiffusionSolver, both_ways, normalised

CONFIG = ModelConfig(backbone="outline", symmetry="invariant", space="plane", features=4, width=16, layers=2, heads=2,
                     contact_slots=1, verdicts=True, join_hidden=16)  # fmt: skip
SIDE = 60.0


@pytest.fixture(scope="module")
def network() -> Denoiser:
    torch.manual_seed(0)
    return Denoiser(CONFIG).eval()


def sheet(rows: int = 3, cols: int = 4, seed: int = 0, chance: float = 0.95) -> tuple[Puzzle, Matches]:
    """Wobbly rectangles of a lattice, turned by any angles, listed by what they are; the matches of all neighbours."""
    generator, count = torch.Generator().manual_seed(seed), rows * cols
    angle = torch.arange(64) * (2 * torch.pi / 64)
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    contours = SIDE / 2 * (1 + 0.1 * torch.rand(count, 64, 1, generator=generator)) * circle
    contours = contours[content_order(contours)]
    turns = plane_rotations(2 * torch.pi * torch.rand(count, generator=generator))
    number = torch.arange(count)
    truth = Poses(turns, SIDE * torch.stack([number % cols, number // cols], 1).float())
    pieces = OutlinePieces((torch.zeros(4, 1, 1, dtype=torch.uint8),) * count, tuple(contours), torch.zeros(count, 2))
    far = torch.cdist(truth.translation, truth.translation)
    beside = [(i, j) for i in range(count) for j in range(i) if far[i, j] < SIDE + 1]
    first, second = torch.tensor(beside, dtype=torch.long).view(-1, 2).unbind(1)
    relative = truth[second].inverse() @ truth[first]
    evidence = torch.full((len(first), CHANNELS), chance)
    puzzle = Puzzle(pieces, None, tuple(map(str, range(count))), truth)
    return puzzle, Matches(first, second, relative, torch.zeros_like(first), evidence)


def last_step(network: Denoiser, puzzle: Puzzle, matches: Matches, seed: int = 0) -> Step:
    solver = OutlineDiffusionSolver(network, lambda _: matches, 4, 2)
    *_, step = solver.steps(puzzle.without_truth(), torch.Generator().manual_seed(seed))
    return step


def seen_from(poses: Poses, piece: int) -> Poses:
    return poses[[piece] * len(poses)].inverse() @ poses


def apart(one: Poses, two: Poses) -> float:
    """In pixels, for points at the rim of a piece."""
    turned = SIDE * (one.rotation - two.rotation).abs().max()
    return float(torch.maximum(turned, (one.translation - two.translation).abs().max()))


def test_true_matches_give_the_true_assembly(network: Denoiser) -> None:
    puzzle, matches = sheet()
    assert puzzle.truth is not None
    step = last_step(network, puzzle, matches)
    assert apart(seen_from(step.poses, 5), seen_from(puzzle.truth, 5)) < 0.5
    assert 0.8 < float(step.placements.confidence.min()) <= float(step.placements.confidence.max()) <= 0.9
    assert step.placements.objects is not None
    assert not step.placements.objects.any()


def test_the_order_of_pieces_and_the_direction_of_matches_change_nothing(network: Denoiser) -> None:
    puzzle, matches = sheet()
    order = torch.randperm(len(puzzle), generator=torch.Generator().manual_seed(1))
    one, other = last_step(network, puzzle, matches), last_step(network, puzzle.reordered(order), both_ways(matches))
    assert apart(one.poses[order], other.poses) < 0.1


def test_pieces_photographed_larger_are_put_together_alike(network: Denoiser) -> None:
    puzzle, matches = sheet()
    pieces, relative = puzzle.outlines, matches.pose
    large = replace(puzzle, pieces=replace(pieces, contours=tuple(3 * contour for contour in pieces.contours)))
    larger = replace(matches, pose=Poses(relative.rotation, 3 * relative.translation))
    one, other = last_step(network, puzzle, matches), last_step(network, large, larger)
    assert apart(Poses(one.poses.rotation, 3 * one.poses.translation), other.poses) < 0.3


def test_what_is_locked_stays_and_a_motion_of_it_moves_the_answer(network: Denoiser) -> None:
    puzzle, matches = sheet()
    truth, count = puzzle.truth, len(puzzle)
    assert truth is not None
    held = torch.arange(count) == 3
    motion = Poses(plane_rotations(torch.tensor([0.7])), torch.tensor([[40.0, -20.0]]))
    one = last_step(network, replace(puzzle, locks=Locks(held, truth)), matches)
    moved = motion[[0] * count] @ truth
    other = last_step(network, replace(puzzle, locks=Locks(held, moved)), matches)
    assert apart(one.poses[held], truth[held]) < 1e-3
    assert apart(motion[[0] * count] @ one.poses, other.poses) < 0.2


@pytest.mark.parametrize("count", [1, 5])
def test_without_matches_one_piece_is_placed_and_all_are_apart(network: Denoiser, count: int) -> None:
    puzzle, matches = sheet(1, count)
    step = last_step(network, puzzle, matches[torch.zeros(0, dtype=torch.long)])
    assert step.placements.objects is not None
    assert int((step.placements.objects == 0).sum()) == 1
    assert int((step.placements.confidence > 0).sum()) == 1
    distance = torch.cdist(step.poses.translation, step.poses.translation) + 1e6 * torch.eye(count)
    assert float(distance.min()) > SIDE


def test_a_piece_that_matches_contradict_is_unplaced(network: Denoiser) -> None:
    puzzle, matches = sheet()
    assert puzzle.truth is not None
    # Matches that are hardly likely put the last piece at two other places.
    touching = (matches.first == 11) | (matches.second == 11)
    evidence = matches.evidence.clone()
    evidence[touching] = 0.05
    shifts = matches.pose.translation + torch.where(touching[:, None], SIDE * torch.tensor([0.4, 1.3]), 0.0)
    wrong = replace(matches, evidence=evidence, pose=Poses(matches.pose.rotation, shifts))
    step = last_step(network, puzzle, wrong)
    assert step.placements.objects is not None
    assert step.placements.objects.tolist() == [0] * 11 + [-1]
    assert apart(seen_from(step.poses, 5)[:11], seen_from(puzzle.truth, 5)[:11]) < 0.5
    assert step.placements.notes is not None
    assert step.placements.notes[11].startswith("unplaced: ")


def test_matches_are_listed_both_ways_once() -> None:
    _, matches = sheet()
    both = both_ways(matches)
    assert len(both) == 2 * len(matches)
    again = both_ways(both)
    assert len(again) == len(both)
    half = len(both) // 2
    assert torch.equal(both.first[:half], both.second[half:])
    poses = both.pose[torch.arange(half)] @ both.pose[torch.arange(half, 2 * half)]
    assert torch.allclose(poses.translation, torch.zeros(half, 2), atol=1e-3)


def test_the_network_reads_every_whole_at_one_size() -> None:
    puzzle, matches = sheet(chance=0.5)
    given = normalised(puzzle, matches)
    assert float(given.puzzle.outlines.areas.sum()) == pytest.approx(1, rel=1e-4)
    unit = pack([given.puzzle]).board[:, 2]
    assert float(unit[0]) == pytest.approx(2 * float(given.puzzle.outlines.areas.median().sqrt()), rel=1e-3)
    assert puzzle.truth is not None
    assert given.puzzle.truth is not None
    assert apart(given.in_pixels(given.puzzle.truth), puzzle.truth) < 1e-3
