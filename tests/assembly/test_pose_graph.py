"""Relaxation along matches: consistent ones are met exactly, a gap in a ring is shared out evenly."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from diffassemble.assembly.pose_graph import relax
from diffassemble.core import Matches, Poses
from diffassemble.core.poses import plane_rotations

LOOSE = torch.zeros(12, dtype=torch.bool)
RING = [(k, (k + 1) % 12) for k in range(12)]


def turned(angles: torch.Tensor, places: torch.Tensor) -> Poses:
    return Poses(plane_rotations(angles.double()), places.double())


def scattered(seed: int, angle: float = 3.0, far: float = 600.0) -> Poses:
    random = torch.Generator().manual_seed(seed)
    return turned(angle * (2 * torch.rand(12, generator=random) - 1), far * torch.rand(12, 2, generator=random))


def matches_of(truth: Poses, pairs: list[tuple[int, int]] | torch.Tensor) -> Matches:
    first, second = torch.as_tensor(pairs).T
    return Matches(
        first, second, truth[second].inverse() @ truth[first], torch.zeros_like(first), torch.ones(len(first), 3)
    )


def test_consistent_matches_are_met_exactly() -> None:
    truth = scattered(1)
    matches = matches_of(truth, [*RING, (0, 5), (3, 9), (2, 7)])
    found = relax(scattered(2, angle=0.5, far=50) @ truth, matches, LOOSE, torch.ones(15))
    relative = found[matches.second].inverse() @ found[matches.first]
    assert torch.allclose(relative.translation, matches.pose.translation, atol=1e-5)
    assert torch.allclose(relative.rotation, matches.pose.rotation, atol=1e-8)


def test_held_pieces_pieces_without_matches_and_loose_wholes_stay() -> None:
    truth = scattered(3)
    start = Poses(truth.rotation, truth.translation + torch.arange(12)[:, None])
    found = relax(start, matches_of(truth, [(0, 1), (1, 2), (2, 3)]), torch.arange(12) == 2, torch.ones(3))
    assert torch.equal(found.translation[2], start.translation[2])
    assert torch.allclose(found.translation[4:], start.translation[4:])
    assert torch.allclose(found.translation[:4], truth.translation[:4] + 2, atol=1e-5)
    found = relax(truth, matches_of(truth, RING), LOOSE, torch.ones(12))
    assert torch.allclose(found.translation, truth.translation, atol=1e-6)


def test_a_gap_in_a_ring_is_shared_out_evenly() -> None:
    """Every seam is 1 degree too wide, as in a ring of pieces that were all traced a little too small."""
    angles = torch.arange(12).double() * 2 * math.pi / 12
    matches = matches_of(turned(angles, 100 * torch.stack([angles.cos(), angles.sin()], 1)), RING)
    wrong = turned(torch.full((12,), math.radians(1)), torch.zeros(12, 2))
    given = replace(matches, pose=matches.pose @ wrong)
    grown = [turned(torch.zeros(1), torch.zeros(1, 2))]
    for k in range(10, -1, -1):
        grown.insert(0, grown[0] @ given.pose[[k]])
    start = Poses(torch.cat([p.rotation for p in grown]), torch.cat([p.translation for p in grown]))
    found = relax(start, given, LOOSE, torch.ones(12), tolerance=1e9)
    relative = found[given.second].inverse() @ found[given.first]
    left = (relative.translation - given.pose.translation).norm(dim=1)
    assert left.std() < 0.01 * left.mean() + 1e-6
    seams = (relative.inverse() @ matches.pose).rotation
    assert torch.allclose(seams, seams[:1].expand_as(seams), atol=1e-4)


def test_a_match_that_contradicts_the_others_yields() -> None:
    truth = scattered(5)
    matches = matches_of(truth, RING + [(k, (k + 3) % 12) for k in range(12)])
    matches.pose.translation[4] += 80
    robust, plain = (relax(truth, matches, LOOSE, torch.ones(24), tolerance) for tolerance in (3.0, 1e9))
    away = (robust.translation - robust.translation.mean(0)) - (truth.translation - truth.translation.mean(0))
    assert away.norm(dim=1).max() < 8
    assert (plain.translation - truth.translation).norm(dim=1).max() > 12


def test_a_loose_whole_neither_grows_nor_turns() -> None:
    """Steps along the tangent of a turn of the whole would make it larger each time."""
    generator, side = torch.Generator().manual_seed(4), 8
    places = 40.0 * torch.cartesian_prod(torch.arange(side), torch.arange(side)).double()
    truth = turned(6 * torch.rand(side**2, generator=generator), places)
    apart = torch.cdist(places, places)
    matches = matches_of(truth, ((apart > 0) & (apart < 41)).triu().nonzero())
    matches.pose.translation.add_(0.3 * torch.randn(len(matches), 2, generator=generator).double())
    began = Poses(truth.rotation, truth.translation + torch.randn(side**2, 2, generator=generator).double())
    found = relax(began, matches, torch.zeros(side**2, dtype=torch.bool), torch.ones(len(matches)))
    assert (found.translation - places).norm(dim=1).max() < 2
    left = found.rotation @ truth.rotation.mT
    assert torch.atan2(left[:, 1, 0], left[:, 0, 0]).abs().max() < 0.02
