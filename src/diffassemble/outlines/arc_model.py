"""The learned part of matching free outlines: small networks that give the log odds of a contact from its features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32
from torch import Tensor, nn

from diffassemble.core.settings import Width
from diffassemble.network.pretrained import Pretrained
from diffassemble.outlines.contact import FEATURES, SIGNED

RIVALRY = 7
"""numbers of a candidate among its rivals (`arcs.rivalry`)"""


@dataclass(frozen=True)
class ArcConfig:
    """Sizes of the networks."""

    width: Width = 32


class Judge(nn.Module):
    """Two hidden layers on inputs of zero mean and unit deviation; gives log odds."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(inputs))
        self.register_buffer("deviation", torch.ones(inputs))
        self.layers = nn.ModuleList([nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, 1)])

    def forward(self, numbers: Float[Tensor, "m f"]) -> Float[Tensor, "m"]:
        """Log odds; inputs farther than 5 deviations from the mean count as 5."""
        hidden = ((numbers - self.mean) / self.deviation).clamp(-5, 5)
        for layer in list(self.layers)[:-1]:
            hidden = F.silu(layer(hidden))
        return self.layers[-1](hidden)[:, 0]


class ArcModel(Pretrained):
    """Four judges: of seeds, of contacts after refinement, of these among their rivals, and of implied contacts.

    A contact is implied if its pose follows from those of other pieces. It is not the best of a search, so its log odds
    are those among equally many true and false ones: evidence that may be added up.
    """

    config_class = ArcConfig

    def __init__(self, config: ArcConfig) -> None:
        super().__init__()
        self.config = config
        self.seeds = Judge(FEATURES, config.width)
        self.contacts = Judge(FEATURES, config.width)
        self.rivals = Judge(RIVALRY, config.width // 2)
        self.following = Judge(FEATURES, config.width)

    @torch.inference_mode()
    def judge(self, judge: str, numbers: Float32[np.ndarray, "m f"]) -> Float32[np.ndarray, "m"]:
        """Log odds by one of the judges from numbers as `contact.describe` or `arcs.rivalry` give them."""
        if len(numbers) == 0:
            return np.zeros(0, np.float32)
        given = torch.from_numpy(numbers)
        return getattr(self, judge)(given if judge == "rivals" else unskewed(given)).numpy()


def unskewed(numbers: Float[Tensor, "m f"]) -> Float[Tensor, "m f"]:
    """The same features, with the logarithm of those that are never negative and mostly small."""
    skewed = torch.ones(FEATURES, dtype=torch.bool)
    skewed[SIGNED] = False
    return torch.where(skewed, (numbers.clamp(min=0) + 0.05).log(), numbers)
