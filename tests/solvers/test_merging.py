"""The workbench joins the surest fit first and keeps account of how sure each place is."""

from __future__ import annotations

import pytest
import torch
from manifold3d import Manifold

from diffassemble.compatibility.mesh import prepare
from diffassemble.cutting.fragments import scatter
from diffassemble.cutting.mesh import fracture
from diffassemble.cutting.solids import mesh_of
from diffassemble.model.fracture import FractureMatcher
from diffassemble.solvers.merging import Bench, standing


def test_three_fragments_become_one_cluster() -> None:
    generator = torch.Generator().manual_seed(2)
    block = mesh_of(Manifold.cube((1.0, 0.7, 0.4), True), 1.0, torch.zeros(3))
    puzzle = scatter(fracture(block, 3, generator), generator)
    judges = FractureMatcher.from_pretrained("fracture-matching")
    bench = Bench(prepare(puzzle.fragments, judges, 0), judges, 0)
    joins = list(bench.assemble())
    assert len(bench.clusters) == 1
    assert bench.clusters[0].members == (0, 1, 2)
    assert len(joins) == 2
    assert bench.confidence[bench.anchor] == 1
    assert all(0 <= sure <= 1 for sure in bench.confidence)
    assert standing(bench.clusters[0], 0) == pytest.approx(standing(bench.clusters[0], 0))
