"""Relaxation along matches: consistent ones are met exactly, a gap in a ring is shared out evenly."""

from __future__ import annotations

import math

import torch

from diffassemble.assembly.pose_graph import relax
from diffassemble.core import Matches, Poses


def turned(angles: torch.Tensor, places: torch.Tensor) -> Poses:
    cosine, sine = angles.cos(), angles.sin()
    return Poses(torch.stack([cosine, -sine, sine, cosine], -1).reshape(-1, 2, 2), places)


def matches_of(truth: Poses, pairs: list[tuple[int, int]]) -> Matches:
    first, second = torch.tensor(pairs).T
    relative = truth[second].inverse() @ truth[first]
    return Matches(first, second, relative, torch.zeros(len(pairs), dtype=torch.long), torch.ones(len(pairs), 3))


def scattered(count: int, seed: int) -> Poses:
    random = torch.Generator().manual_seed(seed)
    angles = (torch.rand(count, generator=random).double() - 0.5) * 6
    return turned(angles, torch.rand(count, 2, generator=random).double() * 600)


def ring(count: int) -> list[tuple[int, int]]:
    return [(k, (k + 1) % count) for k in range(count)]


NONE_HELD = torch.zeros(12, dtype=torch.bool)


def test_consistent_matches_are_met_exactly() -> None:
    truth = scattered(12, 1)
    pairs = [*ring(12), (0, 5), (3, 9), (2, 7)]
    matches = matches_of(truth, pairs)
    random = torch.Generator().manual_seed(2)
    drift = turned(0.3 * torch.randn(12, generator=random).double(), 20 * torch.randn(12, 2, generator=random).double())
    found = relax(drift @ truth, matches, NONE_HELD, torch.ones(len(pairs)))
    relative = found[matches.second].inverse() @ found[matches.first]
    assert torch.allclose(relative.translation, matches.pose.translation, atol=1e-5)
    assert torch.allclose(relative.rotation, matches.pose.rotation, atol=1e-8)


def test_held_pieces_and_pieces_without_matches_stay() -> None:
    truth = scattered(12, 3)
    matches = matches_of(truth, [(0, 1), (1, 2), (2, 3)])
    start = Poses(truth.rotation, truth.translation + torch.arange(12)[:, None])
    held = NONE_HELD.clone()
    held[2] = True
    found = relax(start, matches, held, torch.ones(3))
    assert torch.equal(found.translation[2], start.translation[2])
    assert torch.allclose(found.translation[4:], start.translation[4:])
    assert torch.allclose(found.translation[:4], truth.translation[:4] + 2, atol=1e-5)


def test_a_loose_group_keeps_its_place_as_a_whole() -> None:
    truth = scattered(12, 4)
    found = relax(truth, matches_of(truth, ring(12)), NONE_HELD, torch.ones(12))
    assert torch.allclose(found.translation, truth.translation, atol=1e-6)


def test_a_gap_in_a_ring_is_shared_out_evenly() -> None:
    angles = torch.arange(12).double() * 2 * math.pi / 12
    truth = turned(angles, 100 * torch.stack([angles.cos(), angles.sin()], 1))
    matches = matches_of(truth, ring(12))
    # Every seam is 1 degree too wide, as in a ring of pieces that were all traced a little too small.
    wrong = turned(torch.full((12,), math.radians(1)).double(), torch.zeros(12, 2).double())
    given = Matches(matches.first, matches.second, matches.pose @ wrong, matches.slot, matches.evidence)
    grown = [truth[[11]]]
    for k in range(10, -1, -1):
        grown.insert(0, grown[0] @ given.pose[[k]])
    start = Poses(torch.cat([p.rotation for p in grown]), torch.cat([p.translation for p in grown]))
    found = relax(start, given, NONE_HELD, torch.ones(12), tolerance=1e9)
    relative = found[given.second].inverse() @ found[given.first]
    left = (relative.translation - given.pose.translation).norm(dim=1)
    assert left.std() < 0.01 * left.mean() + 1e-6
    seams = (relative.inverse() @ matches.pose).rotation
    assert torch.allclose(seams, seams[:1].expand_as(seams), atol=1e-4)


def test_a_match_that_contradicts_the_others_yields() -> None:
    truth = scattered(12, 5)
    pairs = ring(12) + [(k, (k + 3) % 12) for k in range(12)]
    matches = matches_of(truth, pairs)
    matches.pose.translation[4] += 80
    found = relax(truth, matches, NONE_HELD, torch.ones(len(pairs)))
    away = (found.translation - found.translation.mean(0)) - (truth.translation - truth.translation.mean(0))
    assert away.norm(dim=1).max() < 8
    plain = relax(truth, matches, NONE_HELD, torch.ones(len(pairs)), tolerance=1e9)
    assert (plain.translation - truth.translation).norm(dim=1).max() > 12


def test_a_loose_whole_neither_grows_nor_turns() -> None:
    """Steps along the tangent of a turn of the whole would make it larger each time."""
    generator = torch.Generator().manual_seed(4)
    side = 8
    places = 40.0 * torch.cartesian_prod(torch.arange(side), torch.arange(side)).double()
    truth = turned(6 * torch.rand(side**2, generator=generator).double(), places)
    apart = torch.cdist(places, places)
    first, second = ((apart > 0) & (apart < 41)).triu().nonzero().T
    relative = truth[second].inverse() @ truth[first]
    noise = 0.3 * torch.randn(len(first), 2, generator=generator).double()
    relative = Poses(relative.rotation, relative.translation + noise)
    matches = Matches(first, second, relative, torch.zeros_like(first), torch.ones(len(first), 3))
    began = Poses(truth.rotation, truth.translation + torch.randn(side**2, 2, generator=generator).double())
    found = relax(began, matches, torch.zeros(side**2, dtype=torch.bool), torch.ones(len(first)))
    assert (found.translation - places).norm(dim=1).max() < 2
    left = found.rotation @ truth.rotation.mT
    assert torch.atan2(left[:, 1, 0], left[:, 0, 0]).abs().max() < 0.02
