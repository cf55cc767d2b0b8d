"""The network (the paper's sections 3.1, 3.2 and 3.4): piece features, noisy poses and time in; clean poses X₀ out.

`Denoiser.condition` encodes the pieces, chooses the graph and reads the matches, once a puzzle; `forward` then denoises
k noisy versions of all n pieces, once a step. In the paper's form a node is [features | noisy pose | time]; `votes` and
`edge_features` add what the matches say, `posed` turns the features into the noisy pose.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Matches, Poses
from diffassemble.core.pieces import CHANNELS
from diffassemble.core.settings import check_settings
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import SPACES, Space
from diffassemble.network.batch import BOARD_WIDTH, PuzzleBatch
from diffassemble.network.config import ModelConfig
from diffassemble.network.encoders import Encoder, make_encoder
from diffassemble.network.encoders.points import PointEncoder
from diffassemble.network.encoders.vector_neurons import Invariants
from diffassemble.network.evidence import (
    POWERS,
    THRESHOLDS,
    BoardPosterior,
    Clusters,
    board_posterior,
    cast_votes,
    flatten_poses,
    grow_clusters,
    unflatten_poses,
    vote_matrix,
)
from diffassemble.network.graph.edges import complete_edges, drop_edges, expander_edges, match_edges
from diffassemble.network.graph.layout import DenseGraph, Graph, edge_graph
from diffassemble.network.layers import STACKS
from diffassemble.network.pretrained import Pretrained

# Estimates beyond this many units of the whole are nonsense.
FARTHEST = 4.0
# Pieces that are encoded at once.
_ENCODED = 2048
# Where the configuration does not say how sparse a large graph is: neighbours in the expander, and matches of a side.
LARGE_DEGREE, LARGE_TOP = 16.0, 8

Samples = Float[Tensor, "n k p"]
"""k versions of the states of n pieces"""
Times = Int[Tensor, "n k"]


class PoseNetwork(Pretrained, ABC):
    """Predicts X₀ from noisy poses x_t. `condition` runs once a puzzle, `forward` once a step."""

    space: Space
    schedule: Schedule

    @property
    def pairwise(self) -> bool:
        """Whether batches must come with matches."""
        return False

    @abstractmethod
    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Any:
        """All that stays the same while poses are denoised."""

    @abstractmethod
    def forward(self, noisy: Samples, time: Times, condition: Any) -> Samples:
        """Predicted X₀, in the raw numbers that `space.clean` understands, of k noisy versions of the same n pieces."""


@dataclass(frozen=True)
class Condition:
    """All that stays the same while poses are denoised: piece features, graph, and which matches vote for whom."""

    features: Float[Tensor, "n f"]
    surroundings: Float[Tensor, "n g"]
    graph: Graph
    votes: Float[Tensor, "flat flat"] | None
    clusters: Sequence[tuple[Clusters, BoardPosterior | None]]


class Denoiser(PoseNetwork):
    """The paper's network: a graph of all pieces, each with its features, its noisy pose and the time."""

    config_class = ModelConfig

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        check_settings(config)
        self.config = config
        self.space = SPACES[config.space]
        self.schedule = Schedule(config.times)
        self.encoder: Encoder = make_encoder(config.backbone, config.symmetry, config.features)
        estimates = len(POWERS) + (2 if config.on_board else 1) * len(THRESHOLDS) if config.votes else 0
        opinions = 1 + estimates
        self.pose_embedding = nn.Sequential(
            nn.Linear(opinions * self.space.width, config.pose_hidden),
            nn.GELU(),
            nn.Linear(config.pose_hidden, config.pose_width),
        )
        evidence = config.contact_slots * CHANNELS
        cluster_width = len(THRESHOLDS) * (1 + 2 * self.space.translation_width)  # sizes, and reach along each axis
        self.standing = PosedFeatures(self.encoder, config.width) if config.posed else None
        node_width = self.encoder.width + config.pose_width + config.time_width
        node_width += (self.standing.width if self.standing else 0) + (BOARD_WIDTH if config.board else 0)
        node_width += (evidence if config.pairwise else 0) + (cluster_width if config.votes else 0)
        self.join = nn.Sequential(
            nn.Linear(node_width, config.join_hidden), nn.GELU(), nn.Linear(config.join_hidden, config.width)
        )
        self.stack = STACKS[config.stack](config, evidence if config.edge_features else None)
        self.head = nn.Sequential(nn.Linear(config.width, 32), nn.GELU(), nn.Linear(32, self.space.width))
        self.trust = nn.Linear(config.width, 2 * opinions) if config.votes else None
        self.virtual = nn.Parameter(torch.randn(config.virtual_nodes, config.width)) if config.virtual_nodes else None
        if self.trust is not None:  # at first all opinions are trusted alike
            nn.init.zeros_(self.trust.weight)
            nn.init.ones_(self.trust.bias)

    @property
    def pairwise(self) -> bool:
        return self.config.pairwise

    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Condition:
        """Encode the pieces and compare their borders; with a `generator`, for learning on random sparse graphs."""
        config = self.config
        features = self._encoded(batch.content)
        nodes = [batch.board.new_empty(len(batch.puzzle), 0)]
        votes: Tensor | None = None
        clusters: list[tuple[Clusters, BoardPosterior | None]] = []
        count = len(batch.puzzle)
        if config.pairwise:
            assert batch.matches is not None, "this model needs pairwise evidence: pack(..., find_matches)"
            nodes.append(best_evidence(batch.matches, count, config.contact_slots))
        if config.votes and batch.matches is not None:
            votes, grown = vote_matrix(batch.matches, count), grow_clusters(batch.matches, count, batch.room)
            pieces = torch.bincount(batch.puzzle)[batch.puzzle]
            nodes += [c.reach() for c in grown] + [(c.sizes() / pieces)[:, None] for c in grown]
            clusters = [
                (c, board_posterior(c, batch.room, batch.board[:, 2]) if config.on_board else None) for c in grown
            ]
        if config.board:
            nodes.append(batch.board)
        if self.standing is not None:
            nodes.append(self.standing.shape(features))
        return Condition(features, torch.cat(nodes, 1), wire(config, batch, generator), votes, clusters)

    def _encoded(self, content: Float[Tensor, "n *x"]) -> Float[Tensor, "n f"]:
        """The features of all pieces; those of large puzzles in blocks, if nothing is learnt from them."""
        blocks = [content] if torch.is_grad_enabled() else content.split(_ENCODED)
        return torch.cat([self.encoder(block).flatten(1) for block in blocks])

    def forward(self, noisy: Samples, time: Times, condition: Condition) -> Samples:
        """Predicted X₀ of k noisy versions of the same n pieces."""
        samples = noisy.shape[1]
        opinions = self._opinions(noisy, time, condition)
        seen = condition.features[:, None].expand(-1, samples, -1)
        if self.standing is not None:
            rotation = self.space.to_poses(noisy.flatten(0, 1)).rotation.unflatten(0, noisy.shape[:2])
            seen = self.standing.turned(seen, rotation)
        parts = [
            seen,
            condition.surroundings[:, None].expand(-1, samples, -1),
            self.pose_embedding(opinions.flatten(2)),
            time_embedding(time / self.config.times, self.config.time_width),
        ]
        nodes = condition.graph.spread(self.join(torch.cat(parts, -1)), self.virtual)
        nodes = condition.graph.gather(self.stack(nodes, condition.graph))
        predicted = self.head(nodes)
        if self.standing is not None:
            predicted = self._turned_on(predicted, self.standing.axes(nodes, seen), rotation)
        return predicted if self.trust is None else predicted + self._mixture(self.trust(nodes), opinions)

    def _turned_on(self, raw: Samples, axes: Float[Tensor, "n k 3 3"], stands: Float[Tensor, "n k 3 3"]) -> Samples:
        """What is said of pieces as they stand, from how they lie: a rotation by the head and one by their vectors."""
        said = self.space.to_poses(raw.float().flatten(0, 1))
        rotation = (said.rotation + axes.flatten(0, 1)) @ stands.flatten(0, 1)
        return self.space.to_vector(Poses(rotation, said.translation)).view_as(raw)

    @torch.no_grad()
    def _opinions(self, noisy: Samples, time: Times, condition: Condition) -> Float[Tensor, "n k o p"]:
        """What is said about each clean pose: the noisy pose itself, the matches' votes, and what the clusters say.

        An opinion with noise variance v estimates x₀ best as √ᾱ / (ᾱ + v) times itself; voting makes v small.
        """
        if condition.votes is None:
            return noisy[:, :, None]
        shape = noisy.shape[:2]
        alpha_bar = self.schedule.alpha_bar.to(time.device)[time].flatten()
        poses = self.space.to_poses(noisy.float().flatten(0, 1))
        flat = flatten_poses(poses).unflatten(0, shape)
        with torch.autocast(noisy.device.type, enabled=False):  # many rounds need all the digits
            votes = cast_votes(condition.votes, flat.transpose(1, 2).contiguous()).permute(0, 3, 1, 2)
        vectors = self.space.to_vector(unflatten_poses(votes.flatten(0, 2))).unflatten(0, votes.shape[:3])
        linear: list[Tensor] = [noisy[:, :, None], vectors]
        decided: list[Tensor] = []
        for clusters, posterior in condition.clusters:
            found = [(clusters.placed(poses, shape[1]), linear)]
            if posterior is not None:
                found.append((posterior.mean(poses, alpha_bar.unflatten(0, shape)), decided))
            for opinion, answers in found:
                vector = self.space.to_vector(clusters.members(opinion, shape[1]))
                answers.append(vector.unflatten(0, shape)[:, :, None])
        scale = (alpha_bar.sqrt() / (alpha_bar + 0.1 * (1 - alpha_bar))).unflatten(0, shape)
        # Matches that contradict each other push pieces further away with every round; beyond this it is nonsense.
        estimates = torch.cat(linear, 2).clamp(-FARTHEST, FARTHEST) * scale[..., None, None]
        return torch.cat([estimates, *decided], 2)

    def _mixture(self, trust: Float[Tensor, "n k two_o"], opinions: Float[Tensor, "n k o p"]) -> Samples:
        """The opinions mixed by how far each is trusted in translation and in rotation."""
        trust = trust.unflatten(-1, (2, -1)) / opinions.shape[2]
        split = self.space.translation_width
        translation = (trust[:, :, 0, :, None] * opinions[..., :split]).sum(2)
        rotation = (trust[:, :, 1, :, None] * opinions[..., split:]).sum(2)
        return torch.cat([translation, rotation], -1)


