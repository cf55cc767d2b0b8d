"""Named, complete configurations: each tells what differs from the defaults, which are the light model's.

The configurations themselves bring torch with them, so they are made when asked for: a list of presets comes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diffassemble.model.config import ModelConfig
    from diffassemble.training.config import Config, TrainingConfig


@dataclass(frozen=True)
class Preset:
    """In one line what it is for, and its changes to ModelConfig and TrainingConfig."""

    purpose: str
    model_changes: Mapping[str, Any] = field(default_factory=dict)
    training_changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> ModelConfig:
        """The network's configuration."""
        from diffassemble.model.config import ModelConfig

        return ModelConfig(**self.model_changes)

    @property
    def training(self) -> TrainingConfig:
        """How it is trained."""
        from diffassemble.training.config import TrainingConfig

        return TrainingConfig(**self.training_changes)

    @property
    def config(self) -> Config:
        """The complete configuration."""
        from diffassemble.training.config import Config

        return Config(self.model, training=self.training)


_PAPER_FORM = {"edge_features": False, "votes": False}
_PUBLISHED = {
    "backbone": "resnet18",
    "features": 272,
    "width": 1152,
    "layers": 4,
    "stack": "published",
    "hidden": 256,
    "board": False,
    "pose_width": 32,
}

PRESETS: dict[str, Preset] = {
    "jigsaw": Preset("one light network for all grids, with pairwise evidence; made for CPUs"),
    "jigsaw-paper-form": Preset("the paper's method, without pairwise evidence, at the same size", _PAPER_FORM),
    "jigsaw-paper": Preset(
        "the published sizes: group-equivariant ResNet18, four bare UniMP layers, Adagrad",
        _PAPER_FORM | _PUBLISHED,
        {"optimizer": "adagrad", "learning_rate": 1e-4, "decay": 0.0, "warmup": 0},
    ),
    # The paper's ablations, each one change away from the paper's form.
    "ablation-plain": Preset("the paper's form with a plain encoder", _PAPER_FORM | {"symmetry": "plain"}),
    "ablation-invariant": Preset(
        "the paper's form with an encoder blind to turns", _PAPER_FORM | {"symmetry": "invariant"}
    ),
    "ablation-no-diffusion": Preset("the paper's form in one step", _PAPER_FORM | {"times": 1}),
    "ablation-gcn": Preset("the paper's form with plain graph convolutions", _PAPER_FORM | {"layer": "gcn"}),
    "ablation-dropped-edges": Preset(
        "the paper's form with four in five edges lost at random", _PAPER_FORM | {"dropped_edges": 0.8}
    ),
}
