"""What matches say in the plane and in space: truth stays, noise does not bias, and nothing hangs on frames."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from diffassemble.core import Matches, Poses
from diffassemble.core.matches import CHANNELS
from diffassemble.diffusion.so3 import SPAN, rotation_of
from diffassemble.diffusion.spaces import SPACES
from diffassemble.network.evidence import grow_clusters
from diffassemble.network.spatial import (
    NUMBERS,
    OPINIONS,
    Held,
    angle_between,
    nearest_rotation,
    opinions,
    residuals,
    settled,
    shown_evidence,
    true_given_poses,
    votes,
)
from diffassemble.network.verdicts import Verdicts, verdict_loss

COUNT = 7
UNIT = torch.ones(COUNT)
both_dimensions = pytest.mark.parametrize("dimension", [2, 3])


def random_turns(shape: tuple[int, ...], dimension: int, generator: torch.Generator, spread: float = 1e3) -> Tensor:
    """Rotations near the identity if the spread is small, any if it is large."""
    return nearest_rotation(
        torch.eye(dimension) + spread * torch.randn(*shape, dimension, dimension, generator=generator)
    )


def assembly(dimension: int, seed: int = 0, chance: float = 0.9) -> tuple[Poses, Matches]:
    """Pieces in a ring with two chords, and all true matches between neighbours, both ways."""
    generator = torch.Generator().manual_seed(seed)
    places = 0.25 * torch.randn(COUNT, dimension, generator=generator)
    truth = Poses(random_turns((COUNT,), dimension, generator), places)
    pairs = torch.tensor([*((i, (i + 1) % COUNT) for i in range(COUNT)), (0, 3), (2, 5)])
    pairs = torch.cat([pairs, pairs.flip(1)])
    first, second = pairs.unbind(1)
    # No two pairs are equally probable, or only their order would tell which of them counts.
    own = chance - 0.001 * torch.arange(len(pairs) // 2).repeat(2)
    evidence = own[:, None].repeat(1, CHANNELS)
    return truth, Matches(first, second, truth[second].inverse() @ truth[first], torch.zeros_like(first), evidence)


def held_at(truth: Poses, *pieces: int) -> Held:
    held = torch.zeros(len(truth), dtype=torch.bool)
    held[list(pieces)] = True
    return Held(held, truth.rotation, truth.translation)


def heard(rotation: torch.Tensor, place: torch.Tensor, time: float, matches: Matches, held: Held):  # type: ignore[no-untyped-def]
    alpha_bar = torch.full(place.shape[:2], time)
    clusters = grow_clusters(matches, len(place), apart=0.0)
    variance = SPACES["plane" if place.shape[-1] == 2 else "so3"].turn_variance(alpha_bar)
    return opinions(rotation, place, alpha_bar, variance, SPAN, matches, clusters, held, torch.ones(len(place)))


@both_dimensions
def test_true_matches_make_a_true_assembly_a_fixed_point(dimension: int) -> None:
    truth, matches = assembly(dimension)
    rotation, place = truth.rotation[:, None], truth.translation[:, None]
    angle, far = residuals(matches, rotation, place)
    assert float(angle.max()) < 1e-3
    assert float(far.max()) < 1e-5
    said = heard(rotation, place, 0.9999, matches, held_at(truth, 0))
    assert said.rotation.shape == (COUNT, 1, OPINIONS, dimension, dimension)
    assert said.numbers.shape == (COUNT, 1, NUMBERS)
    assert torch.allclose(said.rotation, truth.rotation[:, None, None].expand_as(said.rotation), atol=1e-3)
    assert torch.allclose(said.place, truth.translation[:, None, None].expand_as(said.place), atol=1e-3)


@both_dimensions
def test_clusters_know_from_what_is_held_where_everything_stands(dimension: int) -> None:
    truth, matches = assembly(dimension)
    noise = torch.Generator().manual_seed(3)
    said = heard(
        random_turns((COUNT, 1), dimension, noise),
        torch.randn(COUNT, 1, dimension, generator=noise),
        1e-3,
        matches,
        held_at(truth, 2),
    )
    last = OPINIONS - 1
    assert torch.allclose(said.rotation[:, 0, last], truth.rotation, atol=1e-3)
    assert torch.allclose(said.place[:, 0, last], truth.translation, atol=1e-3)
    assert float(said.support[:, 0, last].min()) > 0.85
    assert float(said.support[:, 0, 0].max()) < 0.5


@both_dimensions
def test_votes_are_unbiased_under_noise_on_the_group_and_take_it_away(dimension: int) -> None:
    truth, matches = assembly(dimension, 1)
    samples = 600
    generator = torch.Generator().manual_seed(0)
    if dimension == 3:
        normals = torch.randn(COUNT, samples, 3, generator=generator)
        turns = rotation_of(normals, torch.tensor(0.25))  # IGSO(3)
    else:
        turns = random_turns((COUNT, samples), dimension, generator, spread=0.4)
    noisy = truth.rotation[:, None] @ turns
    shifts = 0.1 * torch.randn(COUNT, samples, dimension, generator=torch.Generator().manual_seed(1))
    place = truth.translation[:, None] + shifts
    nobody = Held(torch.zeros(COUNT, dtype=torch.bool), truth.rotation, truth.translation)
    weight = matches.probability[:, None].expand(-1, samples)
    rotation, moved = votes(matches, noisy, place, weight, nobody)
    for power in range(rotation.shape[2]):
        mean = nearest_rotation(rotation[:, :, power].mean(1))
        assert float(angle_between(mean, truth.rotation).max()) < 0.05
    before = angle_between(noisy, truth.rotation[:, None]).mean()
    after = angle_between(rotation[:, :, -1], truth.rotation[:, None]).mean()
    assert float(after) < 0.6 * float(before)
    assert float((moved.mean(1) - truth.translation[:, None]).norm(dim=-1).max()) < 0.12


@both_dimensions
def test_a_match_that_little_noise_contradicts_is_not_heard(dimension: int) -> None:
    truth, matches = assembly(dimension)
    wrong = matches.pose.rotation.clone()
    wrong[0] = wrong[0] @ torch.diag(torch.tensor([-1.0, -1.0, 1.0][:dimension]))
    spoilt = Matches(
        matches.first, matches.second, Poses(wrong, matches.pose.translation), matches.slot, matches.evidence
    )
    clear, noisy = torch.full((COUNT, 1), 1e-4), torch.full((COUNT, 1), 50.0)
    poses = truth.rotation[:, None], truth.translation[:, None]
    known = true_given_poses(spoilt, *poses, clear, clear, UNIT)[:, 0]
    assert float(known[0]) < 0.05
    assert float(known[1:].min()) > 0.99
    blind = true_given_poses(spoilt, *poses, noisy, noisy, UNIT)[:, 0]
    assert torch.allclose(blind, matches.probability, atol=0.02)


@pytest.mark.parametrize("seed", range(3))
@both_dimensions
def test_turning_and_moving_the_whole_turns_and_moves_all_opinions(dimension: int, seed: int) -> None:
    truth, matches = assembly(dimension, seed)
    generator = torch.Generator().manual_seed(seed)
    rotation = random_turns((COUNT, 1), dimension, generator)
    place = 0.2 * torch.randn(COUNT, 1, dimension, generator=generator)
    turn = random_turns((1,), dimension, generator)[0]
    whole = Poses(turn @ truth.rotation, truth.translation @ turn.T)
    one = heard(rotation, place, 0.5, matches, held_at(truth, 1))
    other = heard(turn @ rotation, place @ turn.T, 0.5, matches, held_at(whole, 1))
    assert torch.allclose(turn @ one.rotation, other.rotation, atol=2e-3)
    assert torch.allclose(one.place @ turn.T, other.place, atol=1e-4)
    assert torch.allclose(one.numbers, other.numbers, atol=5e-3)


@both_dimensions
def test_the_order_of_pieces_and_matches_does_not_matter(dimension: int) -> None:
    truth, matches = assembly(dimension)
    generator = torch.Generator().manual_seed(0)
    rotation, place = (
        random_turns((COUNT, 1), dimension, generator),
        torch.randn(COUNT, 1, dimension, generator=generator),
    )
    order = torch.randperm(COUNT, generator=generator)
    number, shuffled = order.argsort(), matches[torch.randperm(len(matches), generator=generator)]
    renamed = Matches(number[shuffled.first], number[shuffled.second], shuffled.pose, shuffled.slot, shuffled.evidence)
    one = heard(rotation, place, 0.5, matches, held_at(truth, 0))
    other = heard(rotation[order], place[order], 0.5, renamed, held_at(truth[order], int(number[0])))
    assert torch.allclose(one.rotation[order], other.rotation, atol=1e-3)
    assert torch.allclose(one.support[order], other.support, atol=1e-4)


@both_dimensions
def test_nothing_is_heard_across_objects(dimension: int) -> None:
    truth, matches = assembly(dimension)
    apart = Matches(*(torch.cat([part, part + COUNT]) for part in (matches.first, matches.second)),
                    matches.pose[torch.arange(len(matches)).repeat(2)], matches.slot.repeat(2),
                    matches.evidence.repeat(2, 1))  # fmt: skip
    both = truth[torch.arange(COUNT).repeat(2)]
    generator = torch.Generator().manual_seed(0)
    rotation, place = (
        random_turns((COUNT, 1), dimension, generator),
        torch.randn(COUNT, 1, dimension, generator=generator),
    )
    other = random_turns((COUNT, 1), dimension, generator), torch.randn(COUNT, 1, dimension, generator=generator)
    alone = heard(rotation, place, 0.5, matches, held_at(truth, 0))
    beside = heard(torch.cat([rotation, other[0]]), torch.cat([place, other[1]]), 0.5, apart, held_at(both, 0, COUNT))
    assert torch.allclose(alone.rotation, beside.rotation[:COUNT], atol=1e-4)
    assert torch.allclose(alone.numbers, beside.numbers[:COUNT], atol=1e-4)


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


@both_dimensions
def test_what_is_nearly_shown_settles_on_the_matches(dimension: int) -> None:
    truth, matches = assembly(dimension)
    generator = torch.Generator().manual_seed(0)
    turns = random_turns((COUNT, 1), dimension, generator, spread=0.03)
    place = truth.translation[:, None] + 0.01 * torch.randn(COUNT, 1, dimension, generator=generator)
    rotation, moved = settled(matches, truth.rotation[:, None] @ turns, place, held_at(truth, 0), UNIT)
    assert float(angle_between(rotation, truth.rotation[:, None]).max()) < 0.01
    assert float((moved - truth.translation[:, None]).norm(dim=-1).max()) < 0.005


@both_dimensions
def test_the_mean_of_what_cancels_out_is_still_a_rotation(dimension: int) -> None:
    found = nearest_rotation(torch.zeros(2, dimension, dimension))
    assert torch.allclose(found @ found.mT, torch.eye(dimension).expand_as(found), atol=1e-4)
    assert torch.allclose(torch.linalg.det(found), torch.ones(2), atol=1e-4)


@both_dimensions
def test_verdicts_begin_with_what_matches_came_with_and_learn_which_are_true(dimension: int) -> None:
    truth, matches = assembly(dimension)
    wrong = Poses(matches.pose.rotation, matches.pose.translation.clone())
    wrong.translation[[0, 9]] += 0.5
    told = replace(matches, pose=wrong)
    torch.manual_seed(0)
    verdicts, nodes = Verdicts(4), torch.zeros(COUNT, 1, 4)
    said = heard(truth.rotation[:, None], truth.translation[:, None], 0.999, told, held_at(truth, 0))
    chance = torch.sigmoid(verdicts(nodes, told, said, UNIT)).detach()[:, 0]
    assert torch.allclose(chance, matches.probability, atol=1e-4)
    optimiser = torch.optim.Adam(verdicts.parameters(), 0.02)
    for _ in range(60):
        loss = verdict_loss(verdicts(nodes, told, said, UNIT), told, truth, UNIT)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    chance = torch.sigmoid(verdicts(nodes, told, said, UNIT)).detach()[:, 0]
    true = torch.ones(len(matches), dtype=torch.bool)
    true[[0, 9]] = False
    assert float(chance[~true].max()) < 0.2
    assert float(chance[true].min()) > 0.9


def test_smaller_units_ask_for_closer_places() -> None:
    truth, matches = assembly(2)
    moved = truth.translation.clone()
    moved[0] += 0.01
    whole, small = (shown_evidence(matches, truth.rotation, moved, unit * UNIT)[1][0] for unit in (1.0, 0.05))
    true = shown_evidence(matches, truth.rotation, truth.translation, UNIT)[1][0]
    assert float(whole) > 0.9 * float(true)
    assert float(small) < 0.1 * float(true)
