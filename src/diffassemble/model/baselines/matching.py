"""NSM (Chen et al. 2022), extended to many parts as in the paper: pieces attend to each other, then each is posed.

Its adversarial prior and its implicit shape reconstruction are left out: they help with two halves of a solid.
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from diffassemble.model.baselines.perceptron import POSE, perceptron

LAYERS = 3
HEADS = 4


class ShapeMating(nn.Module):
    """A transformer over the pieces of an object."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.start = nn.Linear(features, width)
        layer = nn.TransformerEncoderLayer(width, HEADS, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.attention = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.pose = perceptron(width, width, POSE)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        return self.pose(self.attention(self.start(features), src_key_padding_mask=~present))
