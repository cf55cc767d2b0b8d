"""The table of kinds: solvers by name, what they are asked for, what chance gives, and nothing loaded in vain."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from diffassemble.assembly.kind import SolverOptions
from diffassemble.core import Board, FragmentPieces, InputError, Mesh, Poses, Puzzle, Solver, Step
from diffassemble.kinds import KINDS, kind_of, kinds, make_solver, solve
from diffassemble.kinds.squares import BORDER_SOLVERS, bundled_edge_model, bundled_uprighter
from diffassemble.network import pretrained
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.network.encoders import efficientnet
from diffassemble.network.upright import Upright, UprightConfig
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import EdgeModel, EdgeModelConfig
from diffassemble.squares.network_solvers import DiffusionSolver, HybridSolver


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the bundled weights."""
    monkeypatch.setattr(pretrained, "BUNDLED", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def models(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A small model for each kind."""
    folder = tmp_path_factory.mktemp("models") / "spatial"
    sizes: dict[str, Any] = {"features": 8, "width": 32, "layers": 1, "heads": 2, "pose_width": 16, "time_width": 8}
    Denoiser(ModelConfig(backbone="vn_dgcnn", space="so3", **sizes)).save_pretrained(folder)
    return {"squares": str(tiny_model), "fragments": str(folder), "outlines": ""}


def picture(rows: int = 3, cols: int = 3) -> Puzzle:
    pixels = torch.rand(3, 8 * rows, 8 * cols, generator=torch.Generator().manual_seed(0))
    return cut_picture(pixels, Board(rows, cols), torch.Generator().manual_seed(0))


def clouds(count: int = 4) -> Puzzle:
    points = torch.rand(count, 5, 3, generator=torch.Generator().manual_seed(0))
    cloud = Mesh(points[0], torch.zeros(0, 3, dtype=torch.long))
    pieces = FragmentPieces(points, (cloud,) * count, torch.zeros(count, 3))
    return Puzzle(pieces, None, tuple(str(number) for number in range(count)))


def only_step(solver: Solver, puzzle: Puzzle, seed: int = 0) -> Step:
    (step,) = solver.steps(puzzle, torch.Generator().manual_seed(seed))
    assert step.done == 1.0
    assert not step.placements.confidence.any()
    return step


@pytest.mark.parametrize("kind", kinds())
def test_every_solver_is_one_by_its_name(kind: str, models: dict[str, str]) -> None:
    assert kinds() == ("fragments", "outlines", "squares")
    for puzzle, name in ((picture(), "squares"), (clouds(), "fragments")):
        assert (puzzle.kind, kind_of(puzzle).name) == (name, name)
    table = KINDS[kind]()
    assert table.default_solver in table.solvers
    for name in table.solvers:
        solver = make_solver(kind, name, SolverOptions(models[kind]))
        assert isinstance(solver, Solver)
        assert solver.name == name


def test_options_reach_the_solver(tiny_model: Path) -> None:
    options = SolverOptions(str(tiny_model), samples=3, steps=7, budget=2.5)
    diffusion, hybrid = (make_solver("squares", name, options) for name in ("diffusion", None))
    assert isinstance(diffusion, DiffusionSolver)
    assert (diffusion.samples, diffusion.denoising_steps, diffusion.model.training) == (3, 7, False)
    assert isinstance(hybrid, HybridSolver)
    assert hybrid.budget == 2.5
    assert not hybrid.content.training
    for name in BORDER_SOLVERS:
        assert vars(make_solver("squares", name, options))["budget"] == 2.5
    mend = vars(make_solver("fragments", "mend", SolverOptions(several=True, budget=3.0)))
    assert (mend["several"], mend["budget"]) == (True, 3.0)


WISHES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"solver": "magic"}, "no solver 'magic' for pieces; use one of: diffusion"),
    ({"samples": 0}, "samples and steps must be 1 or more"),
    ({"steps": -1}, "samples and steps must be 1 or more"),
    ({"budget": 0.0}, "budget 0 leaves no time"),
    ({"budget": float("nan")}, "budget nan leaves no time"),
    ({"several": True}, "knows one picture only"),
    ({"solver": "diffusion", "model": "nothing"}, "no model 'nothing'"),
    ({"solver": "diffusion", "model": "fragments"}, "is for other pieces"),
    ({"solver": "hybrid", "model": "fragments"}, "is for other pieces"),
)


def test_bad_wishes_and_models_of_another_kind_are_refused(tiny_model: Path) -> None:
    for wishes, words in WISHES:
        with pytest.raises(InputError, match=words):
            solve(picture(), **wishes)
    for wishes, words in (
        ({"solver": "gallagher"}, "no solver 'gallagher' for fragments"),
        ({"solver": "diffusion", "model": str(tiny_model)}, "is for other pieces"),
        ({"solver": "hybrid", "several": True}, "several are separated by mend"),
    ):
        with pytest.raises(InputError, match=words):
            solve(clouds(), **wishes)
    with pytest.raises(InputError, match="no kind 'sherds'; use one of: fragments, outlines, squares"):
        make_solver("sherds")


def test_bundled_models_go_by_name(shelf: Path, tiny_model: Path) -> None:
    assert bundled_edge_model() is None
    assert bundled_uprighter() is None
    assert vars(make_solver("squares", "gallagher", SolverOptions("nothing")))["upright"] is None
    for name in ("jigsaw", "jigsaw-paper-form"):
        shutil.copytree(tiny_model, shelf / name)
    assert vars(make_solver("squares", "diffusion"))["upright"] is None
    EdgeModel(EdgeModelConfig(width=8, blocks=1)).save_pretrained(shelf / "edge-model")
    Upright(UprightConfig()).save_pretrained(shelf / "upright")
    hybrid = make_solver("squares")
    assert isinstance(hybrid, HybridSolver)
    assert None not in (hybrid.edge_model, hybrid.upright)
    puzzle = picture(2, 3)
    assert hybrid.upright(puzzle, puzzle.truth, (0, 2))[0] in (0, 2)
    assert vars(make_solver("squares", "gallagher"))["upright"] is not None


def test_without_the_pretrained_network_borders_alone_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(efficientnet, "weights_file", lambda: None)
    efficientnet.load_efficientnet.cache_clear()
    hybrid = make_solver("squares")
    assert (hybrid.content, hybrid.upright) == (None, None)
    printed = " ".join(capfd.readouterr().err.split())
    assert "only borders are compared" in printed
    assert "the orientation of the whole stays unknown" in printed
    assert "pip install" in printed
    *_, last = make_solver("squares", "gallagher").steps(picture(2, 3), torch.Generator())
    assert last.placements.upright is None
    efficientnet.load_efficientnet.cache_clear()


def test_solvers_by_chance() -> None:
    """Identity leaves all as it is given; random fragments are as wide as true ones, random pieces fill cells once."""
    poses = only_step(make_solver("fragments", "identity"), clouds()).poses
    assert torch.equal(poses.rotation, Poses.identity(4, 3).rotation)
    assert not poses.translation.any()
    puzzle = picture(2, 3)
    cells, turns = puzzle.board.snap(only_step(make_solver("squares", "identity"), puzzle).poses)
    assert cells.tolist() == [0, 1, 2, 3, 4, 5]
    assert not turns.any()
    poses = only_step(make_solver("fragments", "random"), clouds(4000)).poses
    assert torch.allclose(poses.rotation @ poses.rotation.transpose(1, 2), torch.eye(3).expand(4000, 3, 3), atol=1e-5)
    assert float(poses.rotation.mean(0).abs().max()) < 0.05
    assert float(poses.translation.std()) == pytest.approx(0.2, rel=0.05)
    assert float(poses.translation.mean(0).abs().max()) < 0.02
    puzzle, solver = picture(), make_solver("squares", "random")
    one, two, three = (only_step(solver, puzzle, seed).poses for seed in (1, 1, 2))
    cells, turns = puzzle.board.snap(one)
    assert sorted(cells.tolist()) == list(range(9))
    assert len(set(turns.tolist())) > 1
    assert torch.equal(one.translation, two.translation)
    assert not torch.equal(one.translation, three.translation)


@pytest.mark.parametrize("kind", kinds())
def test_a_kind_is_solved_without_loading_another(kind: str) -> None:
    others = tuple(f"diffassemble.{other}" for other in kinds() if other != kind)
    code = (
        f"import sys; from diffassemble.kinds import make_solver; make_solver({kind!r})\n"
        f"print([name for name in sys.modules if name.startswith({others})])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
