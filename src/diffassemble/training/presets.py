"""Named, complete configurations: each states what differs from the defaults of its task.

Tasks bring torch with them, so they are imported when asked for: a list of presets comes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from diffassemble.extensions import Registry

if TYPE_CHECKING:
    from diffassemble.training.config import Config
    from diffassemble.training.loop import Task


@dataclass(frozen=True)
class Preset:
    """Its purpose in one line, changes to the defaults of its task, that task's module and class, its group in help."""

    purpose: str
    model_changes: Mapping[str, Any] = field(default_factory=dict)
    training_changes: Mapping[str, Any] = field(default_factory=dict)
    data_changes: Mapping[str, Any] = field(default_factory=dict)
    task: str = "diffassemble.training.jigsaw.JigsawTask"
    group: str = "models that solvers use"

    @property
    def learner(self) -> type[Task]:
        """The class of its task."""
        module, _, name = self.task.rpartition(".")
        return getattr(import_module(module), name)

    @property
    def config(self) -> Config:
        """The complete configuration."""
        run = self.learner.defaults
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


_CLASSIFIER = {"learning_rate": 1.5e-3, "weight_decay": 0.05, "warmup": 100, "average": 0.998}
_OWN = {
    "jigsaw": Preset(
        "one light network for all grids, with pairwise evidence; made for CPUs",
        {
            **{"head": "cells", "backbone": "efficientnet", "side_heads": True, "features": 256, "width": 128},
            **{"heads": 4, "complete_up_to": 300, "edge_model": "edge-model"},
        },
        {
            **{"pieces": 432, "noises": 1, "learning_rate": 1.5e-3, "weight_decay": 0.02, "warmup": 100},
            **{"average": 0.998, "translation_weight": 0.1, "rotation_weight": 0.05, "weigh_noise": False},
            **{"noise_share": 0.3},
        },
        {"grids": (3, 14), "favourite_share": 0.5, "whole_share": 0.5, "erode_share": 0.2, "smallest_crop": 0.85},
    ),
    "upright": Preset(
        "the classifier that finds which way up an assembled picture is",
        training_changes=_CLASSIFIER
        | {"steps": 640, "learning_rate": 4e-4, "warmup": 40, "decay": 0.9, "average": 0.99, "clip": 2.0}
        | {"validate_every": 320, "precision": "32-true"},
        data_changes={"held_apart": 150, "variants": 8},
        task="diffassemble.training.upright.UprightTask",
    ),
    "edge-model": Preset(
        "learned edge compatibility: which sides continue each other, even if eroded",
        {"width": 96, "blocks": 3, "embedding": 16, "depth": 10},
        {"learning_rate": 2e-3, "warmup": 100, "steps": 6000, "decay": 0.5, "average": 0.99, "validate_every": 1000},
        {
            **{"held_apart": 16, "grids": (6, 12), "favourite": 10, "favourite_share": 0.3, "missing": 0.3},
            **{"whole_share": 0.7, "erode": 4, "erode_share": 0.8, "smallest_crop": 0.8},
        },
        task="diffassemble.training.edge_model.EdgeModelTask",
    ),
    "outlines": Preset(
        "one light network for flat pieces, which reads the matches of their outlines",
        {"features": 16, "width": 96, "layers": 4, "heads": 4, "join_hidden": 128},
        {"steps": 1400, "validate_every": 200, "precision": "32-true"},
        task="diffassemble.training.outlines.OutlineTask",
    ),
    "arcs": Preset(
        "small networks that judge contacts of shards and torn paper", task="diffassemble.training.arcs.ArcTask"
    ),
    "strips": Preset(
        "the comparison of the long sides of shredded strips", task="diffassemble.training.strips.StripTask"
    ),
    # Broken objects.
    "fracture-matching": Preset(
        "small networks that find breaks, match and verify; --data.learn surface, then fits",
        training_changes={"learning_rate": 2e-3, "warmup": 100, "steps": 4000, "decay": 0.6, "average": 0.995},
        task="diffassemble.training.fracture_matching.FractureMatchingTask",
    ),
    "orientation": Preset(
        "the network that turns mended objects upright",
        training_changes=_CLASSIFIER | {"steps": 6000, "learning_rate": 1e-3, "decay": 0.5, "validate_every": 500},
        data_changes={"points": 768, "stretch": 0.25, "whole_share": 0.5},
        task="diffassemble.training.orientation.OrientationTask",
    ),
    "fragments": Preset(
        "one light network for broken objects, which reads the matches of their breaks",
        {"features": 32, "width": 96, "layers": 4, "heads": 4, "join_hidden": 128},
        {"learning_rate": 8e-4, "pieces": 128, "noises": 3, "translation_weight": 4.0, "chamfer_weight": 1.0},
        {"points": 256},
        task="diffassemble.training.fragments.FragmentTask",
    ),
}

PRESETS: Mapping[str, Preset] = Registry("presets", _OWN)
"""What can be learnt, by name."""
