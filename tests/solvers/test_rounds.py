"""Rounds of searching bring all fragments together, chips last, with one core or several alike."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from manifold3d import Manifold
from manifold3d import Mesh as ManifoldMesh

from diffassemble.core import Mesh, Puzzle
from diffassemble.fragments.assembly_state import AssemblyState
from diffassemble.fragments.breaking import fracture, scatter
from diffassemble.fragments.clusters import Cluster
from diffassemble.fragments.contact import IDENTITY
from diffassemble.fragments.matches import prepare
from diffassemble.fragments.mend import ROUNDS, assemble, crowded, insert_small, search_some
from diffassemble.fragments.model import FractureModels
from diffassemble.fragments.solids import mesh_of


@pytest.fixture(scope="module")
def models() -> FractureModels:
    return FractureModels.from_pretrained("fracture-matching")


@pytest.fixture(scope="module")
def chipped() -> Puzzle:
    """A block broken in two, and a small wedge out of the seam between them, which is the last; the truth is known."""
    block = mesh_of(Manifold.cube((1.0, 0.8, 0.5), True), 1.0, torch.zeros(3))
    halves = fracture(block, 2, torch.Generator().manual_seed(3))
    solids = [Manifold(ManifoldMesh(half.vertices.numpy(), half.faces.numpy().astype(np.uint32))) for half in halves]
    points = halves[0].vertices
    on_seam = points[(points[:, None] - halves[1].vertices).norm(dim=-1).amin(1) < 1e-6]
    middle = on_seam[(on_seam - on_seam.mean(0)).norm(dim=-1).argmin()].tolist()
    chip = Manifold.cylinder(0.06, 0.045, 0.025, 5, True).scale((1, 0.7, 1)).rotate((20, 35, 50)).translate(middle)
    parts = [*(solid - chip for solid in solids), (solids[0] + solids[1]) ^ chip]
    meshes = [Mesh(*_arrays(part)) for part in parts]
    puzzle = scatter(meshes, torch.Generator().manual_seed(4))
    widths = torch.stack([points.var(0).sum() for points in puzzle.fragments.points])
    return puzzle.reordered(widths.argsort(descending=True))


def _arrays(solid: Manifold) -> tuple[torch.Tensor, torch.Tensor]:
    made = solid.to_mesh()
    vertices = torch.from_numpy(np.array(made.vert_properties, np.float32)[:, :3])
    return vertices, torch.from_numpy(np.array(made.tri_verts, np.int64))


def test_halves_and_their_chip_become_one(chipped: Puzzle, models: FractureModels) -> None:
    state = AssemblyState(prepare(chipped.fragments, models, 0), models, 0)
    joins = list(assemble(state, 0.02))
    assert [cluster.members for cluster in state.clusters] == [(0, 1, 2)]
    assert len(joins) == 2
    assert chipped.truth is not None
    poses = state.clusters[0].poses
    place = poses[0][:9].reshape(3, 3).T @ (poses[2][9:] - poses[0][9:])
    wanted = chipped.truth.rotation[0].T @ (chipped.truth.translation[2] - chipped.truth.translation[0])
    assert place == pytest.approx(wanted.numpy(), abs=0.02)  # two spacings of level 0: chips may slide along a seam
    turned = poses[0][:9].reshape(3, 3).T @ poses[2][:9].reshape(3, 3)
    assert turned == pytest.approx((chipped.truth.rotation[0].T @ chipped.truth.rotation[2]).numpy(), abs=0.05)
    assert min(state.confidence) > 0.5


def test_threads_change_nothing(chipped: Puzzle, models: FractureModels, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        state = AssemblyState(prepare(chipped.fragments, models, 0), models, 0)
        assert search_some(state, 0)
        assert not search_some(state, 0)
        found.append([match for matches in state.matches.values() for match in matches])
    assert [match.probability for match in found[0]] == [match.probability for match in found[1]]
    assert all(np.array_equal(one.pose, two.pose) for one, two in zip(*found, strict=True))


def test_single_pieces_are_no_mould(chipped: Puzzle, models: FractureModels) -> None:
    state = AssemblyState(prepare(chipped.fragments, models, 0), models, 0)
    assert list(insert_small(state, 0.5)) == []
    assert not state.matches


def test_no_two_chips_in_one_hole(chipped: Puzzle, models: FractureModels) -> None:
    fragments = prepare(chipped.fragments, models, 0)
    chip, far = Cluster(fragments, {2: IDENTITY}), IDENTITY + np.eye(12)[9]
    whole = Cluster(fragments, {0: IDENTITY, 2: far})
    limit = 2 * fragments[2].area
    assert crowded(chip, whole, far, limit)
    assert not crowded(chip, whole, IDENTITY, limit)
    assert not crowded(chip, whole, far, 0.0)


def test_without_time_nothing_is_searched(chipped: Puzzle, models: FractureModels) -> None:
    state = AssemblyState(prepare(chipped.fragments, models, 0), models, 0, time.monotonic() - 1)
    assert list(assemble(state, 0.02)) == []
    assert len(state.clusters) == 3


def test_rounds_grow_bolder() -> None:
    least = [effort.least for effort in ROUNDS]
    assert least == sorted(least, reverse=True)
