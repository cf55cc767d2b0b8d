"""Matings of fragments: who touches whom, and how they then lie to each other."""

from __future__ import annotations

import pytest
import torch
from manifold3d import Manifold

from diffassemble.core import Puzzle
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.matches import find_matches, prepare
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.solids import mesh_of


@pytest.fixture(scope="module")
def broken() -> Puzzle:
    block = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
    generator = torch.Generator().manual_seed(5)
    return scatter(fracture(block, 2, generator), generator)


@pytest.fixture(scope="module")
def models() -> FractureModels:
    return FractureModels.from_pretrained("fracture-matching")


def test_if_the_second_stands_at_its_place_so_does_the_first(broken: Puzzle, models: FractureModels) -> None:
    matches = find_matches(broken, models, torch.Generator().manual_seed(0))
    assert broken.truth is not None
    for direction in (0, 1):
        rows = (matches.first == direction).nonzero()[:, 0]
        best = rows[matches.weight[rows].argmax()][None]
        implied = broken.truth[matches.second[best]] @ matches.relative[best]
        true = broken.truth[matches.first[best]]
        cosine = ((implied.rotation * true.rotation).sum() - 1) / 2
        assert torch.rad2deg(torch.arccos(cosine.clamp(-1, 1))) < 1.5
        assert (implied.translation - true.translation).norm() < 0.01
    assert matches.evidence.min() >= 0
    assert matches.evidence.max() <= 1


def test_no_time_gives_no_matches(broken: Puzzle, models: FractureModels) -> None:
    assert len(find_matches(broken, models, torch.Generator().manual_seed(0), budget=-1.0)) == 0


def test_what_is_drawn_depends_on_the_seed_only(broken: Puzzle, models: FractureModels) -> None:
    one, two = prepare(broken.fragments, models, 4), prepare(broken.fragments, models, 4)
    assert (one[0].pyramid.levels[0].points == two[0].pyramid.levels[0].points).all()
