"""The methods that the paper compares with: features of all pieces in, poses out, in one go, without diffusion.

Each maps padded features (b, w, f) of b objects, of which `present` (b, w) are real, to poses (b, w, 12): translation,
then the rotation matrix row by row. Global, LSTM and DGL are as in Breaking Bad. Of NSM and SE(3)-Equiv the adversarial
and the reconstruction losses are left out: they help with two halves of a solid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from diffassemble.core.settings import Settings, Width, check_settings
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import SPACES
from diffassemble.network.batch import PuzzleBatch
from diffassemble.network.denoiser import PoseNetwork, Prediction, Samples, Times
from diffassemble.network.encoders import make_encoder
from diffassemble.network.encoders.image import Symmetry
from diffassemble.network.encoders.points import EXTENTS, PointBackbone, VectorBackbone
from diffassemble.network.graph import DenseGraph

POSE = 12
"""translation, then the rotation matrix row by row"""
ROUNDS = 3
LAYERS = 3
HEADS = 4
RANK = 16


def perceptron(inputs: int, width: int, outputs: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, outputs)
    )


class Global(nn.Module):
    """Global (Schor et al. 2019, Li et al. 2020): each piece beside the largest of all pieces' features."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.pose = perceptron(2 * features, width, POSE)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        whole = features.masked_fill(~present[..., None], -torch.inf).amax(1, keepdim=True)
        return self.pose(torch.cat([features, whole.expand_as(features)], -1))


