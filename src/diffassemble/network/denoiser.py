"""The network (the paper's sections 3.1, 3.2 and 3.4): piece features, noisy poses and time in; clean poses X₀ out.

`Denoiser.condition` encodes the pieces, chooses the graph and reads the matches, once a puzzle; `forward` then denoises
k noisy versions of all n pieces, once a step. In the paper's form a node is [features | noisy pose | time]; `votes` and
`edge_features` add what the matches say, `posed` turns the features into the noisy pose. With the head "cells" a node
is one of the four views of a piece, and X₀ a distribution over the board's cells and turns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Matches, Poses
from diffassemble.core.matches import CHANNELS
from diffassemble.core.settings import check_settings
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.so3 import SPAN
from diffassemble.diffusion.spaces import SPACES, Space
from diffassemble.network.batch import BOARD_WIDTH, PuzzleBatch
from diffassemble.network.cells import (
    BoardCells,
    CellEmbedding,
    CellScores,
    Logits,
    blocks,
    expected,
    opinion_logits,
    seen_from_views,
)
from diffassemble.network.config import ModelConfig
from diffassemble.network.encoders import Encoder, make_encoder
from diffassemble.network.encoders.image import TURNS
from diffassemble.network.encoders.points import EXTENTS, PointEncoder
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
from diffassemble.network.graph.edges import complete_edges, drop_edges, expander_edges, lifted, match_edges
from diffassemble.network.graph.layout import DenseGraph, Graph, edge_graph
from diffassemble.network.layers import STACKS
from diffassemble.network.pretrained import Pretrained
from diffassemble.network.rotations import RotationLogits, RotationScores
from diffassemble.network.sides import Neighbours, SideDescriptors, Sides, likely_neighbours
from diffassemble.network.spatial import NUMBERS, OPINIONS, Held, Opinions
from diffassemble.network.spatial import opinions as spatial_opinions
from diffassemble.network.verdicts import Verdicts


@dataclass(frozen=True)
class RunConfig:
    """How a network is run, whatever it is made of."""

    farthest: float = 4.0
    """votes are cut off beyond so many units of the whole: matches that contradict each other push pieces away"""
    encoded: int = 2048
    """pieces that are encoded at once"""
    scored: int = 2**22
    """cells × pieces × samples that are scored at once; opinions take a dozen times as much room"""
    large_degree: float = 16.0
    """neighbours in the expander of a large graph, where the configuration sets none"""
    large_top: int = 8
    """matches of a side that are edges of a large graph, where the configuration sets none"""


RUN = RunConfig()

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
    def predict(self, noisy: Samples, time: Times, condition: Any, before: Prediction | None = None) -> Prediction:
        """Predicted X₀ of k noisy versions of the same n pieces; `before` is what was predicted a step before."""

    def forward(self, noisy: Samples, time: Times, condition: Any) -> Samples:
        """The vectors of a prediction alone."""
        return self.predict(noisy, time, condition).vectors


@dataclass(frozen=True)
class Prediction:
    """X₀ in the raw numbers that `space.clean` understands, and the distribution that it is the mean of, if any.

    `told` is what the views are told of the distribution at the next step. Of large boards that is all that is kept.
    Off boards, `trust` is how far each of the `opinions` is trusted, and `verdict` how true each match is, as logits;
    `turns` are the logits of the head "rotations".
    """

    vectors: Samples
    logits: Logits | None = None
    told: Float[Tensor, "m k q"] | None = None
    trust: Float[Tensor, "n k o"] | None = None
    opinions: Opinions | None = None
    verdict: Float[Tensor, "e k"] | None = None
    turns: RotationLogits | None = None


@dataclass(frozen=True)
class Condition:
    """All that stays the same while poses are denoised: features of the nodes, graph, which matches vote for whom.

    Where nodes are views, `boards` are the cells to choose from, `alone` is what each piece says by itself, and `sides`
    what pieces show along their sides, if that is compared. Off boards, `matches` vote, some pieces are `held`, and
    `unit` is the length by which places are judged; with the head "rotations", `seen` is how pieces look when turned.
    """

    features: Float[Tensor, "m f"]
    surroundings: Float[Tensor, "m g"]
    graph: Graph
    votes: Float[Tensor, "flat flat"] | None
    clusters: Sequence[tuple[Clusters, BoardPosterior | None]]
    boards: Sequence[BoardCells] = ()
    alone: Prediction | None = None
    sides: Sides | None = None
    neighbours: Neighbours | None = None
    matches: Matches | None = None
    held: Held | None = None
    unit: Float[Tensor, "n"] | None = None
    seen: Float[Tensor, "n turns h"] | None = None


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
        self.in_space = config.votes and not config.on_board
        opinions = 1 + (len(POWERS) + 2 * len(THRESHOLDS) if config.votes else 0)
        if self.in_space:
            opinions = OPINIONS
        self.pose_embedding = nn.Sequential(
            nn.Linear(opinions * self.space.width, config.pose_hidden),
            nn.GELU(),
            nn.Linear(config.pose_hidden, config.pose_width),
        )
        evidence = config.edge_slots * CHANNELS
        cluster_width = len(THRESHOLDS) * (1 + 2 * self.space.translation_width)  # sizes, and reach along each axis
        # Settings refuse `posed` with any other encoder.
        self.standing = PosedFeatures(cast(PointEncoder, self.encoder)) if config.posed else None
        features = self.encoder.width // config.nodes_each
        node_width = features + config.pose_width + config.time_width
        node_width += (self.standing.width if self.standing else 0) + (BOARD_WIDTH if config.board else 0)
        node_width += (evidence if config.pairwise else 0) + (cluster_width if config.votes else 0)
        node_width += NUMBERS + 1 if self.in_space else 0
        self.join = nn.Sequential(
            nn.Linear(node_width, config.join_hidden), nn.GELU(), nn.Linear(config.join_hidden, config.width)
        )
        self.stack = STACKS[config.stack](config, evidence if config.edge_features else None)
        if config.head == "cells":
            self.cells = CellEmbedding(config.place_width, config.width)
            self.alone = CellScores(features, config.place_width, hidden=256)
            self.scores = CellScores(config.width, config.place_width)
            self.sides = SideDescriptors(features) if config.side_heads else None
        elif config.head == "rotations":
            assert self.standing is not None
            self.rotations = RotationScores(self.standing.vectors, self.standing.width + EXTENTS, config.width)
            self.first_guess = nn.Linear(self.space.width, config.width)
        else:
            self.head = nn.Sequential(nn.Linear(config.width, 32), nn.GELU(), nn.Linear(32, self.space.width))
            self.axes = Axes(self.standing.vectors, config.width) if self.standing else None
        self.trust = nn.Linear(config.width, opinions if self.in_space else 2 * opinions) if config.votes else None
        self.verdicts = Verdicts(config.width) if config.verdicts else None
        if self.in_space:  # at first an opinion is trusted as far as matches support it, and nothing is added to it
            self.support = nn.Parameter(torch.tensor(8.0))
            nn.init.zeros_(cast(nn.Linear, self.head[-1]).weight)
            nn.init.zeros_(cast(nn.Linear, self.head[-1]).bias)
        self.virtual = nn.Parameter(torch.randn(config.virtual_nodes, config.width)) if config.virtual_nodes else None
        if self.trust is not None:  # at first all opinions are trusted alike
            nn.init.zeros_(self.trust.weight)
            nn.init.constant_(self.trust.bias, 0.0 if self.in_space else 0.1 if config.head == "cells" else 1.0)

    @property
    def pairwise(self) -> bool:
        return self.config.pairwise

    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Condition:
        """Encode the pieces and compare their borders; with a `generator`, for learning on random sparse graphs."""
        config, count = self.config, len(batch.puzzle)
        features = self._encoded(batch)
        nodes = [batch.board.new_empty(len(features), 0)]
        votes: Tensor | None = None
        clusters: list[tuple[Clusters, BoardPosterior | None]] = []
        matches, held = batch.matches, None
        if config.pairwise:
            assert matches is not None, "this model needs pairwise evidence: pack(..., find_matches)"
            heard = view_matches(matches) if config.nodes_each > 1 else matches
            nodes.append(best_evidence(heard, len(features), config.edge_slots))
        if config.votes and matches is not None:
            # On boards pieces keep a distance; middles of fragments may lie anywhere.
            limits = (batch.room, 0.5) if config.on_board else (None, 0.0)
            grown = grow_clusters(matches, count, *limits)
            votes = vote_matrix(matches, count) if config.on_board else None
            pieces = torch.bincount(batch.puzzle)[batch.puzzle]
            reached = [c.reach() for c in grown]
            nodes += map(seen_around, reached) if config.nodes_each > 1 else reached
            nodes += [self._for_nodes((c.sizes() / pieces)[:, None]) for c in grown]
            clusters = [
                (c, board_posterior(c, batch.room, batch.board[:, 2]) if config.on_board else None) for c in grown
            ]
        if config.board:
            nodes.append(self._for_nodes(batch.board))
        if self.standing is not None:
            nodes.append(self.standing.shape(features))
        if self.in_space:
            held = held_pieces(batch)
            nodes.append(held.pieces[:, None].float())
        told = features, torch.cat(nodes, 1), wire(config, batch, generator), votes, clusters
        if config.head == "rotations":
            return self._with_rotations(Condition(*told))
        if config.head == "regression":
            return Condition(*told, matches=matches if self.in_space else None, held=held, unit=batch.board[:, 2])
        return self._with_cells(Condition(*told), batch)

    def _with_rotations(self, condition: Condition) -> Condition:
        """What the head "rotations" asks for besides: how pieces look when turned, and what each says by itself."""
        assert self.standing is not None
        features = condition.features
        shape = torch.cat([self.standing.shape(features), features[:, 3 * self.standing.vectors :]], 1)
        seen = self.rotations.seen(features, shape)
        turns, vectors = self.rotations(seen)
        return replace(condition, seen=seen, alone=Prediction(vectors, turns=turns))

    def _with_cells(self, condition: Condition, batch: PuzzleBatch) -> Condition:
        """What the head "cells" asks for besides."""
        boards, alone = self._alone(condition.features, batch)
        if self.sides is None:
            return replace(condition, boards=boards, alone=alone)
        sides = self.sides(batch.content, condition.features)
        neighbours = likely_neighbours(sides, condition.graph)
        return replace(condition, boards=boards, alone=alone, sides=sides, neighbours=neighbours)

    def alone_logits(self, batch: PuzzleBatch) -> Logits:
        """What each piece shows by itself, with the head "cells": no other piece is looked at."""
        logits = self._alone(self._encoded(batch), batch)[1].logits
        assert logits is not None, "so large a board has no distribution to be kept"
        return logits

    def _alone(self, features: Float[Tensor, "m f"], batch: PuzzleBatch) -> tuple[list[BoardCells], Prediction]:
        lattices = [board for board in batch.boards if board is not None]
        assert len(lattices) == len(batch.boards) > 0, "every puzzle of the batch needs a board"
        boards = self.cells.boards(lattices, batch.puzzle)
        return boards, self._scored(self.alone, features.unflatten(0, (-1, TURNS))[:, :, None], boards)

    def _encoded(self, batch: PuzzleBatch) -> Float[Tensor, "m f"]:
        """The features of all nodes; those of large puzzles in blocks, if nothing is learnt from them."""
        at_once = len(batch.content) if torch.is_grad_enabled() else RUN.encoded
        known = () if batch.frozen is None else (batch.frozen,)
        blocks = zip(*(part.split(at_once) for part in (batch.content, *known)), strict=True)
        features = torch.cat([self.encoder(*block).flatten(1) for block in blocks])
        return features.view(self.config.nodes_each * len(features), -1).repeat(batch.copies, 1)

    def _for_nodes(self, values: Float[Tensor, "n *f"]) -> Float[Tensor, "m *f"]:
        """What is known of a piece, told to each of its nodes."""
        return values.repeat_interleave(self.config.nodes_each, 0)

    def predict(
        self, noisy: Samples, time: Times, condition: Condition, before: Prediction | None = None
    ) -> Prediction:
        samples, cells = noisy.shape[1], self.config.head == "cells"
        said = self._said_in_space(noisy, time, condition)
        opinions = self._opinions(noisy, time, condition) if said is None else self._vectors(said)
        known = condition.features[:, None].expand(-1, samples, -1)
        if self.standing is not None:
            rotation = self.space.to_poses(noisy.flatten(0, 1)).rotation.unflatten(0, noisy.shape[:2])
            known = self.standing.turned(known, rotation)
        seen = seen_from_views(opinions) if cells else opinions[:, None]
        parts = [
            known,
            condition.surroundings[:, None].expand(-1, samples, -1),
            self.pose_embedding(seen.flatten(3)).flatten(0, 1),
            self._for_nodes(time_embedding(time / self.config.times, self.config.time_width)),
        ]
        if said is not None:
            parts.append(said.numbers)
        joined = self.join(torch.cat(parts, -1))
        if cells:
            assert condition.alone is not None
            joined = joined + self.cells.first_guess(condition.alone.told)
            if before is not None:
                joined = joined + self.cells.before(before.told)
        elif condition.alone is not None:
            joined = joined + self.first_guess(condition.alone.vectors)
        nodes = condition.graph.spread(joined, self.virtual)
        nodes = condition.graph.gather(self.stack(nodes, condition.graph, condition.neighbours))
        if cells:
            return self._scored(self.scores, nodes.unflatten(0, (-1, TURNS)), condition.boards, seen)
        if condition.seen is not None:
            turns, vectors = self.rotations(condition.seen, nodes)
            return Prediction(vectors, turns=turns)
        predicted = self.head(nodes)
        if said is not None and self.trust is not None:
            trust = self.trust(nodes).float() + self.support * said.support
            mixed = (trust.softmax(-1)[..., None] * opinions).sum(2)
            verdict = None
            if self.verdicts is not None and condition.matches is not None and condition.unit is not None:
                verdict = self.verdicts(nodes, condition.matches, said, condition.unit)
            return Prediction(mixed + predicted, trust=trust, opinions=said, verdict=verdict)
        if self.axes is not None:
            predicted = self._turned_on(predicted, self.axes(nodes, known), rotation)
        return Prediction(predicted if self.trust is None else predicted + self._mixture(self.trust(nodes), opinions))

    def _scored(
        self,
        scores: CellScores,
        views: Float[Tensor, "n 4 k w"],
        boards: Sequence[BoardCells],
        seen: Float[Tensor, "n 4 k o 4"] | None = None,
    ) -> Prediction:
        """What views say of all cells, and the opinions with them, if any are trusted; large boards in blocks."""
        vectors, told, logits = [], [], None
        for rows, cells in blocks(boards, len(views), views.shape[2], RUN.scored):
            opinions = None
            if self.trust is not None and seen is not None:
                opinions = opinion_logits(self.trust(views[rows]), seen[rows], cells)
            logits = scores(views[rows], cells, opinions)
            vectors.append(expected(logits, cells))
            told.append(self.cells.told(logits, cells).flatten(0, 1))
        return Prediction(torch.cat(vectors), logits if len(vectors) == 1 else None, torch.cat(told))

    def _turned_on(self, raw: Samples, axes: Float[Tensor, "n k 3 3"], stands: Float[Tensor, "n k 3 3"]) -> Samples:
        """What is said of pieces as they stand, from how they lie: a rotation by the head and one by their vectors."""
        said = self.space.to_poses(raw.float().flatten(0, 1))
        rotation = (said.rotation + axes.flatten(0, 1)) @ stands.flatten(0, 1)
        return self.space.to_vector(Poses(rotation, said.translation)).view_as(raw)

    @torch.no_grad()
    def _said_in_space(self, noisy: Samples, time: Times, condition: Condition) -> Opinions | None:
        """What is said about each clean pose in space, if matches are heard there."""
        if condition.held is None or condition.matches is None or condition.unit is None:
            return None
        poses = self.space.to_poses(noisy.float().flatten(0, 1))
        rotation, place = (part.unflatten(0, noisy.shape[:2]) for part in (poses.rotation, poses.translation))
        alpha_bar = self.schedule.alpha_bar.to(time.device)[time]
        clusters = [one for one, _ in condition.clusters]
        with torch.autocast(noisy.device.type, enabled=False):
            told = alpha_bar, self.space.turn_variance(alpha_bar), SPAN, condition.matches, clusters, condition.held
            return spatial_opinions(rotation, place, *told, condition.unit)

    def _vectors(self, said: Opinions) -> Float[Tensor, "n k o p"]:
        """Opinions as states."""
        poses = Poses(said.rotation.flatten(0, 2), said.place.flatten(0, 2))
        return self.space.to_vector(poses).unflatten(0, said.place.shape[:3])

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
        estimates = torch.cat(linear, 2).clamp(-RUN.farthest, RUN.farthest) * scale[..., None, None]
        return torch.cat([estimates, *decided], 2)

    def _mixture(self, trust: Float[Tensor, "n k two_o"], opinions: Float[Tensor, "n k o p"]) -> Samples:
        """The opinions mixed by how far each is trusted in translation and in rotation."""
        trust = trust.unflatten(-1, (2, -1)) / opinions.shape[2]
        split = self.space.translation_width
        translation = (trust[:, :, 0, :, None] * opinions[..., :split]).sum(2)
        rotation = (trust[:, :, 1, :, None] * opinions[..., split:]).sum(2)
        return torch.cat([translation, rotation], -1)


class PosedFeatures(nn.Module):
    """Pieces seen as they stand in a noisy pose, beside what they are like however they are turned.

    What turns with a piece is used as such, instead of being learnt for every rotation anew.
    """

    def __init__(self, encoder: PointEncoder) -> None:
        super().__init__()
        self.vectors, self.turned = encoder.vectors, encoder.turned
        self.invariants = Invariants(encoder.vectors)

    @property
    def width(self) -> int:
        """Numbers that `shape` gives for a piece."""
        return 3 * self.vectors

    def shape(self, features: Float[Tensor, "n f"]) -> Float[Tensor, "n s"]:
        """What pieces are like, however they are turned."""
        return self.invariants(leading_vectors(features, self.vectors).mT)


class Axes(nn.Module):
    """Turns pieces on from where they stand, by their own vectors.

    A row of the wanted rotation is an axis of the whole as the piece sees it: a mixture of the piece's vectors,
    by weights that the network says. If the weights don't change when the piece is turned, the answer turns with it.
    """

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


def leading_vectors(features: Float[Tensor, "*n f"], count: int) -> Float[Tensor, "*n v 3"]:
    """The vectors that lead a piece's features."""
    return features[..., : 3 * count].unflatten(-1, (count, 3))


