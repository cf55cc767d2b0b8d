"""A picture to work on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from diffassemble.files.pictures import write_picture


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture of 60 × 40 random pixels in a folder of its own."""
    path = tmp_path / "pictures" / "photo.png"
    write_picture(torch.rand(3, 40, 60, generator=torch.Generator().manual_seed(0)), path)
    return path