class DynamicGraph(nn.Module):
    """DGL (Huang et al. 2020): a graph whose edges are weighed anew by every guess of the poses."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.start = nn.Linear(features, width)
        self.relation = nn.ModuleList(perceptron(2 * (width + POSE), width // 2, 1) for _ in range(ROUNDS))
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(ROUNDS))
        self.update = nn.ModuleList(nn.GRUCell(width, width) for _ in range(ROUNDS))
        self.pose = nn.ModuleList(perceptron(width + features + POSE, width, POSE) for _ in range(ROUNDS))

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        nodes = self.start(features)
        poses = features.new_zeros(*features.shape[:2], POSE)
        for relation, message, update, pose in zip(self.relation, self.message, self.update, self.pose, strict=True):
            weight = relation(pairs(torch.cat([nodes, poses], -1))).squeeze(-1).sigmoid() * present[:, None]
            sent = message(pairs(nodes)).relu()
            received = torch.einsum("bij,bijf->bif", weight, sent) / weight.sum(-1, keepdim=True).clamp(min=1e-6)
            nodes = update(received.flatten(0, 1), nodes.flatten(0, 1)).view_as(nodes)
            poses = pose(torch.cat([nodes, features, poses], -1))
        return poses


def pairs(nodes: Float[Tensor, "b w f"]) -> Float[Tensor, "b w w g"]:
    """Every node beside every other."""
    wide = nodes[:, None].expand(-1, nodes.shape[1], -1, -1)
    return torch.cat([wide.transpose(1, 2), wide], -1)


class ShapeMating(nn.Module):
    """NSM (Chen et al. 2022), extended to many parts as in the paper: a transformer over the pieces of an object."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.start = nn.Linear(features, width)
        layer = nn.TransformerEncoderLayer(width, HEADS, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.attention = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.pose = perceptron(width, width, POSE)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        return self.pose(self.attention(self.start(features), src_key_padding_mask=~present))


class Sequence(nn.Module):
    """LSTM (Wu et al. 2020): a reader looks at all pieces in both directions; a writer then lays them one by one."""

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.reader = nn.LSTM(features, width // 2, batch_first=True, bidirectional=True)
        self.writer = nn.LSTMCell(width + POSE, width)
        self.pose = perceptron(width, width, POSE)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        lengths = present.sum(1).cpu()
        packed = pack_padded_sequence(features, lengths, batch_first=True, enforce_sorted=False)
        read, _ = pad_packed_sequence(self.reader(packed)[0], batch_first=True, total_length=features.shape[1])
        pose = features.new_zeros(len(features), POSE)
        state: tuple[Tensor, Tensor] | None = None
        laid = []
        for piece in read.unbind(1):
            state = self.writer(torch.cat([piece, pose], -1), state)
            pose = self.pose(state[0])
            laid.append(pose)
        return torch.stack(laid, 1)


class Symmetric(nn.Module):
    """SE(3)-Equiv (Wu et al. 2023): a pose turns with its piece exactly, and does not change with other pieces' turns.

    The features are vectors (three numbers each) and the three extents. Inner products of vectors are blind to turns;
    the mean of all pieces' products, which describes the whole, mixes a piece's own vectors into the rows of
    its rotation.
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        vectors = (features - EXTENTS) // 3
        self.frame = nn.Linear(vectors, RANK, bias=False)
        self.blind = perceptron(RANK * RANK + EXTENTS, width, width)
        self.mixing = perceptron(2 * width, width, 3 * vectors)
        self.translation = perceptron(2 * width, width, 3)

    def forward(self, features: Float[Tensor, "b w f"], present: Bool[Tensor, "b w"]) -> Float[Tensor, "b w 12"]:
        turning, extents = features.split([features.shape[-1] - EXTENTS, EXTENTS], -1)
        vectors = turning.unflatten(-1, (-1, 3))
        frame = self.frame(vectors.transpose(-1, -2))
        products = (frame.transpose(-1, -2) @ frame).flatten(-2)
        own = self.blind(torch.cat([products, extents], -1))
        mask = present[..., None]
        whole = (own * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        known = torch.cat([own, whole.expand_as(own)], -1)
        rows = self.mixing(known).unflatten(-1, (3, -1)) @ vectors / vectors.shape[-2] ** 0.5
        return torch.cat([self.translation(known), rows.flatten(-2)], -1)


BASELINES: dict[str, type[nn.Module]] = {
    "global": Global,
    "lstm": Sequence,
    "dgl": DynamicGraph,
    "nsm": ShapeMating,
    "se3-equiv": Symmetric,
}


@dataclass(frozen=True)
class OneShotConfig(Settings):
    """Which baseline, and how large."""

    baseline: Literal["global", "lstm", "dgl", "nsm", "se3-equiv"] = "global"
    backbone: PointBackbone = "dgcnn"
    features: Width = 32
    """a third of the encoder's numbers: vectors, where they are vectors"""
    width: Width = 192

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.baseline == "se3-equiv" and self.backbone not in get_args(VectorBackbone):
            yield (
                "backbone",
                f"{' or '.join(get_args(VectorBackbone))} with the baseline se3-equiv, whose features are vectors",
            )


class OneShot(PoseNetwork):
    """Encodes the pieces and asks a baseline for their poses; noise and time are not looked at."""

    config_class = OneShotConfig

    def __init__(self, config: OneShotConfig) -> None:
        super().__init__()
        check_settings(config)
        self.config = config
        self.space, self.schedule = SPACES["so3"], Schedule(1)
        symmetry: Symmetry = "equivariant" if config.backbone in get_args(VectorBackbone) else "plain"
        self.encoder = make_encoder(config.backbone, symmetry, config.features)
        self.baseline = BASELINES[config.baseline](self.encoder.width, config.width)

    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Float[Tensor, "n p"]:
        """The answer itself."""
        graph = DenseGraph.of(batch.puzzle, None, 1)
        features = graph.spread(self.encoder(batch.content).flatten(1)[:, None])[:, :, 0]
        return self.baseline(features, graph.present)[graph.present]

    def predict(
        self, noisy: Samples, time: Times, condition: Float[Tensor, "n p"], before: Prediction | None = None
    ) -> Prediction:
        return Prediction(condition[:, None].expand_as(noisy))
