"""Configurations that cannot work, found before any work is done."""

from __future__ import annotations

import os

import torch

from diffassemble.core import InputError
from diffassemble.fragments.orientation import OrientationConfig
from diffassemble.network.config import ModelConfig
from diffassemble.squares.critic import CriticConfig
from diffassemble.squares.cut import SMALLEST_PIECE
from diffassemble.squares.upright import UprightConfig
from diffassemble.training.config import (
    BaselineRun,
    CriticRun,
    DataConfig,
    DenoisingTraining,
    EdgeModelRun,
    FractureMatchingRun,
    FragmentConfig,
    FragmentRun,
    JigsawRun,
    OrientationRun,
    PictureConfig,
    TrainingConfig,
    UprightRun,
)
from diffassemble.training.pictures import SMALLEST_SIZE


def check_jigsaw(config: JigsawRun) -> None:
    """Refuse values out of range and values that do not go together, by the names of their options."""
    _check_denoiser(config.model)
    _check_pictures(config.data)
    _check_puzzles(config.data)
    _check_training(config.training)
    _check_batch(config.data, config.training)
    most = max(config.data.grids[1], config.data.favourite) ** 2 - 1
    _demand(config.model.degree <= most, "model.degree", config.model.degree, f"at most {most}, all other pieces")


def check_upright(config: UprightRun) -> None:
    """Refuse values out of range, by the names of their options."""
    model, training = config.model, config.training
    _at_least(1, model, "model", "size", "stem")
    _check_layers(model, "one number or several")
    _check_pictures(config.data)
    _check_training(training)
    _at_least(1, training, "training", "pictures")


def check_critic(config: CriticRun) -> None:
    """Refuse values out of range, by the names of their options."""
    model, training = config.model, config.training
    _demand(model.size >= 60 and model.size % 60 == 0, "model.size", model.size, "60 or a multiple of it")
    _at_least(1, model, "model", "stem", "hidden")
    _check_layers(model, "one number or several")
    _check_pictures(config.data)
    _check_training(training)
    _at_least(1, training, "training", "pictures", "false")


def check_orientation(config: OrientationRun) -> None:
    """Refuse values out of range, by the names of their options."""
    model, training = config.model, config.training
    _check_layers(model, "three numbers")
    _check_broken(config.data)
    _check_training(training)
    _at_least(1, training, "training", "objects")
    _at_least(0, training, "training", "front_weight")
    _under_one(training, "training", "smoothing")


def check_fragments(config: FragmentRun | BaselineRun) -> None:
    """Refuse values out of range and values that do not go together, by the names of their options."""
    if isinstance(config.model, ModelConfig):
        _check_denoiser(config.model)
    _check_broken(config.data)
    _check_training(config.training)
    _check_loss(config.training)
    value = config.training.chamfer_weight
    _demand(value >= 0, "training.chamfer-weight", value, "0 or more")
    _at_least(1, config.training, "training", "pieces")


def check_fracture_matching(config: FractureMatchingRun) -> None:
    """Refuse values out of range and values that do not go together, by the names of their options."""
    _check_broken(config.data)
    _check_training(config.training)
    _at_least(0, config.data, "data", "noise")
    _at_least(1, config.data, "data", "times")
    _at_least(1, config.training, "training", "points")
    _at_least(1, config.model, "model", "width", "descriptor", "verifier_width")
    if config.data.learn == "fits" and not config.training.start_from:
        raise InputError("--data.learn fits: needs networks that know surfaces; pass --training.start-from FOLDER")


def check_edge_model(config: EdgeModelRun) -> None:
    """Refuse values out of range and values that do not go together, by the names of their options."""
    model, data, training = config.model, config.data, config.training
    _at_least(1, model, "model", "depth", "width", "embedding")
    _demand(model.length >= 2 and model.length % 2 == 0, "model.length", model.length, "even, 2 or more")
    _at_least(0, model, "model", "blocks")
    _demand(
        model.observed >= 3 and model.observed % 3 == 0,
        "model.observed",
        model.observed,
        "3, 6 or another multiple of 3",
    )
    wanted = f"{data.erode} or more, the erosion of --data.erode"
    _demand(model.widest_gap >= data.erode, "model.widest-gap", model.widest_gap, wanted)
    _check_pictures(data)
    _check_puzzles(data)
    _check_training(training)
    _up_to_one(training, "training", "worn_share")
    _check_room(data, training.pieces)


def _demand(right: bool, option: str, value: object, wanted: str) -> None:
    if not right:
        raise InputError(f"--{option} {value}: must be {wanted}")


def _at_least(least: int, config: object, section: str, *names: str) -> None:
    for name in names:
        _demand(getattr(config, name) >= least, _option(section, name), getattr(config, name), f"{least} or more")


def _under_one(config: object, section: str, name: str) -> None:
    value = getattr(config, name)
    _demand(0 <= value < 1, _option(section, name), value, "a share, 0 or more and under 1")


def _up_to_one(config: object, section: str, *names: str) -> None:
    for name in names:
        _demand(0 <= getattr(config, name) <= 1, _option(section, name), getattr(config, name), "from 0 to 1")


def _option(section: str, name: str) -> str:
    return f"{section}.{name.replace('_', '-')}"


def _check_layers(model: UprightConfig | CriticConfig | OrientationConfig, wanted: str) -> None:
    widths = " ".join(map(str, model.widths))
    _demand(min(model.widths, default=0) >= 1, "model.widths", widths, f"{wanted}, each 1 or more")
    _under_one(model, "model", "dropout")


