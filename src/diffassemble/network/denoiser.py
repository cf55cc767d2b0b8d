"""The network (the paper's sections 3.1, 3.2 and 3.4): piece features, noisy poses and time in; clean poses X₀ out.

In the paper's form a node is [features | noisy pose | time]; `votes` and `edge_features` add what matches imply, and
`posed` turns the features into the noisy pose. With the head "cells" a node is one of the four views of a piece, and
X₀ a distribution over the board's cells and turns.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Locks, Matches, Poses
from diffassemble.core.matches import CHANNELS
from diffassemble.core.settings import check_settings
from diffassemble.diffusion.rotations import Rotations
from diffassemble.diffusion.schedule import Schedule
from diffassemble.diffusion.spaces import SPACES, SPAN, Space
from diffassemble.extensions import Registry
from diffassemble.io.reading import read_json
from diffassemble.network import evidence, heads
from diffassemble.network import graph as graphs
from diffassemble.network.batch import BOARD_WIDTH, PuzzleBatch, moved
from diffassemble.network.config import ModelConfig
from diffassemble.network.encoders import Encoder, make_encoder
from diffassemble.network.encoders.image import TURNS
from diffassemble.network.encoders.points import EXTENTS
from diffassemble.network.evidence import BoardPosterior, Clusters, Estimates
from diffassemble.network.heads import BoardCells, CellScores, Logits, RotationLogits
from diffassemble.network.layers import STACKS, Neighbours, SideDescriptors, Sides, likely_neighbours
from diffassemble.network.pretrained import CONFIG, Pretrained, find_model


@dataclass(frozen=True)
class RunConfig:
    """How a network is run, whatever it is made of."""

    farthest: float = 4.0
    """estimates are cut off beyond so many units of the whole: matches that contradict each other push pieces away"""
    encoded: int = 2048
    """pieces that are encoded at once"""
    scored: int = 2**22
    """cells × pieces × samples that are scored at once; estimates take a dozen times as much room"""
    large_degree: float = 16.0
    """neighbours in the expander of a large graph, where the configuration sets none"""
    large_top: int = 8
    """matches of a side that are edges of a large graph, where the configuration sets none"""


RUN = RunConfig()
PARTS: Mapping[str, Any] = Registry("parts", {})
"""parts that the program's own models do not have"""

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
        """Predicted X₀ of k noisy versions of the same n pieces; `before` is the prediction of the step before."""

    def forward(self, noisy: Samples, time: Times, condition: Any) -> Samples:
        """The vectors of a prediction alone."""
        return self.predict(noisy, time, condition).vectors


@dataclass(frozen=True)
class Prediction:
    """X₀ in the raw numbers that `space.clean` understands, and the distribution that it is the mean of, if any.

    `summary` describes the distribution to the views at the next step; of large boards it alone is kept. Off boards,
    `trust` weighs each of the `estimates`, and `verdict` are log odds of each match; `turns` are the logits of the head
    "rotations".
    """

    vectors: Samples
    logits: Logits | None = None
    summary: Float[Tensor, "m k q"] | None = None
    trust: Float[Tensor, "n k o"] | None = None
    estimates: Estimates | None = None
    verdict: Float[Tensor, "e k"] | None = None
    turns: RotationLogits | None = None


