"""Pieces know how many and how large they are."""

from __future__ import annotations

import torch

from diffassemble.core import ImagePieces


def test_count_and_size() -> None:
    pieces = ImagePieces(torch.zeros(7, 3, 12, 12))
    assert len(pieces) == 7
    assert pieces.size == 12
