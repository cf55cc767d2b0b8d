"""The variants of the model, as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from annotated_types import Interval, MultipleOf

from diffassemble.core.board import SIDES
from diffassemble.core.limits import LIMITS, memory_budget
from diffassemble.core.settings import Depth, Fraction, Natural, Settings, Times, Weight, Width
from diffassemble.network.encoders import Backbone, OutlineBackbone
from diffassemble.network.encoders.image import ImageBackbone, Symmetry
from diffassemble.network.encoders.points import PlainBackbone, VectorBackbone


@dataclass(frozen=True)
class ModelConfig(Settings):
    """What the network is made of; the defaults are the light model with pairwise evidence."""

    backbone: Backbone = "light"
    symmetry: Symmetry = "equivariant"
    features: Width = 96
    """encoder features per quarter turn, or per axis of space"""
    width: Width = 192
    """width of the nodes"""
    layers: Depth = 6
    heads: Width = 8
    layer: Literal["unimp", "gcn"] = "unimp"
    stack: Literal["transformer", "published"] = "transformer"
    """transformer: normalised residual layers with feed-forward parts; published: the paper's bare layers"""
    hidden: Width = 256
    """width between the layers of the published stack"""
    head: Literal["regression", "cells", "rotations"] = "regression"
    """regression: poses themselves, as in the paper; cells: a distribution over the cells and turns of the board;
    rotations: one over rotations in space, each with a place"""
    place_width: Width = 128
    """numbers by which the head "cells" knows a cell"""
    side_heads: bool = False
    """attention heads that compare pixels along the sides of pieces; with the head "cells\""""
    edge_features: bool = True
    """border evidence as edge features; off in the paper's form"""
    edge_model: str = ""
    """learned edge compatibility (bundled name or folder) as part of the evidence; empty: border gradients alone"""
    contact_slots: Width = SIDES**2
    """kinds of contact in `Matches.slot`: a side of one piece beside a side of the other"""
    votes: bool = True
    """the matches' votes on the noisy poses; off in the paper's form"""
    verdicts: bool = False
    """log odds of every match given all others, off boards"""
    board: bool = True
    """add the board's shape to the nodes, so that one model serves all grids"""
    join_hidden: Width = 192
    """width inside the network that joins features, pose and time into a node"""
    pose_hidden: Width = 64
    """width inside the pose embedding"""
    pose_width: Width = 64
    time_width: Annotated[int, Interval(ge=2, le=LIMITS.network_width), MultipleOf(2)] = 32
    times: Times = 300
    """diffusion times T; 1 is the variant without diffusion"""
    space: Literal["cos_sin", "plane", "so3", "six_d", "quaternion"] = "cos_sin"
    """the form of poses that is noised and predicted"""
    posed: bool = False
    """turn the features into the noisy pose and predict the remaining rotation; needs features that turn freely"""
    dropped_edges: Fraction = 0.0
    """share of edges lost at random in training"""
    degree: Weight = 0.0
    """neighbours of a piece in random expanders, as a share of all others up to 1 or as a number; 0: all others"""
    top_k: Annotated[int, Interval(ge=0, le=LIMITS.network_width)] = 0
    """edges beside the expander's: so many of the most probable matches of each side"""
    virtual_nodes: Annotated[int, Interval(ge=0, le=LIMITS.network_width)] = 0
    """nodes with learned embeddings that exchange messages with all pieces of a puzzle"""
    sparse_solving: bool = False
    """solve on graphs as sparse as those of training; otherwise on complete ones"""
    complete_up_to: Natural = 600
    """pieces of a puzzle above which graphs are always sparse: matches, expander and virtual nodes"""

    @property
    def pairwise(self) -> bool:
        """Whether any pairwise evidence is used."""
        return self.edge_features or self.votes

    @property
    def nodes_each(self) -> int:
        """Nodes of a piece: one, or its four views where every turn of it is scored."""
        return SIDES if self.head == "cells" else 1

    @property
    def edge_slots(self) -> int:
        """Kinds of contact between two nodes; of two views that touch, only the direction varies."""
        return SIDES if self.head == "cells" else self.contact_slots

    @property
    def on_board(self) -> bool:
        """Whether poses are those of a board: at quarter turns, on the cells of a lattice."""
        return self.space == "cos_sin"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """Settings that do not work together, or that would have no effect."""
        pictures, outlines = (self.backbone in get_args(kind) for kind in (ImageBackbone, OutlineBackbone))
        spaces = ["cos_sin"] if pictures else ["plane"] if outlines else ["so3", "six_d", "quaternion"]
        fitting = get_args(PlainBackbone if self.symmetry == "plain" else VectorBackbone)
        turning = self.symmetry == "equivariant" and not (pictures or outlines)
        widths = {self.width} | ({self.hidden} if self.stack == "published" and self.layers > 1 else set())
        indivisible = self.layer == "unimp" and any(width % self.heads for width in widths)
        # Four products of each layer's width with itself, and a feed-forward part four times as wide; in float32.
        wide = max(self.width, self.hidden if self.stack == "published" else 0)
        too_large = 4 * 12 * self.layers * wide**2 > memory_budget()
        not_plain = not pictures and (self.backbone in get_args(PlainBackbone)) != (self.symmetry == "plain")
        unequal = self.backbone == "resnet18" and self.symmetry == "plain"
        cells, rotations = self.head == "cells", self.head == "rotations"
        fixed = self.posed and (not turning or self.space == "quaternion")
        unturned = rotations and (self.space != "so3" or not self.posed or self.votes)
        sparse = self.degree or self.dropped_edges
        unviewed = self.side_heads and not cells
        unvoted = self.votes and self.space == "quaternion"
        unjudged = self.verdicts and (not self.votes or self.on_board)
        uneven = 1 < self.degree != int(self.degree)
        rules: tuple[tuple[object, str, str], ...] = (
            (self.space not in spaces, "space", f"{' or '.join(spaces)} with the backbone {self.backbone}"),
            (outlines and self.symmetry != "invariant", "symmetry", "invariant with the backbone outline"),
            (unequal, "symmetry", "equivariant or invariant with resnet18, whose convolutions are; or use light"),
            (not_plain, "backbone", f"{' or '.join(fitting)} to be {self.symmetry}"),
            (fixed, "posed", "off: it needs features that turn freely, of equivariant encoders in so3 or six_d"),
            (indivisible, "heads", f"a divisor of the width {' and '.join(map(str, sorted(widths)))}"),
            (cells and self.space != "cos_sin", "head", "regression or rotations where there is no board"),
            (unturned, "head", "regression but in the space so3, posed and without votes"),
            (cells and self.stack == "published", "stack", "transformer with the head cells"),
            (unviewed, "side_heads", "off without the head cells, whose nodes are views of pieces"),
            (unvoted, "votes", "off with quaternions, whose mean is no mean of poses"),
            (unjudged, "verdicts", "off on boards and without votes"),
            (self.layer == "gcn" and self.edge_features, "edge_features", "off with gcn, which does not use them"),
            (too_large, "layers", f"fewer with a width of {wide}: so many numbers do not fit into memory"),
            (uneven, "degree", "0 (all others), a share up to 1, or a whole number from 2 on"),
            (self.degree and self.dropped_edges, "degree", "0 with dropped_edges: both make graphs sparse"),
            (self.top_k and not (self.degree and self.pairwise), "top_k", "0 without a degree or without matches"),
            (self.sparse_solving and not sparse, "sparse_solving", "off without a degree or dropped_edges"),
        )
        yield from ((name, wanted) for broken, name, wanted in rules if broken)
