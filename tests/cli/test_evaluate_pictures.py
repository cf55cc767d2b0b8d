"""Pictures keep their defaults, and refuse what is for broken objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import diffassemble.solvers
import pytest

from diffassemble.cli import evaluate
from diffassemble.cli.evaluate_options import EvaluateOptions
from diffassemble.cli.evaluate_pictures import evaluate_pictures
from diffassemble.core import InputError
from diffassemble.fragments.chance import IdentitySolver
from diffassemble.kinds import PICTURE_SOLVERS


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The names and models of the solvers that are asked for from now on; all know nothing."""
    found: list[tuple[str, str]] = []

    def make_solver(name: str, **options: Any) -> IdentitySolver:
        found.append((name, options["model"]))
        return IdentitySolver(name)

    monkeypatch.setattr(diffassemble.solvers, "make_solver", make_solver)
    return found


def test_the_bundled_jigsaw_model_is_the_usual_one(
    picture_folders: tuple[Path, Path], asked: list[tuple[str, str]]
) -> None:
    evaluate_pictures(EvaluateOptions(data=(str(picture_folders[0]),), grid=("2",), size=8, limit=1))
    assert asked == [("diffusion", "jigsaw")]


def test_a_table_has_all_solvers_of_pictures(
    picture_folders: tuple[Path, Path],
    asked: list[tuple[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = {"json": tmp_path / "rows.json", "figure": tmp_path / "drawn.png"}
    data = (str(picture_folders[0]),)
    evaluate_pictures(EvaluateOptions(data=data, table="time", grid=("2",), size=8, limit=1, model="mine", **files))
    assert asked == [(name, "mine") for name in PICTURE_SOLVERS]
    assert "wrote 5 rows" in capsys.readouterr().out
    assert files["figure"].is_file()


@pytest.mark.parametrize(
    "words", [["--anchor", "largest"], ["--noise", "0.1"], ["--rows", "a=b"], ["--seeds", "2"], ["--pieces", "2", "8"]]
)
def test_what_is_for_broken_objects_is_refused(picture_folders: tuple[Path, Path], words: list[str]) -> None:
    with pytest.raises(InputError, match="are for broken objects, but there are none here"):
        evaluate.run(["--data", str(picture_folders[0]), *words])


def test_scores_are_noted_and_not_asked_for_again(
    picture_folders: tuple[Path, Path], asked: list[tuple[str, str]], tmp_path: Path
) -> None:
    scores = tmp_path / "scores.jsonl"
    options = EvaluateOptions(data=(str(picture_folders[0]),), grid=("2",), size=8, limit=3, scores=scores)
    evaluate_pictures(options)
    lines = scores.read_text()
    assert len(lines.splitlines()) == 3
    evaluate_pictures(options)
    assert scores.read_text() == lines


@pytest.mark.parametrize("changes", [{"scores": Path("scores.jsonl")}, {"ray": "local"}])
def test_answers_of_other_runs_and_processes_are_not_shown(
    picture_folders: tuple[Path, Path], asked: list[tuple[str, str]], changes: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="leave --scores and --ray out"):
        evaluate_pictures(EvaluateOptions(data=(str(picture_folders[0]),), report=Path("page.html"), **changes))
