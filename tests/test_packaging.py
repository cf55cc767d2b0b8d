"""What the package asks for and ships."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_newer_torch_is_refused_and_make_uses_a_known_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (torch,) = (wanted for wanted in project["dependencies"] if wanted.startswith("torch>"))
    assert "<" not in torch
    (known,) = (line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch"))
    assert "<" in known
    assert "--constraint constraints.txt" in (ROOT / "Makefile").read_text()


def test_licences_are_shipped() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE"]
    notice = (ROOT / "NOTICE").read_text()
    assert "EfficientNet-Lite0" in notice
    assert "Apache License, Version 2.0" in notice
