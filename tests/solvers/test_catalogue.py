"""Solvers by name, with their weights."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diffassemble.core import InputError, Puzzle, Solver
from diffassemble.kinds import BORDER_SOLVERS, SOLVERS, bundled_edge_model, bundled_uprighter, make_solver
from diffassemble.network import pretrained
from diffassemble.squares.baselines.gallagher import GallagherSolver
from diffassemble.squares.diffusion import DiffusionSolver
from diffassemble.squares.edge_model import EdgeModel, EdgeModelConfig
from diffassemble.squares.hybrid import HybridSolver


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the bundled weights."""
    monkeypatch.setattr(pretrained, "BUNDLED", tmp_path)
    return tmp_path


def test_every_solver_is_a_solver(tiny_model: Path) -> None:
    for name in SOLVERS:
        solver = make_solver(name, model=str(tiny_model))
        assert isinstance(solver, Solver)
        assert solver.name == name


def test_options_reach_the_solver(tiny_model: Path) -> None:
    solver = make_solver("diffusion", model=str(tiny_model), samples=3, steps=7)
    assert isinstance(solver, DiffusionSolver)
    assert (solver.samples, solver.denoising_steps) == (3, 7)
    assert not solver.model.training


def test_a_budget_reaches_solvers_that_search(tiny_model: Path) -> None:
    hybrid = make_solver("hybrid", model=str(tiny_model), samples=3, steps=7, budget=2.5)
    assert isinstance(hybrid, HybridSolver)
    assert (hybrid.samples, hybrid.denoising_steps, hybrid.budget) == (3, 7, 2.5)
    for name in BORDER_SOLVERS & SOLVERS.keys():
        assert vars(make_solver(name, budget=2.5))["budget"] == 2.5


def test_mend_hears_of_several_objects() -> None:
    assert vars(make_solver("mend", several=True, budget=3.0))["several"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "magic"}, "no solver 'magic'; use one of: diffusion"),
        ({"samples": 0}, "samples and steps must be 1 or more"),
        ({"steps": -1}, "samples and steps must be 1 or more"),
        ({"budget": 0.0}, "budget 0 leaves no time"),
        ({"several": True}, "knows one object only"),
        ({"budget": float("nan")}, "budget nan leaves no time"),
        ({"model": "nothing"}, "no model 'nothing'"),
    ],
)
def test_bad_wishes(tiny_model: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_solver(**{"name": "diffusion", "model": str(tiny_model), **options})


def test_bundled_models_go_by_name(shelf: Path, tiny_model: Path) -> None:
    shutil.copytree(tiny_model, shelf / "jigsaw")
    assert make_solver("diffusion").name == "diffusion"


def test_the_bundled_edge_model_is_asked(shelf: Path, tiny_model: Path) -> None:
    assert bundled_edge_model() is None
    EdgeModel(EdgeModelConfig(width=8, blocks=1)).save_pretrained(shelf / "edge-model")
    solver = make_solver("hybrid", model=str(tiny_model))
    assert isinstance(solver, HybridSolver)
    assert solver.edge_model is not None


def test_without_a_classifier_wholes_stay_as_they_are(shelf: Path, tiny_model: Path) -> None:
    assert bundled_uprighter() is None
    solver = make_solver("diffusion", model=str(tiny_model))
    assert isinstance(solver, DiffusionSolver)
    assert solver.upright is None


def test_a_bundled_classifier_is_used(shelf: Path, tiny_model: Path, cut: Callable[..., Puzzle]) -> None:
    from diffassemble.squares.upright import Upright, UprightConfig

    Upright(UprightConfig()).save_pretrained(shelf / "upright")
    solver = make_solver("diffusion", model=str(tiny_model))
    assert isinstance(solver, DiffusionSolver)
    assert solver.upright is not None
    puzzle = cut(2, 3)
    assert puzzle.truth is not None
    assert solver.upright(puzzle, puzzle.truth, (0, 2)) in (0, 2)
    borders = make_solver("gallagher")
    assert isinstance(borders, GallagherSolver)
    assert borders.upright is not None


def test_border_solvers_need_no_model(shelf: Path) -> None:
    solver = make_solver("gallagher", model="nothing")
    assert isinstance(solver, GallagherSolver)
    assert solver.upright is None
