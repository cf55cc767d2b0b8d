"""The task of learning to put broken objects together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.assembly.scoring import piece_chamfer, right_pieces
from diffassemble.core import InputError, Matches, Poses, Puzzle
from diffassemble.core.limits import check_memory
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count, Share, Weight
from diffassemble.core.surfaces import chamfer_distance
from diffassemble.evaluation.metrics import euler_error, translation_error
from diffassemble.fragments.datasets import Fracture, break_files, break_solids, find_fractures
from diffassemble.fragments.model import FractureModels
from diffassemble.network.batch import PuzzleBatch, pack, with_matches
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.judge import corrupt_matches
from diffassemble.network.sampling import denoise
from diffassemble.training.config import Config, FragmentConfig
from diffassemble.training.denoising import Denoising, DenoisingTraining
from diffassemble.training.fragment_data import Broken, FragmentStream, Known, matches_of, pool_of


@dataclass(frozen=True)
class FragmentTraining(DenoisingTraining):
    """How a network learns to put fragments together."""

    chamfer_weight: Weight = 10.0
    """weight of the distance between a piece's shape where it is put and where it belongs; 0 leaves it out"""
    chamfer_points: Count = 128
    """points of a piece by which shapes are compared"""
    bytes_a_point: Count = 1500
    """memory of a step for each point of a piece"""
    wrong: tuple[Share, Share] = (0.0, 0.3)
    """shares of matches that are wrong when objects held apart are put together"""


class FragmentTask(Denoising):
    """Puzzles of broken objects; the shape's Chamfer distance beside the loss; accuracy on objects held apart."""

    defaults = Config(
        ModelConfig(backbone="vn_dgcnn", features=48, edge_features=False, votes=False, space="so3", posed=True),
        FragmentConfig(),
        FragmentTraining(),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.pieces, "pieces"
        kinds, held_apart = gather(config.data)
        models = None
        if isinstance(config.model, ModelConfig) and config.model.pairwise:
            models = FractureModels.from_pretrained(config.data.matching)
        known = [known_fractures(kind, models) for kind in kinds]
        self.stream = FragmentStream(known, config.data, config.training.pieces, config.training.seed)
        self.held_apart: list[tuple[Puzzle, Matches | None]] = []
        for number, (pool, matches) in enumerate(known_fractures(held_apart, models)):
            generator, points = seeded(77, number), config.data.points
            if matches is None:
                self.held_apart.append((pool.scatter(generator, points), None))
                continue
            puzzle, left = pool.matched(matches, generator, points)
            self.held_apart += [
                (puzzle, corrupt_matches(left, wrong, 0.0, generator)) for wrong in config.training.wrong
            ]

    def check(self, config: Config) -> None:
        super().check(config)
        model, points = config.model, config.data.points
        needed = config.training.bytes_a_point * points * config.training.pieces / config.training.devices
        check_memory(needed, f"--data.points {points}: a step", "take fewer points or --training.pieces")
        if not isinstance(model, ModelConfig):
            return
        if model.space == "cos_sin":
            raise InputError("--model.space cos_sin: must be so3, six_d or quaternion, the poses of broken objects")
        if model.pairwise and not (model.votes and model.space == "so3" and model.contact_slots == 1):
            raise InputError("--model.votes: matches are heard with votes, space so3 and contact-slots 1, or not")

    def further_loss(self, batch: PuzzleBatch, true: Poses, predicted: Poses) -> Float[Tensor, ""]:
        weight = self.config.training.chamfer_weight
        if weight == 0:
            return super().further_loss(batch, true, predicted)
        points = batch.content[:, : self.config.training.chamfer_points].repeat_interleave(
            len(true) // len(batch.content), 0
        )
        with torch.autocast(points.device.type, enabled=False):  # neighbours are looked up with all digits
            return weight * chamfer_distance(predicted.apply(points), true.apply(points)).mean()

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Errors on held-apart objects, one sample each; "score" is part accuracy less RMSE(R).

        Poses are absolute; where matches are heard they are seen from the largest piece, and some matches are wrong.
        """
        assert isinstance(model, PoseNetwork)
        errors = [_errors(model, *known, number) for number, known in enumerate(self.held_apart)]
        turn, shift, right = torch.stack(errors).mean(0).tolist() if errors else (0.0, 0.0, 0.0)
        return {"score": right - turn, "part accuracy": right, "RMSE(R)": turn, "RMSE(T)": shift}


def gather(data: FragmentConfig) -> tuple[list[list[Broken]], list[Fracture]]:
    """Fractures to learn from, by kind (Breaking Bad's, made of files, made of chance), and those held apart."""
    found: list[Broken] = []
    held_apart, held_out = [], set()
    for folder in data.folders:
        train, every = find_fractures(folder, "train", pieces=data.pieces), find_fractures(folder, "all")
        held_out |= {one.object for one in every} - {one.object for one in find_fractures(folder, "train")}
        objects = sorted({one.object for one in train})
        apart = set(objects[:: max(1, len(objects) // max(1, data.held_apart))][: data.held_apart])
        held_out |= apart
        held_apart += [fracture for fracture in train if fracture.object in apart]
        found += [fracture for fracture in train if fracture.object not in apart]
    files: list[Broken] = []
    for folder in data.meshes:
        if not folder.is_dir():
            raise InputError(f"--data.meshes {folder}: is not a folder")
        files += break_files(folder, data.breaks, data.pieces, frozenset(held_out), data.z_up)
    kinds: list[list[Broken]] = [found, files, [*break_solids(data.solids, data.breaks, data.pieces)]]
    if not any(kind for kind, share in zip(kinds, data.shares, strict=True) if share):
        named = ", ".join(map(str, (*data.folders, *data.meshes))) or "--data.solids 0"
        raise InputError(f"{named}: has nothing to learn from; pass fractures, meshes or --data.solids")
    return kinds, held_apart


def known_fractures(fractures: Sequence[Broken], models: FractureModels | None) -> list[Known]:
    """The points of fractures, without those where a solid could not be broken that way; matches, if they are found."""
    known: list[Known] = []
    for fracture in fractures:
        with suppress(InputError):
            known.append((pool_of(fracture), None if models is None else matches_of(fracture, models)))
    return known


def _errors(model: PoseNetwork, puzzle: Puzzle, matches: Matches | None, number: int) -> Float[Tensor, "3"]:
    """RMSE(R) in degrees, RMSE(T) × 100 and part accuracy in percent of one sample."""
    assert puzzle.truth is not None
    batch = pack([puzzle]) if matches is None else with_matches(pack([puzzle]), [matches])
    *_, (_, found) = denoise(model, batch, 15, 1, seeded(78, number), locks=puzzle.locks)
    answer = model.space.to_poses(found.vectors[:, 0])
    right = right_pieces(piece_chamfer(puzzle.fragments.points, answer, puzzle.truth))
    turn, shift = euler_error(answer, puzzle.truth).mean(), translation_error(answer, puzzle.truth).mean()
    return torch.stack([turn.double(), 100 * shift.double(), 100 * right.double().mean()])