def _check_denoiser(model: ModelConfig) -> None:
    sizes = ("features", "width", "hidden", "join_hidden", "pose_hidden", "pose_width")
    _at_least(1, model, "model", *sizes, "layers", "heads", "times")
    _demand(
        model.time_width >= 2 and model.time_width % 2 == 0, "model.time-width", model.time_width, "even, 2 or more"
    )
    _check_graph(model)
    if model.layer == "unimp":
        widths = [model.width] if model.stack == "transformer" else [model.width, model.hidden]
        shared = all(width % model.heads == 0 for width in widths)
        _demand(shared, "model.heads", model.heads, f"a divisor of the width {' and '.join(map(str, widths))}")
    if (model.backbone, model.symmetry) == ("resnet18", "plain"):
        raise InputError("--model.symmetry plain: has no group convolutions; pass --model.backbone light")


def _check_graph(model: ModelConfig) -> None:
    _under_one(model, "model", "dropped_edges")
    shared = 0 <= model.degree <= 1 or model.degree == int(model.degree) >= 2
    _demand(shared, "model.degree", model.degree, "0 (all others), a share of them up to 1, or a number from 2 on")
    _at_least(0, model, "model", "top_k", "virtual_nodes", "complete_up_to")
    if model.degree and model.dropped_edges:
        raise InputError("--model.degree and --model.dropped-edges both make graphs sparse; pass one of them")
    if model.top_k and not (model.degree and model.pairwise):
        raise InputError(
            "--model.top-k adds matches to an expander; pass --model.degree, and --model.edge-features or --model.votes"
        )


def _check_pictures(data: PictureConfig) -> None:
    if not data.folders:
        raise InputError("no training pictures: pass --data.folders DIR [DIR ...]")
    if len(set(data.folders)) < len(data.folders):
        raise InputError("--data.folders names a folder twice; pass --data.shares to draw more often from it")
    if data.shares and len(data.shares) != len(data.folders):
        raise InputError(f"--data.shares has {len(data.shares)} numbers for {len(data.folders)} folders; give one each")
    shares = " ".join(map(str, data.shares))
    sound = min(data.shares, default=1.0) >= 0 and sum(data.shares or (1.0,)) > 0
    _demand(sound, "data.shares", shares, "0 or more, and not all 0")
    _at_least(0, data, "data", "held_apart")


def _check_broken(data: FragmentConfig) -> None:
    if not data.folders and not data.meshes and not data.solids:
        raise InputError("nothing to learn from: pass --data.folders DIR, --data.meshes DIR or --data.solids N")
    _at_least(0, data, "data", "solids", "breaks", "held_apart", "stretch")
    _demand(data.stretch < 1, "data.stretch", data.stretch, "under 1")
    low, high = data.pieces
    _demand(2 <= low <= high, "data.pieces", f"{low} {high}", "the fewest pieces, 2 or more, and the most")
    _demand(data.points >= 32, "data.points", data.points, "32 or more")
    _under_one(data, "data", "missing")
    _up_to_one(data, "data", "whole_share")
    sound = min(data.shares) >= 0 and sum(data.shares) > 0
    _demand(sound, "data.shares", " ".join(map(str, data.shares)), "0 or more, and not all 0")


def _check_puzzles(data: DataConfig) -> None:
    low, high = data.grids
    _demand(2 <= low <= high, "data.grids", f"{low} {high}", "the fewest rows, 2 or more, and the most")
    _demand(data.favourite >= 2, "data.favourite", data.favourite, "2 or more")
    _under_one(data, "data", "missing")
    _up_to_one(data, "data", "favourite_share", "whole_share", "erode_share", "jitter")
    _demand(0 < data.smallest_crop <= 1, "data.smallest-crop", data.smallest_crop, "over 0 and at most 1")
    deepest = (SMALLEST_SIZE - SMALLEST_PIECE) // 2
    _demand(0 <= data.erode <= deepest, "data.erode", data.erode, f"from 0 to {deepest} pixels")


def _check_training(training: TrainingConfig) -> None:
    _at_least(1, training, "training", "steps", "validate_every", "devices", "nodes")
    for name in ("minutes", "learning_rate", "clip"):
        value = getattr(training, name)
        _demand(value > 0, f"training.{name.replace('_', '-')}", value, "over 0")
    _at_least(0, training, "training", "weight_decay", "warmup", "checkpoint_minutes")
    _up_to_one(training, "training", "decay")
    _demand(0 <= training.average < 1, "training.average", training.average, "0 or more and under 1")
    _demand(0 <= training.seed < 2**32, "training.seed", training.seed, "from 0 to 2^32 − 1")
    if training.nodes > 1 and "TORCHELASTIC_RUN_ID" not in os.environ:
        raise InputError(
            f"--training.nodes {training.nodes}: several machines need torchrun on each of them; see docs/TRAINING.md"
        )
    if training.accelerator == "cuda" and training.devices > torch.cuda.device_count():
        raise InputError(
            f"--training.devices {training.devices}: there are {torch.cuda.device_count()} CUDA devices here; "
            "pass fewer, or --training.accelerator cpu"
        )


def _check_batch(data: DataConfig, training: DenoisingTraining) -> None:
    _check_loss(training)
    _check_room(data, training.pieces)


def _check_loss(training: DenoisingTraining) -> None:
    _at_least(1, training, "training", "noises")
    _at_least(0, training, "training", "translation_weight", "rotation_weight")


def _check_room(data: DataConfig, pieces: int) -> None:
    most = max(data.favourite, data.grids[1])
    wanted = f"{most**2} or more, so that a {most}x{most} puzzle fits into a batch; or lower --data.grids"
    _demand(pieces >= most**2, "training.pieces", pieces, wanted)
