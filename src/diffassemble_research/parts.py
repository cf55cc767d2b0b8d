"""Parts of networks that only the paper's own form, its ablations and compared methods use.

Settings name them as the program's own parts (`--model.layer gcn`, `--model.backbone resnet18`, `--model.posed`).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from scipy.spatial.transform import Rotation
from torch import Tensor, nn

from diffassemble.network.config import ModelConfig
from diffassemble.network.encoders.points import (
    Invariants,
    Neighbours,
    PointEncoder,
    Pooling,
    VectorLayer,
    leading_vectors,
    unit_scale,
)
from diffassemble.network.graph import EdgeGraph, Graph, edge_sums
from diffassemble.network.heads import RotationLogits
from diffassemble.network.layers import LAYERS
from diffassemble.network.pretrained import stored_as

# Layers.


class GCN(nn.Module):
    """The paper's ablation, with PyG's parameters: x'_i = Σ_j W x_j / √(d_i d_j) + b, with d the number of senders."""

    def __init__(self, width_in: int, width_out: int, *_: object) -> None:
        super().__init__()
        self.lin = nn.Linear(width_in, width_out, bias=False)
        self.bias = nn.Parameter(torch.zeros(width_out))
        nn.init.xavier_uniform_(self.lin.weight)

    def message_passing(self, nodes: Float[Tensor, "*places k f"], graph: Graph) -> Float[Tensor, "*places k g"]:
        """Nodes (b, w, k, f) on dense graphs, (n, k, f) on edge lists."""
        values = self.lin(nodes)
        if isinstance(graph, EdgeGraph):
            ends = graph.incidence
            scale = ends.starts.diff().to(values).rsqrt()
            weights = (scale[ends.sender] * scale[ends.receiver])[:, None].expand(-1, nodes.shape[1])
            return edge_sums(weights, values, ends).to(values.dtype) + self.bias
        present = graph.present[:, :, None, None]
        mean = (values * present).sum(1, keepdim=True) / present.sum(1, keepdim=True)
        return (mean + self.bias).expand(-1, nodes.shape[1], -1, -1)


class PublishedStack(nn.Module):
    """The paper's layers: width → hidden → … → width, one residual around them all."""

    def __init__(self, config: ModelConfig, edge_width: int | None) -> None:
        super().__init__()
        widths = [config.width, *[config.hidden] * (config.layers - 1), config.width]
        self.layers = nn.ModuleList(LAYERS[config.layer](a, b, config.heads, edge_width) for a, b in pairwise(widths))

    def forward(
        self, nodes: Float[Tensor, "*places k f"], graph: Graph, neighbours: None = None
    ) -> Float[Tensor, "*places k f"]:
        first, *others = self.layers
        inner = first.message_passing(nodes, graph)  # type: ignore[operator]
        for layer in others:
            inner = layer.message_passing(F.gelu(inner), graph)  # type: ignore[operator]
        return nodes + inner


# Encoders.


class LiftingConvolution(nn.Module):
    """Pixels (n, c, h, w) → maps with a turn axis: one filter at four turns (Cohen & Welling 2016).

    Maps are halved by 2×2 means: the sampling grid of strided 3×3 convolutions is not symmetric on even maps.
    """

    def __init__(self, channels_in: int, channels_out: int, kernel: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, kernel, kernel))
        nn.init.kaiming_normal_(self.weight)

    def forward(self, pixels: Float[Tensor, "n c h w"]) -> Float[Tensor, "n o 4 h w"]:
        # rot90 turns counter-clockwise: slot k holds the filter turned back by k, which is the piece turned on by k.
        turned = torch.stack([torch.rot90(self.weight, turn, (-2, -1)) for turn in range(4)], 1)
        maps = F.conv2d(pixels, turned.flatten(0, 1), padding=self.weight.shape[-1] // 2)
        return maps.unflatten(1, (-1, 4))


class GroupConvolution(nn.Module):
    """Maps with a turn axis → maps with a turn axis."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, 4, kernel, kernel))
        nn.init.normal_(self.weight, std=(2 / (channels_in * 4 * kernel**2)) ** 0.5)

    def forward(self, maps: Float[Tensor, "n c 4 h w"]) -> Float[Tensor, "n o 4 h w"]:
        turned = torch.stack([torch.rot90(self.weight, turn, (-2, -1)).roll(turn, 2) for turn in range(4)], 1)
        kernel = self.weight.shape[-1]
        out = F.conv2d(maps.flatten(1, 2), turned.flatten(0, 1).flatten(1, 2), padding=kernel // 2)
        return out.unflatten(1, (-1, 4))


class GroupNorm(nn.Module):
    """Normalises over channels, turns and places of one piece; one scale per channel, the same for all turns."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels))
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, maps: Float[Tensor, "n c 4 h w"]) -> Float[Tensor, "n c 4 h w"]:
        normal = F.layer_norm(maps, maps.shape[1:])
        return normal * self.scale[:, None, None, None] + self.shift[:, None, None, None]


