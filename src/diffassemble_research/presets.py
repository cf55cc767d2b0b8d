"""Presets of the paper's own form, of its ablations, each one change away from that, and of compared methods."""

from __future__ import annotations

from typing import Any

from diffassemble.training.presets import PRESETS as PRODUCT
from diffassemble.training.presets import Preset

_PAPER = "the paper's own form and sizes"
_ABLATIONS = "the paper's ablations, each one change away from its form"
_METHODS = "methods that the paper compares with"

_TASK = "diffassemble_research.tasks.PaperFragmentTask"
_PUBLISHED = {
    **{"edge_features": False, "votes": False, "backbone": "resnet18", "features": 272, "width": 1152, "layers": 4},
    **{"stack": "published", "hidden": 256, "board": False, "join_hidden": 128, "pose_hidden": 16, "pose_width": 32},
}
# Without evidence all must be learnt from content: errors at strong noise count in full.
_PUBLISHED_TRAINING = {
    **{"weigh_noise": False, "optimizer": "adagrad", "learning_rate": 1e-4, "decay": 0.0, "warmup": 0}
}
# As published: the shape's distance counts tenfold, which is the default of its task.
_PUBLISHED_LOSSES = {"translation_weight": 1.0, "rotation_weight": 0.2}
_JIGSAW = PRODUCT["jigsaw"].variant(
    "the paper's method, without pairwise evidence: X₀ as a distribution over cells",
    _PAPER,
    {"edge_features": False, "votes": False, "edge_model": ""},
    data={"erode_share": 0.0},
)
# What half an hour of one core can teach: pure noise is shown often, since the first step decides most; rotations are
# learnt from large pieces first.
_FRAGMENTS = Preset(
    "the paper's method for broken objects: X₀ as a distribution over rotations",
    {"head": "rotations", "posed": True},
    _PUBLISHED_LOSSES
    | {"weigh_noise": False, "learning_rate": 1.5e-3, "warmup": 100, "noise_share": 0.3, "pieces": 96, "noises": 1},
    {"points": 192, "joined": 0.7, "shares": (0.5, 0.0, 0.5), "pieces": (2, 8)},
    _TASK,
    _PAPER,
)
_REGRESSION = {"head": "regression", "posed": False}
_FRACTURES = {"pieces": (2, 20), "joined": 0.5}


def _ablation(purpose: str, **model: Any) -> Preset:
    return _JIGSAW.variant(f"the paper's form {purpose}", _ABLATIONS, model)


def _regression(purpose: str, chamfer: float | None = None, **model: Any) -> Preset:
    training = {"noises": 3} | ({} if chamfer is None else {"chamfer_weight": chamfer})
    return _FRAGMENTS.variant(purpose, _ABLATIONS, _REGRESSION | model, training, _FRACTURES)


def _baseline(purpose: str, **model: Any) -> Preset:
    training, data = _FRAGMENTS.training_changes, {**_FRAGMENTS.data_changes, **_FRACTURES}
    return Preset(f"{purpose}, in one go", model, training, data, "diffassemble_research.tasks.BaselineTask", _METHODS)


PRESETS: dict[str, Preset] = {
    "jigsaw-paper-form": _JIGSAW,
    "jigsaw-paper": Preset(
        "the published sizes: group-equivariant ResNet18, four bare UniMP layers, Adagrad",
        _PUBLISHED,
        _PUBLISHED_TRAINING,
        group=_PAPER,
    ),
    "fragments-paper-form": _FRAGMENTS,
    "fragments-paper": Preset(
        "the published sizes for broken objects: VN-DGCNN, four bare UniMP layers, Adagrad",
        _PUBLISHED | {"posed": False, "backbone": "vn_dgcnn_published", "features": 256, "width": 832},
        _PUBLISHED_TRAINING | _PUBLISHED_LOSSES,
        {"points": 1000},
        _TASK,
        _PAPER,
    ),
    "baseline-global": _baseline("each piece beside the sum of all", baseline="global"),
    "baseline-lstm": _baseline("one piece after the other", baseline="lstm"),
    "baseline-dgl": _baseline("a graph that is weighed anew by every guess", baseline="dgl"),
    "baseline-nsm": _baseline("neural shape mating, extended to many pieces", baseline="nsm"),
    "baseline-se3-equiv": _baseline(
        "equivariant rotations and invariant translations", baseline="se3-equiv", backbone="vn_dgcnn"
    ),
    "ablation-regression": _JIGSAW.variant(
        "the paper's form with its bare regression of X₀",
        _ABLATIONS,
        {"head": "regression", "side_heads": False},
        {"translation_weight": 2.0, "rotation_weight": 0.5},
    ),
    "ablation-no-side-heads": _ablation("without heads that compare sides", side_heads=False),
    "ablation-plain": _ablation("with a plain encoder", symmetry="plain"),
    "ablation-invariant": _ablation("with an encoder blind to turns", symmetry="invariant"),
    "ablation-no-diffusion": _ablation("in one step", times=1),
    "ablation-gcn": _ablation("with plain graph convolutions", layer="gcn"),
    "ablation-dropped-edges": _ablation("with four in five edges lost at random", dropped_edges=0.8),
    "ablation-expander": _JIGSAW.variant(
        "the paper's sparse form: expanders of a fifth of all edges, and 8 virtual nodes",
        _ABLATIONS,
        {"degree": 0.2, "virtual_nodes": 8, "sparse_solving": True},
    ),
    "fragments-regression": _regression("the paper's method for broken objects with its bare regression of X₀"),
    "fragments-plain": _regression("the bare regression with a plain encoder", backbone="dgcnn", symmetry="plain"),
    "fragments-invariant": _regression("the bare regression with an encoder blind to turns", symmetry="invariant"),
    "fragments-no-diffusion": _regression("the bare regression in one step", times=1),
    "fragments-gcn": _regression("the bare regression with plain graph convolutions", layer="gcn"),
    "fragments-6d": _regression("the bare regression with rotations as two vectors", space="six_d"),
    "fragments-no-chamfer": _regression("the bare regression without the shape's distance", 0.0),
}
