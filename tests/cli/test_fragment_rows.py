"""Which rows a table gets, by the weights that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from diffassemble.cli.fragment_rows import RowWish, choose_rows, make_row, parse_rows
from diffassemble.core import InputError, Solver
from diffassemble.network import pretrained

METHODS = ("identity", "random", "dgl", "diffusion")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that stands for the bundled weights."""
    monkeypatch.setattr(pretrained, "BUNDLED", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("shelf")
def test_rows_without_weights_are_left_out() -> None:
    chosen, left_out = choose_rows(METHODS, (), {}, None)
    assert [wish.name for wish in chosen] == ["identity", "random"]
    assert left_out == ["dgl", "diffusion"]


def test_bundled_weights_are_the_row_of_diffusion(shelf: Path) -> None:
    (shelf / "fragments").mkdir()
    (shelf / "fragments" / "model.safetensors").write_bytes(b"")
    chosen, left_out = choose_rows(METHODS, (), {}, None)
    assert chosen[-1] == RowWish("diffusion", "fragments")
    assert left_out == ["dgl"]


@pytest.mark.usefixtures("shelf")
def test_weights_that_are_told_make_rows() -> None:
    chosen, left_out = choose_rows(METHODS, (), {"dgl": "runs/dgl", "mine": "runs/mine"}, "runs/best")
    assert chosen[2:] == [RowWish("dgl", "runs/dgl"), RowWish("diffusion", "runs/best"), RowWish("mine", "runs/mine")]
    assert left_out == []


@pytest.mark.usefixtures("shelf")
def test_solvers_that_are_asked_for_are_never_left_out() -> None:
    chosen, left_out = choose_rows(METHODS, ("mend", "dgl"), {"dgl": "runs/dgl"}, None)
    assert chosen == [RowWish("mend", "fragments"), RowWish("dgl", "runs/dgl")]
    assert left_out == []


@pytest.mark.parametrize("text", ["dgl", "=runs/dgl", "dgl=", ""])
def test_rows_are_names_with_folders(text: str) -> None:
    assert parse_rows(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    with pytest.raises(InputError, match="NAME=FOLDER"):
        parse_rows([text])
    with pytest.raises(InputError, match="two rows 'a'"):
        parse_rows(["a=b", "a=c"])


def test_a_row_goes_by_its_own_name(tiny_model: Path) -> None:
    options = {"samples": 1, "steps": 2, "budget": 1.0}
    given = {"gcn": str(tiny_model)}
    row = make_row(RowWish("gcn", str(tiny_model)), given, **options)
    assert isinstance(row, Solver)
    assert row.name == "gcn"
    assert make_row(RowWish("identity", "nothing"), given, **options).name == "identity"
    with pytest.raises(InputError, match="no solver 'magic'"):
        make_row(RowWish("magic", "nothing"), given, **options)
