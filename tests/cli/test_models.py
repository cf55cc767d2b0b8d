"""The list of models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from diffassemble.cli import models
from diffassemble.network import pretrained

ROW = {"data": "faces/val", "grid": "6x6", "missing": 0.3, "erode": 2, "accuracy": 91.25, "accuracy_free": 95.5}


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the bundled weights; the hub's cache is empty."""
    monkeypatch.setattr(pretrained, "bundled_models", lambda: sorted(p.name for p in tmp_path.iterdir()))
    monkeypatch.setattr(pretrained, "find_model", lambda name: tmp_path / name)
    monkeypatch.setattr(models, "_cached", lambda: [])
    return tmp_path


def put(folder: Path, scores: str | None = None) -> None:
    folder.mkdir()
    save_file({"a": torch.zeros(30, 40), "b": torch.zeros(34)}, folder / "model.safetensors")
    if scores is not None:
        (folder / "scores.json").write_text(scores)


def test_models_are_listed_with_size_and_scores(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models.models()
    assert "diffassemble train" in capsys.readouterr().out  # an empty shelf
    put(shelf / "good", json.dumps([ROW]))
    poor = [None, "not json", "3", '[{"data": "x"}]', "[]", "null"]
    for number, scores in enumerate(poor):
        put(shelf / f"plain{number}", scores)
    (shelf / "broken").mkdir()
    (shelf / "broken" / "model.safetensors").write_bytes(b"no tensors here")
    models.models()
    lines = capsys.readouterr().out.splitlines()
    (good,) = (line for line in lines if "good" in line)
    assert "1,234" in good
    assert "faces/val 6x6, 30% missing, 2 px eroded: 91.2, 95.5" in good
    assert sum("plain" in line and "none" in line for line in lines) == len(poor)
    assert any("broken" in line and "unreadable" in line for line in lines)


def test_only_models_of_this_kind_are_taken_from_a_cache(tmp_path: Path) -> None:
    for name, config in (("ours", '{"kind": "Denoiser"}'), ("theirs", '{"model_type": "bert"}')):
        put(tmp_path / name)
        (tmp_path / name / "config.json").write_text(config)
    assert [name for name in ("nowhere", "ours", "theirs") if models._is_ours(tmp_path / name)] == ["ours"]