class PosedFeatures(nn.Module):
    """Pieces seen as they stand in a noisy pose, and turned on from there by their own vectors.

    What turns with a piece is used as such, instead of being learnt for every rotation anew.

    A row of the wanted rotation is an axis of the whole as the piece sees it: a mixture of the piece's vectors,
    by weights that the network says. If the weights don't change when the piece is turned, the answer turns with it.
    """

    def __init__(self, encoder: Encoder, width: int) -> None:
        super().__init__()
        assert isinstance(encoder, PointEncoder), "only features of points turn freely"
        self.vectors, self.turned = encoder.vectors, encoder.turned
        self.invariants = Invariants(encoder.vectors)
        self.weights = nn.Linear(width, 3 * encoder.vectors)
        nn.init.zeros_(self.weights.weight)
        nn.init.zeros_(self.weights.bias)

    @property
    def width(self) -> int:
        """Numbers that `shape` gives for a piece."""
        return 3 * self.vectors

    def shape(self, features: Float[Tensor, "n f"]) -> Float[Tensor, "n s"]:
        """What pieces are like, however they are turned."""
        return self.invariants(self._vectors(features).mT)

    def axes(self, nodes: Float[Tensor, "n k w"], features: Float[Tensor, "n k f"]) -> Float[Tensor, "n k 3 3"]:
        """Mixtures of vectors, one for each axis of the whole."""
        weights = self.weights(nodes).unflatten(-1, (3, self.vectors))
        return weights.float() @ self._vectors(features).float() / self.vectors**0.5

    def _vectors(self, features: Float[Tensor, "*n f"]) -> Float[Tensor, "*n v 3"]:
        return features[..., : self.width].unflatten(-1, (self.vectors, 3))