@dataclass(frozen=True)
class Condition:
    """All that stays the same while poses are denoised: features of the nodes, graph, and matches that vote.

    `unit` is the length by which places are judged. Where nodes are views, `boards` are the cells to choose from,
    `alone` is the prediction of each piece alone, and `sides` are descriptors of its sides, if these are compared.
    With the head "rotations", `seen` are features of the pieces in all rotations.
    """

    features: Float[Tensor, "m f"]
    surroundings: Float[Tensor, "m g"]
    graph: graphs.Graph
    unit: Float[Tensor, "n"]
    matches: Matches | None = None
    clusters: Sequence[tuple[Clusters, BoardPosterior | None]] = ()
    locks: Locks | None = None
    boards: Sequence[BoardCells] = ()
    alone: Prediction | None = None
    sides: Sides | None = None
    neighbours: Neighbours | None = None
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
        # On boards every cluster gives two estimates, by its mean and by its posterior.
        estimates = 1 + (evidence.ESTIMATES - 1 + (len(evidence.THRESHOLDS) if config.on_board else 0)) * config.votes
        self.pose_embedding = nn.Sequential(
            nn.Linear(estimates * self.space.width, config.pose_hidden),
            nn.GELU(),
            nn.Linear(config.pose_hidden, config.pose_width),
        )
        edge_width = config.edge_slots * CHANNELS
        # Sizes of the clusters, and their reach along each axis.
        cluster_width = len(evidence.THRESHOLDS) * (1 + 2 * self.space.translation_width)
        self.standing = PARTS["posed"](self.encoder) if config.posed else None
        features = self.encoder.width // config.nodes_each
        node_width = features + config.pose_width + config.time_width
        node_width += (self.standing.width if self.standing else 0) + (BOARD_WIDTH if config.board else 0)
        node_width += (edge_width if config.pairwise else 0) + (cluster_width if config.votes else 0)
        node_width += evidence.NUMBERS + 1 if self.in_space else 0
        self.join = nn.Sequential(
            nn.Linear(node_width, config.join_hidden), nn.GELU(), nn.Linear(config.join_hidden, config.width)
        )
        self.stack = STACKS[config.stack](config, edge_width if config.edge_features else None)
        if config.head == "cells":
            self.cells = heads.CellEmbedding(config.place_width, config.width)
            self.alone = CellScores(features, config.place_width, hidden=256)
            self.scores = CellScores(config.width, config.place_width)
            self.sides = SideDescriptors(features) if config.side_heads else None
        elif config.head == "rotations":
            assert self.standing is not None
            self.rotations = PARTS["rotations"](self.standing.vectors, self.standing.width + EXTENTS, config.width)
            self.first_guess = nn.Linear(self.space.width, config.width)
        else:
            self.head = nn.Sequential(nn.Linear(config.width, 32), nn.GELU(), nn.Linear(32, self.space.width))
            self.axes = PARTS["axes"](self.standing.vectors, config.width) if self.standing else None
        self.trust = nn.Linear(config.width, estimates if self.in_space else 2 * estimates) if config.votes else None
        self.verdicts = heads.MatchScores(config.width) if config.verdicts else None
        if self.in_space:  # at first estimates are trusted by the matches' support, and nothing is added to them
            self.support = nn.Parameter(torch.tensor(8.0))
            nn.init.zeros_(cast(nn.Linear, self.head[-1]).weight)
            nn.init.zeros_(cast(nn.Linear, self.head[-1]).bias)
        self.virtual = nn.Parameter(torch.randn(config.virtual_nodes, config.width)) if config.virtual_nodes else None
        if self.trust is not None:  # at first all estimates are trusted alike
            nn.init.zeros_(self.trust.weight)
            nn.init.constant_(self.trust.bias, 0.0 if self.in_space else 0.1 if config.head == "cells" else 1.0)

    @property
    def pairwise(self) -> bool:
        return self.config.pairwise

    def condition(self, batch: PuzzleBatch, generator: torch.Generator | None = None) -> Condition:
        """Encode the pieces and read the matches; with a `generator`, for training on random sparse graphs."""
        config, count, matches = self.config, len(batch.puzzle), batch.matches
        features = self._encoded(batch)
        nodes, clusters = [batch.board.new_empty(len(features), 0)], []
        if config.pairwise:
            assert matches is not None, "this model needs pairwise evidence: pack(..., find_matches)"
            of_nodes = view_matches(matches) if config.nodes_each > 1 else matches
            # For every node and slot the best evidence of each channel: does this side have a match at all?
            best = matches.evidence.new_zeros(len(features) * config.edge_slots, matches.evidence.shape[-1])
            row = (of_nodes.first * config.edge_slots + of_nodes.slot)[:, None].expand_as(of_nodes.evidence)
            nodes.append(best.scatter_reduce(0, row, of_nodes.evidence, "amax").view(len(features), -1))
        if config.votes and matches is not None:
            # On boards pieces keep a distance; middles of fragments may be anywhere.
            limits = (batch.room, 0.5) if config.on_board else (None, 0.0)
            grown = evidence.grow_clusters(matches, count, *limits)
            pieces = torch.bincount(batch.puzzle)[batch.puzzle]
            # Beyond a piece's right, lower, left and upper side, in the frame of each of its nodes.
            turns, reaches = range(config.nodes_each), (c.reach() for c in grown)
            nodes += [torch.stack([reach.roll(by, 1) for by in turns], 1).flatten(0, 1) for reach in reaches]
            nodes += [self._for_nodes((c.sizes() / pieces)[:, None]) for c in grown]
            surroundings = batch.room, batch.board[:, 2]
            clusters = [(c, BoardPosterior.of(c, *surroundings) if config.on_board else None) for c in grown]
        if config.board:
            nodes.append(self._for_nodes(batch.board))
        if self.standing is not None:
            nodes.append(self.standing.shape(features))
        locks = None
        if self.in_space:
            none = torch.zeros_like(batch.puzzle, dtype=torch.bool)
            locks = batch.locks or Locks(none, moved(Poses.identity(count, batch.room.shape[1]), none.device))
            nodes.append(locks.held[:, None].float())
        graph, voting = wire(config, batch, generator), matches if config.votes else None
        condition = Condition(features, torch.cat(nodes, 1), graph, batch.board[:, 2], voting, clusters, locks)
        if self.standing is not None and config.head == "rotations":
            shape = torch.cat([self.standing.shape(features), features[:, 3 * self.standing.vectors :]], 1)
            seen = self.rotations.seen(features, shape)
            turns, vectors = self.rotations(seen)
            return replace(condition, seen=seen, alone=Prediction(vectors, turns=turns))
        return condition if config.head == "regression" else self._with_cells(condition, batch)

    def _with_cells(self, condition: Condition, batch: PuzzleBatch) -> Condition:
        """With what the head "cells" needs."""
        boards, alone = self._alone(condition.features, batch)
        condition = replace(condition, boards=boards, alone=alone)
        if self.sides is None:
            return condition
        sides = self.sides(batch.content, condition.features)
        return replace(condition, sides=sides, neighbours=likely_neighbours(sides, condition.graph))

    def alone_logits(self, batch: PuzzleBatch) -> Logits:
        """The prediction of each piece alone, with the head "cells"."""
        logits = self._alone(self._encoded(batch), batch)[1].logits
        assert logits is not None, "so large a board has no distribution to be kept"
        return logits

    def _alone(self, features: Float[Tensor, "m f"], batch: PuzzleBatch) -> tuple[list[BoardCells], Prediction]:
        lattices = [board for board in batch.boards if board is not None]
        assert len(lattices) == len(batch.boards) > 0, "every puzzle of the batch needs a board"
        boards = self.cells.boards(lattices, batch.puzzle)
        return boards, self._scored(self.alone, features.unflatten(0, (-1, TURNS))[:, :, None], boards)

    def _encoded(self, batch: PuzzleBatch) -> Float[Tensor, "m f"]:
        """The features of all nodes; without gradients those of large puzzles in blocks."""
        at_once = len(batch.content) if torch.is_grad_enabled() else RUN.encoded
        known = () if batch.frozen is None else (batch.frozen,)
        parts = zip(*(part.split(at_once) for part in (batch.content, *known)), strict=True)
        features = torch.cat([self.encoder(*part).flatten(1) for part in parts])
        return features.view(self.config.nodes_each * len(features), -1).repeat(batch.copies, 1)

    def _for_nodes(self, values: Float[Tensor, "n *f"]) -> Float[Tensor, "m *f"]:
        """Values of pieces for each of their nodes."""
        return values.repeat_interleave(self.config.nodes_each, 0)

    def predict(
        self, noisy: Samples, time: Times, condition: Condition, before: Prediction | None = None
    ) -> Prediction:
        # 1. Estimates of the clean poses.
        samples, cells = noisy.shape[1], self.config.head == "cells"
        vectors, estimates = self._estimates(noisy, time, condition)
        seen = heads.seen_from_views(vectors) if cells else vectors[:, None]
        # 2. Nodes: features, surroundings, poses, time.
        known = condition.features[:, None].expand(-1, samples, -1)
        if self.standing is not None:
            rotation = self.space.to_poses(noisy.flatten(0, 1)).rotation.unflatten(0, noisy.shape[:2])
            known = self.standing.turned(known, rotation)
        # Time as waves of frequencies from 1 to 1000.
        frequency = torch.exp(torch.linspace(0, math.log(1000), self.config.time_width // 2, device=time.device))
        angle = (time / self.config.times)[..., None] * frequency
        parts = [
            known,
            condition.surroundings[:, None].expand(-1, samples, -1),
            self.pose_embedding(seen.flatten(3)).flatten(0, 1),
            self._for_nodes(torch.cat([angle.sin(), angle.cos()], -1)),
        ]
        joined = self.join(torch.cat(parts if estimates is None else [*parts, estimates.numbers], -1))
        if cells:
            assert condition.alone is not None
            joined = joined + self.cells.first_guess(condition.alone.summary)
            if before is not None:
                joined = joined + self.cells.before(before.summary)
        elif condition.alone is not None:
            joined = joined + self.first_guess(condition.alone.vectors)
        # 3. Message passing.
        nodes = condition.graph.spread(joined, self.virtual)
        nodes = condition.graph.gather(self.stack(nodes, condition.graph, condition.neighbours))
        # 4. The head.
        if cells:
            return self._scored(self.scores, nodes.unflatten(0, (-1, TURNS)), condition.boards, seen)
        if condition.seen is not None:
            turns, mean = self.rotations(condition.seen, nodes)
            return Prediction(mean, turns=turns)
        predicted = self.head(nodes)
        if estimates is not None and self.trust is not None:
            trust = self.trust(nodes).float() + self.support * estimates.support
            mixed = (trust.softmax(-1)[..., None] * vectors).sum(2)
            verdict = None
            if self.verdicts is not None and condition.matches is not None:
                verdict = self.verdicts(nodes, condition.matches, estimates, condition.unit)
            return Prediction(mixed + predicted, trust=trust, estimates=estimates, verdict=verdict)
        if self.axes is not None:
            predicted = self._turned_on(predicted, self.axes(nodes, known), rotation)
        if self.trust is None:
            return Prediction(predicted)
        # The estimates, mixed by how far each is trusted in translation and in rotation.
        shares = (self.trust(nodes).unflatten(-1, (2, -1)) / vectors.shape[2]).unbind(2)
        split = vectors.split([self.space.translation_width, self.space.width - self.space.translation_width], -1)
        mixed = [(share[..., None] * part).sum(2) for share, part in zip(shares, split, strict=True)]
        return Prediction(predicted + torch.cat(mixed, -1))

    def _scored(
        self,
        scores: CellScores,
        views: Float[Tensor, "n 4 k w"],
        boards: Sequence[BoardCells],
        seen: Float[Tensor, "n 4 k o 4"] | None = None,
    ) -> Prediction:
        """Distributions over cells and turns by views, and by trusted estimates, if there are any; in blocks."""
        vectors, summary, logits = [], [], None
        for rows, cells in heads.blocks(boards, len(views), views.shape[2], RUN.scored):
            prior = None
            if self.trust is not None and seen is not None:
                prior = heads.estimate_logits(self.trust(views[rows]), seen[rows], cells)
            logits = scores(views[rows], cells, prior)
            vectors.append(heads.expected(logits, cells))
            summary.append(self.cells.summary(logits, cells).flatten(0, 1))
        return Prediction(torch.cat(vectors), logits if len(vectors) == 1 else None, torch.cat(summary))

    def _turned_on(self, raw: Samples, axes: Float[Tensor, "n k 3 3"], noisy: Float[Tensor, "n k 3 3"]) -> Samples:
        """Clean states from rotations relative to the noisy ones: those of the head plus those of the vectors."""
        relative = self.space.to_poses(raw.float().flatten(0, 1))
        rotation = (relative.rotation + axes.flatten(0, 1)) @ noisy.flatten(0, 1)
        return self.space.to_vector(Poses(rotation, relative.translation)).view_as(raw)

    def _vectors(self, rotation: Rotations, place: evidence.Places) -> Float[Tensor, "n k o p"]:
        """Poses (n, k, o) as states."""
        poses = Poses(rotation.flatten(0, 2), place.flatten(0, 2))
        return self.space.to_vector(poses).unflatten(0, place.shape[:3])

    @torch.no_grad()
    def _estimates(
        self, noisy: Samples, time: Times, condition: Condition
    ) -> tuple[Float[Tensor, "n k o p"], Estimates | None]:
        """Estimates of each clean pose as states: the noisy pose, votes of matches, and clusters.

        On boards an estimate with noise variance v gives x₀ best as √ᾱ / (ᾱ + v) times itself; votes make v small.
        """
        if condition.matches is None:
            return noisy[:, :, None], None
        poses = self.space.to_poses(noisy.float().flatten(0, 1))
        rotation, place = (part.unflatten(0, noisy.shape[:2]) for part in (poses.rotation, poses.translation))
        alpha_bar, matches = self.schedule.alpha_bar.to(time.device)[time], condition.matches
        with torch.autocast(noisy.device.type, enabled=False):  # many rounds need all the digits
            if condition.locks is not None:
                noise = alpha_bar, self.space.turn_variance(alpha_bar), SPAN
                clusters = [one for one, _ in condition.clusters]
                found = evidence.estimates(rotation, place, *noise, matches, clusters, condition.locks, condition.unit)
                return self._vectors(found.rotation, found.place), found
            weight = matches.probability[:, None].expand(-1, noisy.shape[1])
            voted = evidence.votes(matches, rotation, place, weight, locks=None, faint=1e-9)
            linear, decided = [noisy[:, :, None], self._vectors(*voted)], []
            for one, posterior in condition.clusters:
                assert posterior is not None
                mean = one.placed(rotation, place), one.members(*posterior.mean(rotation, place, alpha_bar))
                states = [self._vectors(turned[:, :, None], moved[:, :, None]) for turned, moved in mean]
                linear.append(states[0])
                decided.append(states[1])
        scale = alpha_bar.sqrt() / (alpha_bar + 0.1 * (1 - alpha_bar))
        scaled = torch.cat(linear, 2).clamp(-RUN.farthest, RUN.farthest) * scale[..., None, None]
        return torch.cat([scaled, *decided], 2), None


NETWORKS: Mapping[str, type[PoseNetwork]] = Registry("networks", {"Denoiser": Denoiser})
"""networks that predict poses, by the kind in their configuration"""


def load_network(name: str | os.PathLike[str]) -> PoseNetwork:
    """The network of a bundled model, a folder or a hub id, of the kind that its configuration names."""
    folder = find_model(name)
    values = read_json(folder / CONFIG, "model configuration")
    kind = values.get("kind") if isinstance(values, dict) else None
    # A Denoiser reports what is wrong with the folder.
    return NETWORKS.get(kind if isinstance(kind, str) else "", Denoiser).from_pretrained(folder)


def view_matches(matches: Matches) -> Matches:
    """Matches of pieces as matches of their views, which touch if they are turned so; the slot is the direction.

    Side s of view k is side s + k of the piece as given.
    """
    own, other = (side[:, None] for side in (matches.slot // TURNS, matches.slot % TURNS))
    turn = torch.arange(TURNS, device=own.device)
    direction = (own + turn) % TURNS
    facing = (direction + TURNS // 2 - other) % TURNS
    first, second = TURNS * matches.first[:, None] + turn, TURNS * matches.second[:, None] + facing
    every = torch.arange(len(matches), device=own.device).repeat_interleave(TURNS)
    return replace(matches[every], first=first.flatten(), second=second.flatten(), slot=direction.flatten())


def wire(config: ModelConfig, batch: PuzzleBatch, generator: torch.Generator | None) -> graphs.Graph:
    """The graph of a batch: for training if there is a generator, else for solving."""
    each, features = config.nodes_each, batch.matches if config.edge_features else None
    if features is not None and each > 1:
        features = view_matches(features)
    owner = batch.puzzle.repeat_interleave(each)
    layout = owner, features, config.edge_slots, config.virtual_nodes
    large = int(torch.bincount(batch.puzzle).max()) > config.complete_up_to
    thinned = config.degree > 0 or config.dropped_edges > 0
    if not large and not (thinned and (generator is not None or config.sparse_solving)):
        return graphs.DenseGraph.of(*layout)
    # Solving draws the same graph for the same puzzle.
    generator = generator or torch.Generator().manual_seed(len(batch.puzzle))
    top = config.top_k or (RUN.large_top if large else 0)
    if config.degree == 0 and not large:
        edges = graphs.drop_edges(graphs.complete_edges(batch.puzzle), config.dropped_edges, generator)
    else:
        edges = graphs.expander_edges(batch.puzzle, config.degree or RUN.large_degree, generator)
        if batch.matches is not None and top:
            edges = torch.cat([edges, graphs.match_edges(batch.matches, top, config.contact_slots)], 1)
    return graphs.EdgeGraph.of(graphs.lifted(edges, each), *layout)
