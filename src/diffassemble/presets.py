"""Named, complete configurations."""

from __future__ import annotations

from dataclasses import replace

from diffassemble.model.config import ModelConfig
from diffassemble.training.config import Config, TrainingConfig

_LIGHT = ModelConfig()
_PAPER_FORM = replace(_LIGHT, edge_features=False, votes=False)

PRESETS: dict[str, Config] = {
    # One light network for all grids, with pairwise evidence.
    "jigsaw": Config(_LIGHT),
    # The paper's method (no pairwise evidence) at the same size and budget.
    "jigsaw-paper-form": Config(_PAPER_FORM),
    # The published sizes: group-equivariant ResNet18, 1152-wide nodes, 4 bare UniMP layers, Adagrad.
    "jigsaw-paper": Config(
        ModelConfig(
            backbone="resnet18",
            features=272,
            width=1152,
            layers=4,
            stack="published",
            hidden=256,
            edge_features=False,
            votes=False,
            board=False,
            pose_width=32,
        ),
        training=TrainingConfig(optimizer="adagrad", learning_rate=1e-4, decay=0.0, warmup=0),
    ),
    # The paper's ablations, each one change away from the paper's form.
    "ablation-plain": Config(replace(_PAPER_FORM, symmetry="plain")),
    "ablation-invariant": Config(replace(_PAPER_FORM, symmetry="invariant")),
    "ablation-no-diffusion": Config(replace(_PAPER_FORM, times=1)),
    "ablation-gcn": Config(replace(_PAPER_FORM, layer="gcn")),
    "ablation-dropped-edges": Config(replace(_PAPER_FORM, dropped_edges=0.8)),
}
