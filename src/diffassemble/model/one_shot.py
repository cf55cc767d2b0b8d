"""Networks that say where all pieces belong without diffusion: the baselines of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from diffassemble.diffusion import SPACES, Schedule
from diffassemble.encoders import make_encoder
from diffassemble.encoders.image import Symmetry
from diffassemble.encoders.points import VECTOR_NETWORKS, PointBackbone
from diffassemble.graph import DenseGraph
from diffassemble.model.baselines import BASELINES
from diffassemble.model.batch import PuzzleBatch
from diffassemble.model.network import PoseNetwork


@dataclass(frozen=True)
class OneShotConfig:
    """Which baseline, and how large."""

    baseline: Literal["global", "lstm", "dgl", "nsm", "se3-equiv"] = "global"
    backbone: PointBackbone = "dgcnn"
    features: int = 32
    """a third of the encoder's numbers: vectors, where they are vectors"""
    width: int = 192


class OneShot(PoseNetwork):
    """Encodes the pieces and asks a baseline for their poses; noise and time are not looked at."""

    config_class = OneShotConfig

    def __init__(self, config: OneShotConfig) -> None:
        super().__init__()
        self.config = config
        self.space, self.schedule = SPACES["so3"], Schedule(1)
        symmetry: Symmetry = "equivariant" if config.backbone in VECTOR_NETWORKS else "plain"
        self.encoder = make_encoder(config.backbone, symmetry, config.features)
        self.baseline = BASELINES[config.baseline](self.encoder.width, config.width)

    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Float[Tensor, "n p"]:
        """The answer itself."""
        graph = DenseGraph.of(batch.puzzle, None, 1)
        features = graph.spread(self.encoder(batch.content).flatten(1)[:, None])[:, :, 0]
        return self.baseline(features, graph.present)[graph.present]

    def forward(
        self, noisy: Float[Tensor, "n k p"], time: Int[Tensor, "n k"], condition: Float[Tensor, "n p"]
    ) -> Float[Tensor, "n k p"]:
        return condition[:, None].expand_as(noisy)