def held_pieces(batch: PuzzleBatch) -> Held:
    """Which pieces of a batch stand at known poses."""
    if batch.locks is None:
        poses = Poses.identity(len(batch.puzzle), batch.room.shape[1])
        nobody = torch.zeros_like(batch.puzzle, dtype=torch.bool)
        return Held(nobody, poses.rotation.to(batch.board), poses.translation.to(batch.board))
    return Held(batch.locks.held, batch.locks.poses.rotation, batch.locks.poses.translation)


def best_evidence(matches: Matches, count: int, slots: int) -> Float[Tensor, "n s"]:
    """For every piece and slot the best evidence of each channel: does this side have a match at all?"""
    best = matches.evidence.new_zeros(count * slots, matches.evidence.shape[-1])
    row = (matches.first * slots + matches.slot)[:, None].expand_as(matches.evidence)
    return best.scatter_reduce(0, row, matches.evidence, "amax").view(count, -1)


def view_matches(matches: Matches) -> Matches:
    """Matches of pieces as matches of their views, which touch if they are turned so; the slot is the direction.

    View k has side s where side s + k is of the piece as it lies.
    """
    own, other = (side[:, None] for side in (matches.slot // TURNS, matches.slot % TURNS))
    turn = torch.arange(TURNS, device=own.device)
    direction = (own + turn) % TURNS
    facing = (direction + TURNS // 2 - other) % TURNS
    first, second = TURNS * matches.first[:, None] + turn, TURNS * matches.second[:, None] + facing
    every = torch.arange(len(matches), device=own.device).repeat_interleave(TURNS)
    return replace(matches[every], first=first.flatten(), second=second.flatten(), slot=direction.flatten())


def seen_around(reach: Float[Tensor, "n 4"]) -> Float[Tensor, "m 4"]:
    """What lies beyond a piece's right, lower, left and upper side, as each of its views sees it."""
    return torch.stack([reach.roll(turn, 1) for turn in range(TURNS)], 1).flatten(0, 1)


def time_embedding(share: Float[Tensor, "*n"], width: int) -> Float[Tensor, "*n w"]:
    """Sines and cosines of time in [0, 1] at frequencies from 1 to 1000."""
    frequency = torch.exp(torch.linspace(0, math.log(1000), width // 2, device=share.device))
    angle = share[..., None] * frequency
    return torch.cat([angle.sin(), angle.cos()], -1)


def wire(config: ModelConfig, batch: PuzzleBatch, generator: torch.Generator | None) -> Graph:
    """The graph of a batch: for learning if there is a generator, else for solving."""
    each, evidence = config.nodes_each, batch.matches if config.edge_features else None
    if evidence is not None and each > 1:
        evidence = view_matches(evidence)
    owner = batch.puzzle.repeat_interleave(each)
    large = int(torch.bincount(batch.puzzle).max()) > config.complete_up_to
    thinned = config.degree > 0 or config.dropped_edges > 0
    if not large and not (thinned and (generator is not None or config.sparse_solving)):
        return DenseGraph.of(owner, evidence, config.edge_slots, config.virtual_nodes)
    # Solving draws the same graph for the same puzzle.
    generator = generator or torch.Generator().manual_seed(len(batch.puzzle))
    top = config.top_k or (RUN.large_top if large else 0)
    if config.degree == 0 and not large:
        edges = drop_edges(complete_edges(batch.puzzle), config.dropped_edges, generator)
    else:
        edges = expander_edges(batch.puzzle, config.degree or RUN.large_degree, generator)
        if batch.matches is not None and top:
            edges = torch.cat([edges, match_edges(batch.matches, top, config.contact_slots)], 1)
    return edge_graph(lifted(edges, each), owner, evidence, config.edge_slots, config.virtual_nodes)
