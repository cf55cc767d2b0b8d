"""What holds by guesses alone is taken off; what holds to that by likely joins stays with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from manifold3d import Manifold

from diffassemble.fragments.assembly_state import AssemblyState, prune_unsupported
from diffassemble.fragments.breaking import fracture, mesh_of, scatter
from diffassemble.fragments.contact import compose, inverse, pose_rows
from diffassemble.fragments.explain import ALONE, BADLY, SLIDES, explained
from diffassemble.fragments.gap_insertion import INSERTED
from diffassemble.fragments.matches import PairSearch, prepare
from diffassemble.fragments.mend import MendSolver, choose_anchor, piece_confidence
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.shapes import make_solid
from diffassemble.fragments.verification import Match


def joined(models: FractureModels, chances: dict[tuple[int, int], float], slides: bool = False) -> AssemblyState:
    """Pieces of a bar, the largest first, joined where they belong with these probabilities, surest first."""
    generator = torch.Generator().manual_seed(2)
    puzzle = scatter(fracture(mesh_of(Manifold.cube((1.0, 0.7, 0.4), True)), 3, generator), generator)
    puzzle = puzzle.reordered(puzzle.fragments.areas.argsort(descending=True))
    assert puzzle.truth is not None
    truth = pose_rows(puzzle.truth)
    state = AssemblyState(PairSearch(prepare(puzzle.fragments, models, 0), models))
    for (one, two), chance in chances.items():
        pose = compose(inverse(truth[two]), truth[one])
        match = Match(pose, chance, INSERTED, 3, np.zeros(3, np.float32), slides)
        state.add_matches(*(state.pair_search.singles[piece] for piece in (one, two)), [match])
    while (best := state.best_match()) is not None:
        state.join(*best)
    return state


def members(state: AssemblyState) -> list[tuple[int, ...]]:
    return sorted(cluster.members for cluster in state.clusters)


def test_likely_joins_stay(models: FractureModels) -> None:
    state = joined(models, {(1, 0): 0.8, (2, 1): 0.7})
    assert prune_unsupported(state, 0.5) == set()
    assert members(state) == [(0, 1, 2)]


@pytest.mark.parametrize("slides", [False, True])
def test_guesses_are_taken_off_with_a_reason(slides: bool, models: FractureModels) -> None:
    state = joined(models, {(1, 0): 0.6 if slides else 0.3}, slides)
    assert prune_unsupported(state, 0.5) == {1}
    assert members(state) == [(0,), (1,), (2,)]
    notes = explained(state, [0.0, 0.0, 0.0], [0, -1, -1], "abc", {1})
    assert notes[0] == ALONE
    assert notes[1] == (SLIDES if slides else BADLY)


def test_what_holds_together_is_chosen_instead_of_a_largest_that_nothing_fits(models: FractureModels) -> None:
    state = joined(models, {(2, 1): 0.95, (1, 0): 0.3})
    assert state.anchor == 0
    assert prune_unsupported(state, 0.5) == {1, 2}
    assert members(state) == [(0,), (1, 2)]
    choose_anchor(state)
    assert state.anchor == 1
    sure = piece_confidence(state)
    assert sure[1] == sure[2] > 0.9


def test_a_fragment_of_another_object_is_left_out(models: FractureModels) -> None:
    generator = torch.Generator().manual_seed(1)
    statue = fracture(make_solid("statue", generator), 3, generator)
    bowl = fracture(make_solid("bowl", generator), 4, generator)
    puzzle = scatter([*statue, bowl[1]], torch.Generator().manual_seed(5))
    foreign = int(torch.randperm(4, generator=torch.Generator().manual_seed(5)).argmax())
    *_, last = MendSolver(models).steps(puzzle.without_truth(), torch.Generator())
    assert last.placements.objects is not None
    assert last.placements.notes is not None
    assert last.placements.guess is not None
    assert last.placements.objects.tolist() == [-1 if piece == foreign else 0 for piece in range(4)]
    assert last.placements.confidence[foreign] == 0
    assert last.placements.notes[foreign]
    assert torch.isfinite(last.placements.guess.translation).all()
