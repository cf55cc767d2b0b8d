"""Padded features of two objects."""

import pytest
import torch
from torch import Tensor

FEATURES, WIDTH = 27, 16


@pytest.fixture
def padded() -> tuple[Tensor, Tensor]:
    """Features (2, 5, 27) of objects with three and five pieces, and which of them are real."""
    torch.manual_seed(0)
    features = torch.randn(2, 5, FEATURES, generator=torch.Generator().manual_seed(0))
    present = torch.arange(5) < torch.tensor([[3], [5]])
    return features * present[..., None], present
