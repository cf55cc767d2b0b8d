"""Estimates in the plane and in space: truth is kept, noise does not bias, and the frame does not matter."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from diffassemble.core import Locks, Matches, Poses
from diffassemble.core.matches import CHANNELS
from diffassemble.diffusion.rotations import angle_between, nearest_rotation, rotation_of
from diffassemble.diffusion.spaces import SPACES, SPAN
from diffassemble.network.evidence import (
    ESTIMATES,
    NUMBERS,
    Estimates,
    estimates,
    grow_clusters,
    residuals,
    settled,
    shown_evidence,
    true_given_poses,
    votes,
)
from diffassemble.network.heads import MatchScores, verdict_loss

COUNT = 7
UNIT = torch.ones(COUNT)
both_dimensions = pytest.mark.parametrize("dimension", [2, 3])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_turns(shape: tuple[int, ...], dimension: int, drawn: torch.Generator, spread: float = 1e3) -> Tensor:
    """Rotations near the identity if the spread is small, any if it is large."""
    return nearest_rotation(torch.eye(dimension) + spread * torch.randn(*shape, dimension, dimension, generator=drawn))


def assembly(dimension: int, seed: int = 0, chance: float = 0.9) -> tuple[Poses, Matches]:
    """Pieces in a ring with two chords, and all true matches between neighbours, both ways."""
    drawn = generator(seed)
    places = 0.25 * torch.randn(COUNT, dimension, generator=drawn)
    truth = Poses(random_turns((COUNT,), dimension, drawn), places)
    pairs = torch.tensor([*((i, (i + 1) % COUNT) for i in range(COUNT)), (0, 3), (2, 5)])
    first, second = torch.cat([pairs, pairs.flip(1)]).unbind(1)
    # No two pairs are equally probable, or only their order would decide which of them counts.
    own = chance - 0.001 * torch.arange(len(pairs)).repeat(2)
    evidence = own[:, None].repeat(1, CHANNELS)
    return truth, Matches(first, second, truth[second].inverse() @ truth[first], torch.zeros_like(first), evidence)


def locked(truth: Poses, *pieces: int) -> Locks:
    held = torch.zeros(len(truth), dtype=torch.bool)
    held[list(pieces)] = True
    return Locks(held, truth)


def estimated(rotation: Tensor, place: Tensor, time: float, matches: Matches, locks: Locks) -> Estimates:
    alpha_bar = torch.full(place.shape[:2], time)
    clusters = grow_clusters(matches, len(place), apart=0.0)
    variance = SPACES["plane" if place.shape[-1] == 2 else "so3"].turn_variance(alpha_bar)
    return estimates(rotation, place, alpha_bar, variance, SPAN, matches, clusters, locks, torch.ones(len(place)))


@both_dimensions
def test_a_true_assembly_is_a_fixed_point_and_follows_from_what_is_locked(dimension: int) -> None:
    truth, matches = assembly(dimension)
    rotation, place = truth.rotation[:, None], truth.translation[:, None]
    angle, far = residuals(matches, rotation, place)
    assert float(angle.max()) < 1e-3
    assert float(far.max()) < 1e-5
    found = estimated(rotation, place, 0.9999, matches, locked(truth, 0))
    assert found.rotation.shape == (COUNT, 1, ESTIMATES, dimension, dimension)
    assert found.numbers.shape == (COUNT, 1, NUMBERS)
    assert torch.allclose(found.rotation, truth.rotation[:, None, None].expand_as(found.rotation), atol=1e-3)
    assert torch.allclose(found.place, truth.translation[:, None, None].expand_as(found.place), atol=1e-3)
    # From noise alone, by the clusters of one locked piece.
    drawn = generator(3)
    noise = random_turns((COUNT, 1), dimension, drawn), torch.randn(COUNT, 1, dimension, generator=drawn)
    found = estimated(*noise, 1e-3, matches, locked(truth, 2))
    assert torch.allclose(found.rotation[:, 0, -1], truth.rotation, atol=1e-3)
    assert torch.allclose(found.place[:, 0, -1], truth.translation, atol=1e-3)
    assert float(found.support[:, 0, -1].min()) > 0.85
    assert float(found.support[:, 0, 0].max()) < 0.5


@both_dimensions
def test_votes_are_unbiased_under_noise_on_the_group_and_take_it_away(dimension: int) -> None:
    (truth, matches), samples, drawn = assembly(dimension, 1), 600, generator()
    if dimension == 3:
        turns = rotation_of(torch.randn(COUNT, samples, 3, generator=drawn), torch.tensor(0.25))  # IGSO(3)
    else:
        turns = random_turns((COUNT, samples), dimension, drawn, spread=0.4)
    noisy = truth.rotation[:, None] @ turns
    place = truth.translation[:, None] + 0.1 * torch.randn(COUNT, samples, dimension, generator=generator(1))
    weight = matches.probability[:, None].expand(-1, samples)
    rotation, moved = votes(matches, noisy, place, weight, None, 1e-9)
    rotation = nearest_rotation(rotation)
    for power in range(rotation.shape[2]):
        mean = nearest_rotation(rotation[:, :, power].mean(1))
        assert float(angle_between(mean, truth.rotation).max()) < 0.05
    before = angle_between(noisy, truth.rotation[:, None]).mean()
    after = angle_between(rotation[:, :, -1], truth.rotation[:, None]).mean()
    assert float(after) < 0.6 * float(before)
    assert float((moved.mean(1) - truth.translation[:, None]).norm(dim=-1).max()) < 0.12


@both_dimensions
def test_a_match_that_little_noise_contradicts_does_not_count(dimension: int) -> None:
    truth, matches = assembly(dimension)
    wrong = matches.pose.rotation.clone()
    wrong[0] = wrong[0] @ torch.diag(torch.tensor([-1.0, -1.0, 1.0][:dimension]))
    corrupted = replace(matches, pose=Poses(wrong, matches.pose.translation))
    clear, noisy = torch.full((COUNT, 1), 1e-4), torch.full((COUNT, 1), 50.0)
    poses = truth.rotation[:, None], truth.translation[:, None]
    known = true_given_poses(corrupted, *poses, clear, clear, UNIT)[:, 0]
    assert float(known[0]) < 0.05
    assert float(known[1:].min()) > 0.99
    blind = true_given_poses(corrupted, *poses, noisy, noisy, UNIT)[:, 0]
    assert torch.allclose(blind, matches.probability, atol=0.02)


@both_dimensions
def test_estimates_move_with_the_whole_and_do_not_cross_objects(dimension: int) -> None:
    (truth, matches), drawn = assembly(dimension), generator()
    rotation = random_turns((COUNT, 1), dimension, drawn)
    place = 0.2 * torch.randn(COUNT, 1, dimension, generator=drawn)
    turn = random_turns((1,), dimension, drawn)[0]
    whole = Poses(turn @ truth.rotation, truth.translation @ turn.T)
    one = estimated(rotation, place, 0.5, matches, locked(truth, 1))
    other = estimated(turn @ rotation, place @ turn.T, 0.5, matches, locked(whole, 1))
    assert torch.allclose(turn @ one.rotation, other.rotation, atol=2e-3)
    assert torch.allclose(one.place @ turn.T, other.place, atol=1e-4)
    assert torch.allclose(one.numbers, other.numbers, atol=5e-3)
    ends = (torch.cat([part, part + COUNT]) for part in (matches.first, matches.second))
    every = torch.arange(len(matches)).repeat(2)
    apart = Matches(*ends, matches.pose[every], matches.slot[every], matches.evidence[every])
    joined = torch.cat([rotation, rotation.flip(0)]), torch.cat([place, -place])
    both = truth[torch.arange(COUNT).repeat(2)]
    beside = estimated(*joined, 0.5, apart, locked(both, 1, COUNT))
    assert torch.allclose(one.rotation, beside.rotation[:COUNT], atol=1e-4)
    assert torch.allclose(one.numbers, beside.numbers[:COUNT], atol=1e-4)


@both_dimensions
def test_evidence_is_that_of_the_shown_matches_each_pair_once(dimension: int) -> None:
    truth, matches = assembly(dimension, chance=0.8)
    total, each = shown_evidence(matches, truth.rotation, truth.translation, UNIT)
    odds = -torch.log(1 - matches.probability)
    assert float(total) == pytest.approx(float(odds.sum()) / 2, rel=1e-4)
    assert float(each.sum()) == pytest.approx(float(odds.sum()), rel=1e-4)
    moved = truth.translation.clone()
    moved[0] += 1
    less, own = shown_evidence(matches, truth.rotation, moved, UNIT)
    assert float(own[0]) == 0
    assert float(less) == pytest.approx(float(total - each[0]), rel=1e-4)
    # Smaller units need closer places.
    moved = truth.translation + 0.01 * (torch.arange(COUNT) == 0)[:, None]
    whole, small = (shown_evidence(matches, truth.rotation, moved, unit * UNIT)[1][0] for unit in (1.0, 0.05))
    assert float(whole) > 0.8 * float(each[0])
    assert float(small) < 0.1 * float(each[0])


@both_dimensions
def test_poses_settle_on_the_matches_that_they_nearly_agree_with(dimension: int) -> None:
    (truth, matches), drawn = assembly(dimension), generator()
    turns = random_turns((COUNT, 1), dimension, drawn, spread=0.03)
    place = truth.translation[:, None] + 0.01 * torch.randn(COUNT, 1, dimension, generator=drawn)
    rotation, moved = settled(matches, truth.rotation[:, None] @ turns, place, locked(truth, 0), UNIT)
    assert float(angle_between(rotation, truth.rotation[:, None]).max()) < 0.01
    assert float((moved - truth.translation[:, None]).norm(dim=-1).max()) < 0.005
    cancelled = nearest_rotation(torch.zeros(2, dimension, dimension))
    assert torch.allclose(cancelled @ cancelled.mT, torch.eye(dimension).expand_as(cancelled), atol=1e-4)


def test_verdicts_begin_with_the_matchers_odds_and_learn_which_are_true() -> None:
    truth, matches = assembly(2)
    wrong = Poses(matches.pose.rotation, matches.pose.translation.clone())
    wrong.translation[[0, 9]] += 0.5
    matches = replace(matches, pose=wrong)
    torch.manual_seed(0)
    scores, nodes = MatchScores(4), torch.zeros(COUNT, 1, 4)
    found = estimated(truth.rotation[:, None], truth.translation[:, None], 0.999, matches, locked(truth, 0))
    chance = torch.sigmoid(scores(nodes, matches, found, UNIT)).detach()[:, 0]
    assert torch.allclose(chance, matches.probability, atol=1e-4)
    optimiser = torch.optim.Adam(scores.parameters(), 0.02)
    for _ in range(60):
        optimiser.zero_grad()
        verdict_loss(scores(nodes, matches, found, UNIT), matches, truth, UNIT).backward()
        optimiser.step()
    chance = torch.sigmoid(scores(nodes, matches, found, UNIT)).detach()[:, 0]
    true = ~torch.isin(torch.arange(len(matches)), torch.tensor([0, 9]))
    assert float(chance[~true].max()) < 0.2
    assert float(chance[true].min()) > 0.9
