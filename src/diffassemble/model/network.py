"""What training and solving ask of a network that predicts poses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.compatibility.judging import Judge
from diffassemble.diffusion import Schedule
from diffassemble.diffusion.spaces import Space
from diffassemble.model.batch import PuzzleBatch
from diffassemble.model.pretrained import Pretrained


class PoseNetwork(Pretrained, ABC):
    """Predicts X₀ from noisy poses x_t. `condition` runs once a puzzle, `forward` once a step."""

    space: Space
    schedule: Schedule
    judge: Judge | None = None
    """who says for it which sides fit; without one, border gradients alone"""

    @property
    def pairwise(self) -> bool:
        """Whether batches must come with mates."""
        return False

    @abstractmethod
    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Any:
        """All that stays the same while poses are denoised."""

    @abstractmethod
    def forward(
        self, noisy: Float[Tensor, "n k p"], time: Int[Tensor, "n k"], condition: Any
    ) -> Float[Tensor, "n k p"]:
        """Predicted X₀, in the raw numbers that `space.clean` understands, of k noisy versions of the same n pieces."""
