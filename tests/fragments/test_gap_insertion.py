"""Chips are inserted into the holes they left; what is found on doubtful breaks is never sure."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from manifold3d import Manifold
from manifold3d import Mesh as ManifoldMesh

from diffassemble.core import Mesh, Puzzle
from diffassemble.core.thresholds import SURE
from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.breaking import mesh_of, scatter
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY, compose, inverse, pose_rows
from diffassemble.fragments.gap_insertion import GAP_INSERTION, crowded, find_gaps, insert_into_gaps
from diffassemble.fragments.matches import PairSearch, match_clusters, prepare, reverify
from diffassemble.fragments.mend import MEND, grow, insert_small, reviewed
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.pair_search import QUICK
from diffassemble.fragments.verification import INSERTED


@pytest.fixture(scope="module")
def chipped(halves: list[Mesh]) -> Puzzle:
    """The block broken in two, and a small tilted wedge that broke out of the seam between them: the last."""
    solids = [Manifold(ManifoldMesh(half.vertices.numpy(), half.faces.numpy().astype(np.uint32))) for half in halves]
    points = halves[0].vertices
    on_seam = points[(points[:, None] - halves[1].vertices).norm(dim=-1).amin(1) < 1e-6]
    middle = on_seam[(on_seam - on_seam.mean(0)).norm(dim=-1).argmin()].tolist()
    chip = Manifold.cylinder(0.06, 0.045, 0.025, 5, True).scale((1, 0.7, 1)).rotate((20, 35, 50)).translate(middle)
    parts = [*(solid - chip for solid in solids), (solids[0] + solids[1]) ^ chip]
    puzzle = scatter([mesh_of(part) for part in parts], torch.Generator().manual_seed(4))
    return puzzle.reordered(puzzle.fragments.areas.argsort(descending=True))


def test_a_chip_is_inserted_into_its_hole(chipped: Puzzle, models: FractureModels) -> None:
    assert chipped.truth is not None
    truth = pose_rows(chipped.truth)
    state = AssemblyState(PairSearch(prepare(chipped.fragments, models, 0), models))
    chip, whole = state.fragments[2], Cluster(state.fragments, {0: truth[0], 1: truth[1]})
    assert not insert_small(state), "single pieces have no gaps"
    # Beside the hole the seam is closed, and the outside of the block is no pit.
    gaps = find_gaps(whole)
    inviting = gaps.inviting(0.03)
    near = np.linalg.norm(gaps.points - truth[2, 9:].astype(np.float32), axis=1) < 0.12
    assert not (inviting & ~gaps.bare).any()
    assert (inviting & near).sum() > 50
    assert near[inviting].mean() > 5 * near.mean()
    found = insert_into_gaps(chip, whole, gaps, 1)
    points, wrong = chip.pyramid.levels[0].points, found[0].pose - truth[2]
    assert np.linalg.norm(points @ wrong[:9].reshape(3, 3).T + wrong[9:], axis=1).max() < chip.spacing
    assert found[0].level == INSERTED
    assert 0.5 < found[0].probability <= GAP_INSERTION.ceiling
    assert found[0].probability == max(match.probability for match in found)
    # So it is when all three are put together; a second chip is not inserted there.
    assert len(list(grow(state, MEND.least))) == 2
    (all_three,) = state.clusters
    place = compose(inverse(all_three.poses[0]), all_three.poses[2])
    assert place == pytest.approx(compose(inverse(truth[0]), truth[2]), abs=0.05)
    assert min(state.confidence) > 0.5
    single, taken = Cluster(state.fragments, {2: IDENTITY}), all_three.poses[2]
    assert crowded(single, all_three, taken, state.small, 0.3)
    assert not crowded(single, all_three, taken + np.eye(12)[9], state.small, 0.3)
    assert not crowded(single, whole, truth[2], state.small, 0.3)


def test_matches_of_doubtful_breaks_are_never_sure(
    clusters: tuple[Cluster, Cluster], broken: Puzzle, models: FractureModels
) -> None:
    first, second = clusters
    for one in clusters:
        usual, doubtful = (view.fragments[one.members[0]].broken(0) for view in (one, one.doubtful))
        assert doubtful.sum() > usual.sum()
        assert not (usual & ~doubtful).any()
    found = match_clusters(first.doubtful, second.doubtful, 0, QUICK, models, 0)
    state = AssemblyState(PairSearch(first.fragments, models))
    matches = reviewed(state, first, second, 1, found, (0.7, 0.89))
    assert 0.5 < matches[0].probability < SURE
    assert max(match.probability for match in matches if match.level == 0) <= 0.7
    again = reverify(first, second, matches, models)
    assert again
    assert all(match.probability <= match.ceiling < SURE for match in again), "whatever joins later"
