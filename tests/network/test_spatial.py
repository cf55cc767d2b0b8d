"""What matches say in space: true ones keep a true assembly, noise does not bias them, and nothing hangs on frames."""

from __future__ import annotations

import pytest
import torch

from diffassemble.core import Matches, Poses
from diffassemble.core.pieces import CHANNELS
from diffassemble.core.poses import random_rotations
from diffassemble.diffusion.so3 import SPAN, rotation_of, spread_at
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

COUNT = 7


def assembly(seed: int = 0, chance: float = 0.9) -> tuple[Poses, Matches]:
    """Pieces in a ring with two chords, and all true matches between neighbours, both ways."""
    generator = torch.Generator().manual_seed(seed)
    truth = Poses(random_rotations(COUNT, generator), 0.25 * torch.randn(COUNT, 3, generator=generator))
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
    return opinions(rotation, place, alpha_bar, spread_at(alpha_bar), SPAN, matches, clusters, held)


def test_true_matches_make_a_true_assembly_a_fixed_point() -> None:
    truth, matches = assembly()
    rotation, place = truth.rotation[:, None], truth.translation[:, None]
    angle, far = residuals(matches, rotation, place)
    assert float(angle.max()) < 1e-3
    assert float(far.max()) < 1e-5
    said = heard(rotation, place, 0.9999, matches, held_at(truth, 0))
    assert said.rotation.shape == (COUNT, 1, OPINIONS, 3, 3)
    assert said.numbers.shape == (COUNT, 1, NUMBERS)
    assert torch.allclose(said.rotation, truth.rotation[:, None, None].expand_as(said.rotation), atol=1e-3)
    assert torch.allclose(said.place, truth.translation[:, None, None].expand_as(said.place), atol=1e-3)


def test_clusters_know_from_what_is_held_where_everything_stands() -> None:
    truth, matches = assembly()
    noise = torch.Generator().manual_seed(3)
    said = heard(
        random_rotations(COUNT, noise)[:, None],
        torch.randn(COUNT, 1, 3, generator=noise),
        1e-3,
        matches,
        held_at(truth, 2),
    )
    last = OPINIONS - 1
    assert torch.allclose(said.rotation[:, 0, last], truth.rotation, atol=1e-3)
    assert torch.allclose(said.place[:, 0, last], truth.translation, atol=1e-3)
    assert float(said.support[:, 0, last].min()) > 0.85
    assert float(said.support[:, 0, 0].max()) < 0.5


def test_votes_are_unbiased_under_noise_on_the_group_and_take_it_away() -> None:
    truth, matches = assembly(1)
    samples, spread = 600, 0.3
    turns = torch.randn(COUNT, samples, 3, generator=torch.Generator().manual_seed(0))
    noisy = truth.rotation[:, None] @ rotation_of(turns, torch.tensor(spread))
    shifts = 0.1 * torch.randn(COUNT, samples, 3, generator=torch.Generator().manual_seed(1))
    place = truth.translation[:, None] + shifts
    nobody = Held(torch.zeros(COUNT, dtype=torch.bool), truth.rotation, truth.translation)
    weight = matches.weight[:, None].expand(-1, samples)
    rotation, moved = votes(matches, noisy, place, weight, nobody)
    for power in range(rotation.shape[2]):
        mean = nearest_rotation(rotation[:, :, power].mean(1))
        assert float(angle_between(mean, truth.rotation).max()) < 0.05
    before = angle_between(noisy, truth.rotation[:, None]).mean()
    after = angle_between(rotation[:, :, -1], truth.rotation[:, None]).mean()
    assert float(after) < 0.6 * float(before)
    assert float((moved.mean(1) - truth.translation[:, None]).norm(dim=-1).max()) < 0.12