class ResidualBlock(nn.Module):
    """Two group convolutions around a shortcut; `shrink` halves the map."""

    def __init__(self, channels_in: int, channels_out: int, shrink: bool) -> None:
        super().__init__()
        self.shrink = shrink
        self.first = GroupConvolution(channels_in, channels_out)
        self.first_norm = GroupNorm(channels_out)
        self.second = GroupConvolution(channels_out, channels_out)
        self.second_norm = GroupNorm(channels_out)
        plain = channels_in == channels_out
        self.shortcut = nn.Identity() if plain else GroupConvolution(channels_in, channels_out, kernel=1)

    def forward(self, maps: Float[Tensor, "n c 4 h w"]) -> Float[Tensor, "n o 4 _h _w"]:
        if self.shrink:  # 2×2 means commute with quarter turns on even maps
            maps = F.avg_pool2d(maps.flatten(1, 2), 2).unflatten(1, (-1, 4))
        inner = F.relu(self.first_norm(self.first(maps)))
        return F.relu(self.second_norm(self.second(inner)) + self.shortcut(maps))


class GroupResNet18(nn.Module):
    """The paper's group-equivariant ResNet18: stem 32, stages 32/64/64/128 channels per turn."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.stem = LiftingConvolution(3, 32)
        self.stem_norm = GroupNorm(32)
        widths = (32, 32, 64, 64, 128)
        self.stages = nn.Sequential()
        for stage, (before, after) in enumerate(pairwise(widths)):
            self.stages.append(ResidualBlock(before, after, shrink=stage > 0))
            self.stages.append(ResidualBlock(after, after, shrink=False))
        self.head = nn.Linear(widths[-1] * 4, features)

    def forward(self, pixels: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n 4 f"]:
        maps = self.stages(F.relu(self.stem_norm(self.stem(pixels))))
        slots = maps.mean((-2, -1)).transpose(1, 2)  # n, 4, channels
        # All turns for each slot, starting from its own: a linear map over the group.
        return self.head(torch.cat([slots.roll(-shift, 1) for shift in range(4)], -1))


class EdgeConvolution(nn.Module):
    """The published form: the mean over the neighbours of layers of (difference, point, their cross product)."""

    def __init__(self, channels_in: int, channels_out: int, layers: int, crosses: bool = False) -> None:
        super().__init__()
        self.crosses = crosses
        self.first = VectorLayer((3 if crosses else 2) * channels_in, channels_out)
        self.others = nn.Sequential(*(VectorLayer(channels_out, channels_out) for _ in range(layers - 1)))

    def forward(self, vectors: Float[Tensor, "n p 3 c"], neighbours: Neighbours) -> Float[Tensor, "n p 3 d"]:
        own = vectors[:, :, :, None]
        difference = neighbours.vectors(vectors) - own
        own = own.expand_as(difference)
        parts = [difference, own]
        if self.crosses:
            parts.append(torch.linalg.cross(difference, own, dim=2))
        edges = torch.cat(parts, -1).transpose(2, 3)
        return self.others(self.first(edges)).mean(2)


class PublishedNetwork(nn.Module):
    """The published sizes: edge convolutions of 21/21, 21/21 and 21 vectors, concatenated; 128 a point, 256 in all."""

    points, neighbours = 1000, 20

    def __init__(self, vectors: int) -> None:
        super().__init__()
        self.first = EdgeConvolution(1, 21, layers=2, crosses=True)
        self.second = EdgeConvolution(21, 21, layers=2)
        self.third = EdgeConvolution(21, 21, layers=1)
        self.pooling = Pooling(63, vectors)

    def forward(self, points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n 3 v"]:
        first = unit_scale(self.first(points[..., None], neighbours))
        second = unit_scale(self.second(first, neighbours))
        third = unit_scale(self.third(second, neighbours))
        return self.pooling(torch.cat([first, second, third], -1))


class DGCNN(nn.Module):
    """Edge convolutions with a maximum over the neighbours (Wang et al. 2019), on one graph found in space."""

    points, neighbours = 128, 8

    def __init__(self, features: int) -> None:
        super().__init__()
        widths = (3, 32, 32, 64)
        self.send = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairwise(widths))
        self.receive = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[1:])
        self.join = nn.Linear(sum(widths[1:]), 128)
        self.summary = nn.Linear(256, features)

    def forward(self, points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n f"]:
        values, layers = points, []
        for send, receive, norm in zip(self.send, self.receive, self.norms, strict=True):
            # max over j of leaky(A x_j + B x_i): the non-linearity is monotonic, so it can follow the maximum.
            values = F.leaky_relu(norm(neighbours.numbers(send(values)).amax(2) + receive(values)), 0.2)
            layers.append(values)
        inner = F.leaky_relu(self.join(torch.cat(layers, -1)), 0.2)
        return self.summary(torch.cat([inner.amax(1), inner.mean(1)], -1))


class PointNet(nn.Module):
    """Layers on every point alone, then a maximum over all (Qi et al. 2017)."""

    points, neighbours = 128, 0

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(3, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 128), nn.LayerNorm(128), nn.ReLU()
        )
        self.join = nn.Linear(128, 256)
        self.summary = nn.Linear(256, features)

    def forward(self, points: Float[Tensor, "n p 3"], neighbours: Neighbours) -> Float[Tensor, "n f"]:
        return self.summary(F.relu(self.join(self.layers(points)).amax(1)))


class PosedFeatures(nn.Module):
    """Features of pieces in their noisy poses (`turned`), beside those that do not depend on the pose (`shape`)."""

    def __init__(self, encoder: PointEncoder) -> None:
        super().__init__()
        self.vectors, self.turned = encoder.vectors, encoder.turned
        self.invariants = Invariants(encoder.vectors)

    @property
    def width(self) -> int:
        """Numbers that `shape` gives for a piece."""
        return 3 * self.vectors

    def shape(self, features: Float[Tensor, "n f"]) -> Float[Tensor, "n s"]:
        """Numbers of pieces that do not change when they are turned."""
        return self.invariants(leading_vectors(features, self.vectors).mT)


# Heads.


@cache
def grid() -> Float[Tensor, "turns 3 3"]:
    """The 60 rotations of the icosahedron: no rotation is further than 45° from one of them."""
    return torch.from_numpy(Rotation.create_group("I").as_matrix()).float()


class RotationScores(nn.Module):
    """Scores every rotation of the grid, and predicts the place of the piece for each.

    A linear map of vectors v turned by G is ⟨G, P⟩ with P made of the vectors alone, so no vector is really turned.
    """

    def __init__(self, vectors: int, shape: int, width: int, hidden: int = 96) -> None:
        super().__init__()
        self.vectors, self.hidden = vectors, hidden
        self.turned = nn.Linear(vectors, 3 * hidden, bias=False)
        self.shape = nn.Linear(shape, hidden)
        self.inner = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 4)
        self.node = nn.Linear(width, hidden + 9)
        self.alone = nn.Linear(hidden, 4)
        stored_as(self, node="told")

    def seen(self, features: Float[Tensor, "n f"], shape: Float[Tensor, "n s"]) -> Float[Tensor, "n turns h"]:
        """Features of each piece in every rotation; `features` begin with vectors, which turn, `shape` does not."""
        vectors = leading_vectors(features, self.vectors)
        mixed = self.turned(vectors.mT).unflatten(-1, (3, self.hidden))  # n b a h
        turned = torch.einsum("gab,nbah->ngh", grid().to(mixed), mixed)
        return turned + self.shape(shape)[:, None]

    def forward(
        self, seen: Float[Tensor, "n turns h"], nodes: Float[Tensor, "n k w"] | None = None
    ) -> tuple[RotationLogits, Float[Tensor, "n k 12"]]:
        """Logits and X̂₀ by the nodes of k noisy versions, or by each piece alone (k = 1)."""
        turns = grid().to(seen)
        if nodes is None:
            scored = self.alone(F.gelu(seen[:, None]))
            logits = scored[..., 0]
        else:
            node, near = self.node(nodes).split([self.hidden, 9], -1)
            hidden = F.gelu(seen[:, None] + node[:, :, None])
            scored = self.last(F.gelu(self.inner(hidden)))
            logits = scored[..., 0] + near @ turns.flatten(1).T
        logits = logits.float()
        chance = logits.softmax(-1)
        place = (chance[..., None] * scored[..., 1:]).sum(2)
        return logits, torch.cat([place, chance @ turns.flatten(1)], -1)

    @staticmethod
    def cross_entropy(logits: RotationLogits, true: Float[Tensor, "n 3 3"], narrow: float = 2.0) -> Float[Tensor, ""]:
        """With targets about the true rotations: softmax(narrow · ⟨G, R⟩) over the grid."""
        near = torch.einsum("gab,nab->ng", grid().to(true), true)
        target = (narrow * near).softmax(-1)
        return -(target[:, None] * logits.log_softmax(-1)).sum(-1).mean()


class Axes(nn.Module):
    """Rotations in the frame of the noisy pose, whose rows are mixtures of the piece's own vectors."""

    def __init__(self, vectors: int, width: int) -> None:
        super().__init__()
        self.vectors = vectors
        self.weights = nn.Linear(width, 3 * vectors)
        nn.init.zeros_(self.weights.weight)
        nn.init.zeros_(self.weights.bias)

    def forward(self, nodes: Float[Tensor, "n k w"], features: Float[Tensor, "n k f"]) -> Float[Tensor, "n k 3 3"]:
        """Mixtures of vectors, one for each axis of the whole."""
        weights = self.weights(nodes).unflatten(-1, (3, self.vectors))
        return weights.float() @ leading_vectors(features, self.vectors).float() / self.vectors**0.5


PARTS: dict[str, type[nn.Module]] = {
    **{"gcn": GCN, "published": PublishedStack, "resnet18": GroupResNet18, "vn_dgcnn_published": PublishedNetwork},
    **{"dgcnn": DGCNN, "pointnet": PointNet, "posed": PosedFeatures, "rotations": RotationScores, "axes": Axes},
}