def best_evidence(matches: Matches, count: int, slots: int) -> Float[Tensor, "n s"]:
    """For every piece and slot the best evidence of each channel: does this side have a match at all?"""
    best = matches.evidence.new_zeros(count * slots, matches.evidence.shape[-1])
    row = (matches.first * slots + matches.slot)[:, None].expand_as(matches.evidence)
    return best.scatter_reduce(0, row, matches.evidence, "amax").view(count, -1)


def time_embedding(share: Float[Tensor, "*n"], width: int) -> Float[Tensor, "*n w"]:
    """Sines and cosines of time in [0, 1] at frequencies from 1 to 1000."""
    frequency = torch.exp(torch.linspace(0, math.log(1000), width // 2, device=share.device))
    angle = share[..., None] * frequency
    return torch.cat([angle.sin(), angle.cos()], -1)


def wire(config: ModelConfig, batch: PuzzleBatch, generator: torch.Generator | None) -> Graph:
    """The graph of a batch: for learning if there is a generator, else for solving."""
    evidence = batch.matches if config.edge_features else None
    large = int(torch.bincount(batch.puzzle).max()) > config.complete_up_to
    thinned = config.degree > 0 or config.dropped_edges > 0
    if not large and not (thinned and (generator is not None or config.sparse_solving)):
        return DenseGraph.of(batch.puzzle, evidence, config.contact_slots, config.virtual_nodes)
    # Solving draws the same graph for the same puzzle.
    generator = generator or torch.Generator().manual_seed(len(batch.puzzle))
    top = config.top_k or (LARGE_TOP if large else 0)
    if config.degree == 0 and not large:
        edges = drop_edges(complete_edges(batch.puzzle), config.dropped_edges, generator)
    else:
        edges = expander_edges(batch.puzzle, config.degree or LARGE_DEGREE, generator)
        if batch.matches is not None and top:
            edges = torch.cat([edges, match_edges(batch.matches, top, config.contact_slots)], 1)
    return edge_graph(edges, batch.puzzle, evidence, config.contact_slots, config.virtual_nodes)
