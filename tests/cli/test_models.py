"""The list of models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from diffassemble.cli import models
from diffassemble.network import pretrained

ROW = {
    "data": "faces/val",
    "grid": "6x6",
    "missing": 0.3,
    "erode": 2,
    "accuracy": 91.25,
    "accuracy_free": 95.5,
}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the bundled weights; the hub's cache is empty."""
    monkeypatch.setattr(pretrained, "bundled_models", lambda: sorted(p.name for p in tmp_path.iterdir()))
    monkeypatch.setattr(pretrained, "find_model", lambda name: tmp_path / name)
    monkeypatch.setattr(models, "_cached", lambda: [])
    return tmp_path


def put(folder: Path, scores: str | None) -> None:
    folder.mkdir()
    save_file({"a": torch.zeros(30, 40), "b": torch.zeros(34)}, folder / "model.safetensors")
    if scores is not None:
        (folder / "scores.json").write_text(scores)


def test_models_are_listed_with_size_and_scores(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(shelf / "good", json.dumps([ROW]))
    models.models()
    text = capsys.readouterr().out
    assert "good" in text
    assert "1,234" in text
    assert "faces/val 6x6, 30% missing, 2 px eroded: 91.2, 95.5" in text


@pytest.mark.parametrize("scores", [None, "not json", "3", '[{"data": "x"}]', "[]", "null"])
def test_poor_scores_do_not_hide_a_model(shelf: Path, capsys: pytest.CaptureFixture[str], scores: str | None) -> None:
    put(shelf / "plain", scores)
    models.models()
    text = capsys.readouterr().out
    assert "plain" in text
    assert "none" in text


def test_broken_weights_are_said_to_be_broken(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shelf / "broken").mkdir()
    (shelf / "broken" / "model.safetensors").write_bytes(b"no tensors here")
    models.models()
    assert "unreadable" in capsys.readouterr().out


@pytest.mark.usefixtures("shelf")
def test_an_empty_shelf_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    models.models()
    assert "diffassemble train" in capsys.readouterr().out


def test_only_models_of_this_kind_are_taken_from_a_cache(tmp_path: Path) -> None:
    put(tmp_path / "ours", None)
    put(tmp_path / "theirs", None)
    (tmp_path / "ours" / "config.json").write_text('{"kind": "Denoiser"}')
    (tmp_path / "theirs" / "config.json").write_text('{"model_type": "bert"}')
    found = [name for name in ("nowhere", "ours", "theirs") if models._is_ours(tmp_path / name)]
    assert found == ["ours"]
