"""The little network has the shape it says."""

import torch

from diffassemble.network.baselines import POSE, perceptron


def test_widths() -> None:
    assert perceptron(5, 7, POSE)(torch.zeros(2, 5)).shape == (2, 12)
