"""Small networks and puzzles of different sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from skimage import data
from torch import nn

from diffassemble.core import Board, Puzzle
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Denoiser
from diffassemble.squares.cut import cut_picture

SMALL = {"features": 6, "width": 24, "layers": 2, "heads": 4, "hidden": 16, "pose_width": 12, "time_width": 8}


@pytest.fixture(scope="session")
def puzzles() -> list[Puzzle]:
    """A 2 × 3, a 3 × 3 with missing pieces and a lone piece, all of 16 pixels."""
    picture = torch.from_numpy(data.coffee()).permute(2, 0, 1).float() / 255
    cuts = ((Board(2, 3), 0.0), (Board(3, 3), 0.3), (Board(1, 2), 0.5))
    return [
        cut_picture(picture, board, torch.Generator().manual_seed(seed), size=16, missing=missing)
        for seed, (board, missing) in enumerate(cuts)
    ]


@pytest.fixture
def make_model() -> Callable[..., Denoiser]:
    """A small denoiser with the given settings, whose layers that start at zero are made to matter."""

    def make(**settings: Any) -> Denoiser:
        torch.manual_seed(0)
        model = Denoiser(ModelConfig(**{**SMALL, **settings})).eval()
        for parameter in model.parameters():
            if not parameter.any():
                nn.init.normal_(parameter, std=0.1)
        return model

    return make
