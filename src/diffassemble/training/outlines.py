"""The task of learning to put flat pieces of any outline together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from diffassemble.core import InputError, Matches, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count, Positive
from diffassemble.diffusion.rotations import angle_between
from diffassemble.network.batch import pack
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import PoseNetwork
from diffassemble.network.judge import assembled, denoised, judge
from diffassemble.outlines.hearing import heard
from diffassemble.squares.pictures import picture_paths
from diffassemble.training.config import Config, OutlineConfig
from diffassemble.training.denoising import Denoising, DenoisingTraining
from diffassemble.training.outline_data import OutlineStream, compared, make_puzzle, make_sheet, seen_from_one


@dataclass(frozen=True)
class OutlineTraining(DenoisingTraining):
    """How a network learns to put flat pieces together."""

    most_cut: Count = 24
    """most pieces of a puzzle whose matches are searched for: these are many more than made-up ones"""
    validation_steps: Count = 10
    near: Positive = 0.125
    """largest error of a right place, in units, of which a typical piece is half as long"""
    twist: Positive = 5.0
    """largest error of a right rotation, in degrees"""


class OutlineTask(Denoising):
    """Sheets cut in all shapes, with made-up matches; the share of pieces right on sheets held apart."""

    defaults = Config(
        ModelConfig(
            backbone="outline",
            symmetry="invariant",
            space="plane",
            contact_slots=1,
            verdicts=True,
            features=16,
            width=96,
            layers=4,
            heads=4,
            join_hidden=128,
        ),
        OutlineConfig(),
        OutlineTraining(pieces=192, noises=3, translation_weight=4.0, learning_rate=8e-4, average=0.998, warmup=100),
    )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        data = config.data
        self.batch = config.training.pieces, "pieces"
        sheets = []
        for number in range(data.sheets + data.held_apart):
            generator = seeded(config.training.seed, number, 5)
            low, high = data.pieces
            pieces = int(torch.randint(low, high + 1, (), generator=generator))
            sheets.append(make_sheet(data.shapes[number % len(data.shapes)], pieces, generator))
        training = config.training
        known = [*cut_pictures(data, training.seed, training.most_cut)]
        self.stream = OutlineStream(sheets[data.held_apart :], known, data, training.pieces, training.seed)
        self.held_apart = [
            seen_from_one(heard(*make_puzzle(sheet, data.missing * (number % 2), seeded(79, number))))
            for number, sheet in enumerate(sheets[: data.held_apart])
        ]

    def check(self, config: Config) -> None:
        super().check(config)
        model = config.model
        if model.space != "plane" or not (model.votes and model.verdicts) or model.contact_slots != 1:
            raise InputError("--model.votes: flat pieces need votes, verdicts, the space plane and contact-slots 1")

    def validate(self, model: nn.Module) -> dict[str, float]:
        """The share of pieces right on sheets held apart, by one sample each: where it puts them, and as assembled."""
        assert isinstance(model, PoseNetwork)
        found = [_right(model, *known, number, self.config.training) for number, known in enumerate(self.held_apart)]
        placed, right = torch.tensor(found).mean(0).tolist() if found else (0.0, 0.0)
        return {"score": placed + right, "right": right, "placed": placed}


def cut_pictures(data: OutlineConfig, seed: int, most: int) -> Iterator[tuple[Puzzle, Matches]]:
    """Puzzles of pictures spread over the folders, with the matches that are found."""
    files = [file for folder in data.folders for file in picture_paths(folder)]
    for number, file in enumerate(files[:: max(1, len(files) // max(1, data.pictures))][: data.pictures]):
        generator = seeded(seed, number, 6)
        pieces = int(torch.randint(data.pieces[0], min(data.pieces[1], most) + 1, (), generator=generator))
        yield compared(file, data.shapes[number % len(data.shapes)], pieces, generator)


def _right(
    model: PoseNetwork, puzzle: Puzzle, matches: Matches, number: int, config: OutlineTraining
) -> tuple[float, float]:
    """Percent of the pieces that one sample puts where they belong, before and after it is assembled."""
    truth, locks, unit = puzzle.truth, puzzle.locks, pack([puzzle]).board[:, 2]
    assert truth is not None
    assert locks is not None
    *_, (_, _, sample) = denoised(model, puzzle, matches, config.validation_steps, 1, 0.0, seeded(80, number))
    answers = sample, assembled(matches, judge(model, puzzle, matches, sample, unit), locks, unit)[0]
    near = [(poses.translation - truth.translation).norm(dim=-1) < config.near * unit for poses in answers]
    straight = [angle_between(poses.rotation, truth.rotation).rad2deg() < config.twist for poses in answers]
    placed, right = (100 * float((close & turned).float().mean()) for close, turned in zip(near, straight, strict=True))
    return placed, right
