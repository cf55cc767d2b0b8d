"""The learnt parts of fracture matching: where is the break, what fits where, and is a fit a true one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32
from torch import Tensor, nn

from diffassemble.core.settings import Width
from diffassemble.fragments.descriptors import FACE_FEATURES, LEVELS, surface_features
from diffassemble.network.pretrained import Pretrained

MATCH_FEATURES = 34
"""Numbers that describe how two sides meet (`matches.match_features`)."""
_ROWS = 20_000


@dataclass(frozen=True)
class FractureConfig:
    """Sizes of the three networks."""

    width: Width = 80
    """hidden numbers of the networks of the surface"""
    descriptor: Width = 24
    """numbers of a descriptor"""
    verifier_width: Width = 32


class Perceptron(nn.Sequential):
    """Two hidden layers on inputs brought to zero mean and unit deviation."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__(
            nn.BatchNorm1d(inputs, affine=False, momentum=0.02),
            nn.Linear(inputs, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, outputs),
        )


class FractureModels(Pretrained):
    """Three small networks: segmentation and descriptors of fracture surfaces, and verification of matches.

    The learning side takes and gives tensors of log odds, the matching side arrays of probabilities.
    """

    config_class = FractureConfig

    def __init__(self, config: FractureConfig) -> None:
        super().__init__()
        self.config = config
        self.finders = nn.ModuleList(Perceptron(surface_features(level), config.width, 2) for level in range(LEVELS))
        self.describers = nn.ModuleList(
            Perceptron(FACE_FEATURES, config.width, config.descriptor) for _ in range(LEVELS)
        )
        self.sharpness = nn.Parameter(torch.tensor(2.5))
        self.verifier = Perceptron(MATCH_FEATURES, config.verifier_width, 1)

    def segmentation_logits(self, level: int, features: Float[Tensor, "p f"]) -> Float[Tensor, "p 2"]:
        """Log odds of the break: as common as breaks are, and balanced in each piece."""
        return self.finders[level](features)

    def describe(self, level: int, features: Float[Tensor, "p f"]) -> Float[Tensor, "p d"]:
        """Unit vectors that are alike for points and what their candidates see."""
        return F.normalize(self.describers[level](features), dim=-1)

    def verification_logits(self, numbers: Float[Tensor, "m v"]) -> Float[Tensor, "m"]:
        """Log odds that a fit is a true one."""
        return self.verifier(numbers)[:, 0]

    @torch.inference_mode()
    def segmentation(self, level: int, features: Float32[np.ndarray, "p f"]) -> Float32[np.ndarray, "p 2"]:
        rows = torch.from_numpy(features).split(_ROWS)
        return torch.cat([self.segmentation_logits(level, part).sigmoid() for part in rows]).numpy()

    @torch.inference_mode()
    def descriptors(self, level: int, features: Float32[np.ndarray, "p f"]) -> Float32[np.ndarray, "p d"]:
        rows = torch.from_numpy(features).split(_ROWS)
        return torch.cat([self.describe(level, part) for part in rows]).numpy()

    @torch.inference_mode()
    def verification(self, numbers: Float32[np.ndarray, "m v"]) -> Float32[np.ndarray, "m"]:
        return self.verification_logits(torch.from_numpy(numbers)).sigmoid().numpy()