def test_a_match_that_little_noise_contradicts_is_not_heard() -> None:
    truth, matches = assembly()
    wrong = matches.relative.rotation.clone()
    wrong[0] = wrong[0] @ rotation_of(torch.tensor([1.0, 0.0, 0.0]), torch.tensor(0.7))
    spoilt = Matches(
        matches.first, matches.second, Poses(wrong, matches.relative.translation), matches.slot, matches.evidence
    )
    clear, noisy = torch.full((COUNT, 1), 1e-4), torch.full((COUNT, 1), 50.0)
    poses = truth.rotation[:, None], truth.translation[:, None]
    known = true_given_poses(spoilt, *poses, clear, clear)[:, 0]
    assert float(known[0]) < 0.05
    assert float(known[1:].min()) > 0.99
    blind = true_given_poses(spoilt, *poses, noisy, noisy)[:, 0]
    assert torch.allclose(blind, matches.weight, atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_turning_and_moving_the_whole_turns_and_moves_all_opinions(seed: int) -> None:
    truth, matches = assembly(seed)
    generator = torch.Generator().manual_seed(seed)
    rotation, place = random_rotations(COUNT, generator)[:, None], 0.2 * torch.randn(COUNT, 1, 3, generator=generator)
    turn = random_rotations(1, generator)[0]
    whole = Poses(turn @ truth.rotation, truth.translation @ turn.T)
    one = heard(rotation, place, 0.5, matches, held_at(truth, 1))
    other = heard(turn @ rotation, place @ turn.T, 0.5, matches, held_at(whole, 1))
    assert torch.allclose(turn @ one.rotation, other.rotation, atol=2e-3)
    assert torch.allclose(one.place @ turn.T, other.place, atol=1e-4)
    assert torch.allclose(one.numbers, other.numbers, atol=5e-3)


def test_the_order_of_pieces_and_matches_does_not_matter() -> None:
    truth, matches = assembly()
    generator = torch.Generator().manual_seed(0)
    rotation, place = random_rotations(COUNT, generator)[:, None], torch.randn(COUNT, 1, 3, generator=generator)
    order = torch.randperm(COUNT, generator=generator)
    number, shuffled = order.argsort(), matches[torch.randperm(len(matches), generator=generator)]
    renamed = Matches(
        number[shuffled.first], number[shuffled.second], shuffled.relative, shuffled.slot, shuffled.evidence
    )
    one = heard(rotation, place, 0.5, matches, held_at(truth, 0))
    other = heard(rotation[order], place[order], 0.5, renamed, held_at(truth[order], int(number[0])))
    assert torch.allclose(one.rotation[order], other.rotation, atol=1e-3)
    assert torch.allclose(one.support[order], other.support, atol=1e-4)


def test_nothing_is_heard_across_objects() -> None:
    truth, matches = assembly()
    apart = Matches(*(torch.cat([part, part + COUNT]) for part in (matches.first, matches.second)),
                    matches.relative[torch.arange(len(matches)).repeat(2)], matches.slot.repeat(2),
                    matches.evidence.repeat(2, 1))  # fmt: skip
    both = truth[torch.arange(COUNT).repeat(2)]
    generator = torch.Generator().manual_seed(0)
    rotation, place = random_rotations(COUNT, generator)[:, None], torch.randn(COUNT, 1, 3, generator=generator)
    other = random_rotations(COUNT, generator)[:, None], torch.randn(COUNT, 1, 3, generator=generator)
    alone = heard(rotation, place, 0.5, matches, held_at(truth, 0))
    beside = heard(torch.cat([rotation, other[0]]), torch.cat([place, other[1]]), 0.5, apart, held_at(both, 0, COUNT))
    assert torch.allclose(alone.rotation, beside.rotation[:COUNT], atol=1e-4)
    assert torch.allclose(alone.numbers, beside.numbers[:COUNT], atol=1e-4)


def test_evidence_is_that_of_the_shown_matches_each_pair_once() -> None:
    truth, matches = assembly(chance=0.8)
    total, each = shown_evidence(matches, truth.rotation, truth.translation)
    odds = -torch.log(1 - matches.weight)
    assert float(total) == pytest.approx(float(odds.sum()) / 2, rel=1e-4)
    assert float(each.sum()) == pytest.approx(float(odds.sum()), rel=1e-4)
    moved = truth.translation.clone()
    moved[0] += 1
    less, own = shown_evidence(matches, truth.rotation, moved)
    assert float(own[0]) == 0
    assert float(less) == pytest.approx(float(total - each[0]), rel=1e-4)


def test_what_is_nearly_shown_settles_on_the_matches() -> None:
    truth, matches = assembly()
    generator = torch.Generator().manual_seed(0)
    turns = rotation_of(torch.randn(COUNT, 1, 3, generator=generator), torch.tensor(0.03))
    place = truth.translation[:, None] + 0.01 * torch.randn(COUNT, 1, 3, generator=generator)
    rotation, moved = settled(matches, truth.rotation[:, None] @ turns, place, held_at(truth, 0))
    assert float(angle_between(rotation, truth.rotation[:, None]).max()) < 0.01
    assert float((moved - truth.translation[:, None]).norm(dim=-1).max()) < 0.005


def test_the_mean_of_what_cancels_out_is_still_a_rotation() -> None:
    found = nearest_rotation(torch.zeros(2, 3, 3))
    assert torch.allclose(found @ found.mT, torch.eye(3).expand(2, 3, 3), atol=1e-4)
    assert torch.allclose(torch.linalg.det(found), torch.ones(2), atol=1e-4)
