"""The little network that all baselines end in."""

from __future__ import annotations

from torch import nn

POSE = 12
"""translation, then the rotation matrix row by row"""


def perceptron(inputs: int, width: int, outputs: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, outputs)
    )
