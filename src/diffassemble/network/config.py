"""The variants of the model, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from diffassemble.network.encoders import Backbone
from diffassemble.network.encoders.image import Symmetry


@dataclass(frozen=True)
class ModelConfig:
    """What the network is made of; the defaults are the light model with pairwise evidence."""

    backbone: Backbone = "light"
    symmetry: Symmetry = "equivariant"
    features: int = 96
    """encoder features per quarter turn, or per axis of space"""
    width: int = 192
    """width of the nodes"""
    layers: int = 6
    heads: int = 8
    layer: Literal["unimp", "gcn"] = "unimp"
    stack: Literal["transformer", "published"] = "transformer"
    """transformer: normalised residual layers with feed-forward parts; published: the paper's bare layers"""
    hidden: int = 256
    """width between the layers of the published stack"""
    edge_features: bool = True
    """border evidence as edge features; off in the paper's form"""
    edge_model: str = ""
    """learned edge compatibility (bundled name or folder) as part of the evidence; empty: border gradients alone"""
    votes: bool = True
    """the matches' votes on the noisy poses; off in the paper's form"""
    board: bool = True
    """tell the nodes the board's shape, so that one model serves all grids"""
    join_hidden: int = 192
    """width inside the network that joins features, pose and time into a node"""
    pose_hidden: int = 64
    """width inside the pose embedding"""
    pose_width: int = 64
    time_width: int = 32
    times: int = 300
    """diffusion times T; 1 is the variant without diffusion"""
    space: Literal["cos_sin", "so3", "six_d", "quaternion"] = "cos_sin"
    """the form of poses that is noised and predicted"""
    posed: bool = False
    """show each piece as it stands in its noisy pose and ask how to turn it on; needs features that turn freely"""
    dropped_edges: float = 0.0
    """share of edges lost at random while learning"""
    degree: float = 0.0
    """neighbours of a piece in random expanders, as a share of all others up to 1 or as a number; 0: all others"""
    top_k: int = 0
    """edges beside the expander's: so many of the most probable matches of each side"""
    virtual_nodes: int = 0
    """nodes with learned embeddings that hear all pieces of a puzzle and are heard by them"""
    sparse_solving: bool = False
    """solve on graphs as sparse as those of learning; otherwise on complete ones"""
    complete_up_to: int = 600
    """pieces of a puzzle above which graphs are always sparse: matches, expander and virtual nodes"""

    @property
    def pairwise(self) -> bool:
        """Whether any pairwise evidence is used."""
        return self.edge_features or self.votes
