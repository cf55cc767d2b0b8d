"""Named, complete configurations: each tells what differs from the defaults of its task.

The configurations themselves bring torch with them, so they are made when asked for: a list of presets comes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from diffassemble.extensions import Registry

if TYPE_CHECKING:
    from diffassemble.training.config import Config

USED = "models that solvers use"
PAPER = "the paper's own form and sizes"


@dataclass(frozen=True)
class Preset:
    """Its purpose in one line, changes to the defaults of its task, which of TASKS that is, and its group in help."""

    purpose: str
    model_changes: Mapping[str, Any] = field(default_factory=dict)
    training_changes: Mapping[str, Any] = field(default_factory=dict)
    data_changes: Mapping[str, Any] = field(default_factory=dict)
    task: str = "jigsaw"
    group: str = USED

    @property
    def config(self) -> Config:
        """The complete configuration."""
        from diffassemble.training.tasks import TASKS

        run = TASKS[self.task].defaults
        model, data = replace(run.model, **self.model_changes), replace(run.data, **self.data_changes)
        return replace(run, model=model, data=data, training=replace(run.training, **self.training_changes))

    def variant(
        self,
        purpose: str,
        group: str,
        model: Mapping[str, Any],
        training: Mapping[str, Any] = MappingProxyType({}),
        data: Mapping[str, Any] = MappingProxyType({}),
    ) -> Preset:
        """The same with further changes."""
        changes = {**self.model_changes, **model}, {**self.training_changes, **training}, {**self.data_changes, **data}
        return Preset(purpose, *changes, self.task, group)


_PAPER_FORM = {"edge_features": False, "votes": False}
# Without evidence all must be learnt from content: errors at strong noise count in full.
_PAPER_TRAINING = {"weigh_noise": False, "learning_rate": 8e-4}
_CELLS = {
    **{"head": "cells", "backbone": "efficientnet", "side_heads": True, "features": 256, "width": 128, "heads": 4},
    **{"complete_up_to": 300},
}
_CELLS_TRAINING = {
    **{"pieces": 432, "noises": 1, "learning_rate": 1.5e-3, "weight_decay": 0.02, "warmup": 100, "average": 0.998},
    **{"translation_weight": 0.1, "rotation_weight": 0.05, "weigh_noise": False, "noise_share": 0.3},
}
_CELLS_DATA = {"grids": (3, 14), "favourite_share": 0.5, "whole_share": 0.5, "erode_share": 0.0, "smallest_crop": 0.85}
_PUBLISHED = {
    **{"backbone": "resnet18", "features": 272, "width": 1152, "layers": 4, "stack": "published", "hidden": 256},
    **{"board": False, "join_hidden": 128, "pose_hidden": 16, "pose_width": 32},
}

_PUBLISHED_TRAINING = _PAPER_TRAINING | {"optimizer": "adagrad", "learning_rate": 1e-4, "decay": 0.0, "warmup": 0}
_FRAGMENT_TRAINING = _PAPER_TRAINING | {"pieces": 96, "noises": 3, "translation_weight": 4.0}
# As published: the shape's distance counts tenfold, which is the default of its task.
_PUBLISHED_LOSSES = {"translation_weight": 1.0, "rotation_weight": 0.2}
# What half an hour of one core can teach: pure noise is shown often, since the first step decides most.
_FORM_TRAINING = _FRAGMENT_TRAINING | _PUBLISHED_LOSSES | {"learning_rate": 1.5e-3, "warmup": 100, "noise_share": 0.3}
_FORM_DATA = {"points": 192, "joined": 0.5, "shares": (0.5, 0.0, 0.5)}
_SMALL = {"learning_rate": 2e-3, "warmup": 100}
_CLASSIFIER = {"learning_rate": 1.5e-3, "weight_decay": 0.05, "warmup": 100, "average": 0.998}


_OWN = {
    "jigsaw": Preset(
        "one light network for all grids, with pairwise evidence; made for CPUs",
        _CELLS | {"edge_model": "edge-model"},
        _CELLS_TRAINING,
        _CELLS_DATA | {"erode_share": 0.2},
    ),
    "jigsaw-paper-form": Preset(
        "the paper's method, without pairwise evidence: X₀ as a distribution over cells",
        _PAPER_FORM | _CELLS,
        _CELLS_TRAINING,
        _CELLS_DATA,
        group=PAPER,
    ),
    "jigsaw-paper": Preset(
        "the published sizes: group-equivariant ResNet18, four bare UniMP layers, Adagrad",
        _PAPER_FORM | _PUBLISHED,
        _PUBLISHED_TRAINING,
        group=PAPER,
    ),
    "upright": Preset(
        "the classifier that tells which way up an assembled picture stands",
        training_changes=_CLASSIFIER
        | {"steps": 640, "learning_rate": 4e-4, "warmup": 40, "decay": 0.9, "average": 0.99, "clip": 2.0}
        | {"validate_every": 320, "precision": "32-true"},
        data_changes={"held_apart": 150, "variants": 8},
        task="upright",
    ),
    "edge-model": Preset(
        "learned edge compatibility: which sides continue each other, even if eroded",
        {"width": 96, "blocks": 3, "embedding": 16, "depth": 10},
        _SMALL | {"steps": 6000, "decay": 0.5, "average": 0.99, "validate_every": 1000},
        {
            **{"held_apart": 16, "grids": (6, 12), "favourite": 10, "favourite_share": 0.3, "missing": 0.3},
            **{"whole_share": 0.7, "erode": 4, "erode_share": 0.8, "smallest_crop": 0.8},
        },
        task="edge-model",
    ),
    "outlines": Preset(
        "one light network for flat pieces, which hears the matches of their outlines",
        training_changes={"steps": 1400, "validate_every": 200, "precision": "32-true"},
        task="outlines",
    ),
    "arcs": Preset("small networks that judge contacts of shards and torn paper", task="arcs"),
    "strips": Preset("the comparison of the long sides of shredded strips", task="strips"),
    # Broken objects.
    "fracture-matching": Preset(
        "small networks that find breaks, match and verify; --data.learn surface, then fits",
        training_changes=_SMALL | {"steps": 4000, "decay": 0.6, "average": 0.995},
        task="fracture-matching",
    ),
    "orientation": Preset(
        "the network that stands mended objects up",
        training_changes=_CLASSIFIER | {"steps": 6000, "learning_rate": 1e-3, "decay": 0.5, "validate_every": 500},
        data_changes={"points": 768, "stretch": 0.25, "whole_share": 0.5},
        task="orientation",
    ),
    "fragments": Preset(
        "one light network for broken objects, which hears the matches of their breaks",
        {
            **{"posed": False, "votes": True, "edge_features": True, "contact_slots": 1, "symmetry": "invariant"},
            **{"features": 32, "width": 96, "layers": 4, "heads": 4, "join_hidden": 128},
        },
        _FRAGMENT_TRAINING | {"weigh_noise": True, "chamfer_weight": 1.0, "pieces": 128},
        {"points": 256},
        task="fragments",
    ),
    # Rotations are learnt from large pieces first.
    "fragments-paper-form": Preset(
        "the paper's method for broken objects: X₀ as a distribution over rotations",
        {"head": "rotations", "posed": True},
        _FORM_TRAINING | {"noises": 1},
        _FORM_DATA | {"pieces": (2, 8), "joined": 0.7},
        task="fragments",
        group=PAPER,
    ),
    "fragments-paper": Preset(
        "the published sizes for broken objects: VN-DGCNN, four bare UniMP layers, Adagrad",
        _PUBLISHED | {"posed": False, "backbone": "vn_dgcnn_published", "features": 256, "width": 832},
        _PUBLISHED_TRAINING | _PUBLISHED_LOSSES,
        {"points": 1000},
        task="fragments",
        group=PAPER,
    ),
}

PRESETS: Mapping[str, Preset] = Registry("presets", _OWN)
