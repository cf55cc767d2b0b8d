"""The table of pairs counts touching pairs that are matched rightly, and how many of the sure ones are right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from manifold3d import Manifold

from diffassemble.core import Mesh
from diffassemble.evaluation.fragments import ObjectCell
from diffassemble.fragments.breaking import fracture, mesh_of
from diffassemble.fragments.model import FractureModels
from diffassemble_research.pairs import PairRow, measure_pairs, pair_figure, pair_groups, precision, recall


@dataclass(frozen=True)
class Block:
    category: str = "Block"
    name: str = "Block/1"

    def meshes(self) -> list[Mesh]:
        return fracture(mesh_of(Manifold.cube((1.0, 0.8, 0.5), True)), 3, torch.Generator().manual_seed(3))


def test_the_pairs_of_a_block() -> None:
    models = FractureModels.from_pretrained("fracture-matching")
    rows = list(measure_pairs(ObjectCell("made", [Block()]).case(0, 0), 0.0, 0, models))
    assert len(rows) == 3
    assert {row.fracture for row in rows} == {"Block/1"}
    assert sum(row.touching for row in rows) >= 2
    assert (recall(rows) or 0) > 60
    assert precision(rows) == 100
    assert pair_figure(rows).startswith(b"\x89PNG")


def test_shares_are_counted_by_hand() -> None:
    row = PairRow("a", "Cup", 0.0, 0, 0.02, 50, 0.8, 2, 1)
    rows = [row, replace(row, right=0.4), replace(row, contact=0, right=0.0, sure=0, sure_right=0)]
    assert recall(rows) == 50
    assert precision(rows) == 50
    groups = dict(pair_groups(rows))
    assert len(groups["smaller piece 1 to 4 %"]) == len(groups["all"]) == len(groups["Cup"]) == 3
    assert len(groups["touching points 20 to 99"]) == 2
    assert recall(groups["smaller piece under 1 %"]) is None
    assert precision([]) is None
    assert pytest.approx(100) == recall([row])
