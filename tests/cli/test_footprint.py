"""One measurement in a process of its own."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from diffassemble.cli.footprint import GRAPHS, LEARN, Errand, measure, send
from diffassemble.core import InputError


@pytest.fixture
def errand(picture_folders: tuple[Path, Path], tiny_model: Path) -> Errand:
    picture = next(iter(sorted(picture_folders[0].iterdir())))
    return Errand("diffusion", "complete", str(picture), 4, 12, str(tiny_model), 1, 2, 0)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("work", ["diffusion", "hybrid", LEARN])
def test_every_work_runs_on_every_graph(errand: Errand, work: str, graph: str) -> None:
    found = measure(replace(errand, work=work, graph=graph))
    assert (found.work, found.graph, found.pieces) == (work, graph, 16)
    assert found.seconds > 0
    assert found.peak_mb >= found.added_mb >= 0
    known = work != LEARN and "virtual_nodes" not in GRAPHS[graph]
    assert (found.accuracy_free is not None) == known


@pytest.mark.slow
def test_a_fresh_process_sends_back_its_row(errand: Errand) -> None:
    found = send(errand)
    assert found.pieces == 16
    assert 50 < found.peak_mb < 3000


def test_what_went_wrong_there_is_told_here(errand: Errand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(InputError, match="diffusion with 16 pieces on complete: exit code 1"):
        send(errand)
