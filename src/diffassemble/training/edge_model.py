"""The task of learning which sides continue each other."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor, nn

from diffassemble.core import Board, InputError, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Batch, Share
from diffassemble.io.pictures import to_image
from diffassemble.squares.cut import cut_picture
from diffassemble.squares.edges import EdgeCompatibility, EdgeModel, EdgeModelConfig
from diffassemble.squares.placement import touching_sides
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.data import uniform
from diffassemble.training.loop import Task
from diffassemble.training.pictures import DataConfig, PuzzleStream

ALONE = -1
"""the partner of a side that has none"""
Pixels = Float[Tensor, "n 3 s s"]


@dataclass(frozen=True)
class EdgeModelTraining(TrainingConfig):
    """How edge compatibility is learned."""

    pieces: Batch = 160
    """pieces in a batch, over all processes; each of their sides has all others to choose from"""
    worn_share: Share = 0.5
    """share of puzzles whose pieces are blurred, unevenly lit or compressed as JPEG"""


class EdgeModelTask(Task):
    """Every side of a batch has to find its neighbour among all others, or that it has none."""

    defaults = Config(EdgeModelConfig(), DataConfig(), EdgeModelTraining())
    network = EdgeModel

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.stream = PuzzleStream(config)

    def check(self, config: Config) -> None:
        super().check(config)
        PuzzleStream.check(config)
        gap, erode = config.model.widest_gap, config.data.erode
        if gap < erode:
            raise InputError(f"--model.widest-gap {gap}: must be {erode} or more, the erosion of --data.erode")

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        training = self.config.training
        portion = self.stream.batch(step, rank, world)
        device = next(model.parameters()).device
        with torch.autocast("cpu", enabled=False), torch.autocast(device.type, enabled=False):
            # Half precision can't tell neighbouring shades apart.
            worn = [
                wear(puzzle.pixels, training.worn_share, seeded(training.seed, step, portion.first + index, 3))
                for index, puzzle in enumerate(portion.puzzles)
            ]
            compatibility = model(torch.cat(worn).to(device), portion.erode)
            return portion.weight * choice_loss(compatibility, partners(portion.puzzles).to(device))

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Percent of sides that rank their true neighbour first, by folder and erosion; "score" is the mean."""
        assert isinstance(model, EdgeModel)
        favourite, device = self.config.data.favourite, next(model.parameters()).device
        board, scores = Board(favourite, favourite), dict[str, float]()
        for name, pictures in self.stream.held_apart:
            for erode in range(self.config.data.erode + 1):
                right = sides = 0
                for index, picture in enumerate(pictures):
                    puzzle = cut_picture(picture.float() / 255, board, seeded(77, index), size=32, erode=erode)
                    truth = partners([puzzle])
                    compatibility = model(puzzle.pixels.to(device), erode)
                    found = compatibility.fits(torch.arange(len(truth), device=device)).argmax(1).cpu()
                    right, sides = right + int((found == truth).sum()), sides + int((truth != ALONE).sum())
                scores[f"{name} {erode} px"] = 100 * right / max(1, sides)
        return {"score": sum(scores.values()) / max(1, len(scores)), **scores}


def choice_loss(compatibility: EdgeCompatibility, partner: Int[Tensor, "sides"]) -> Float[Tensor, ""]:
    """Cross-entropy of every side's choice among all sides of other pieces, and of being alone."""
    fits = compatibility.fits(torch.arange(len(partner), device=partner.device))
    logits = torch.cat([fits, compatibility.alone.expand(len(fits), 1)], 1)
    return F.cross_entropy(logits, torch.where(partner == ALONE, len(fits), partner))


def partners(puzzles: list[Puzzle]) -> Int[Tensor, "sides"]:
    """The true neighbour of every side of several puzzles, numbered through, or ALONE."""
    found, before = [], 0
    for puzzle in puzzles:
        assert puzzle.truth is not None
        first, second = touching_sides(puzzle.board, *puzzle.board.snap(puzzle.truth))
        own = torch.full((4 * len(puzzle),), ALONE)
        own[first] = before + second
        found.append(own)
        before += len(own)
    return torch.cat(found)


def wear(
    pixels: Pixels, share: float, generator: torch.Generator, qualities: tuple[float, float] = (50.0, 95.0)
) -> Pixels:
    """With the probability `share`, pieces are worn: blurred, unevenly lit, compressed, each in half of these cases."""
    if uniform(0.0, 1.0, generator) >= share:
        return pixels
    blurred, lit, compressed = (torch.rand(3, generator=generator) < 0.5).tolist()
    if blurred:
        pixels = blur(pixels, uniform(0.0, 0.25, generator))
    if lit:
        gain = 1 + 0.04 * (torch.rand(len(pixels), 3, 1, 1, generator=generator) - 0.5)
        pixels = (pixels * gain).clamp(0, 1)
    return compress(pixels, int(uniform(*qualities, generator))) if compressed else pixels


def blur(pixels: Pixels, strength: float) -> Pixels:
    """Every pixel gives the share `strength` to each of its two neighbours, along both axes; nothing is lost."""
    kernel = torch.tensor([strength, 1 - 2 * strength, strength])
    around = F.pad(pixels, (1, 1, 1, 1), mode="replicate").flatten(0, 1)[:, None]
    return F.conv2d(F.conv2d(around, kernel.view(1, 1, 1, 3)), kernel.view(1, 1, 3, 1)).view_as(pixels)


def compress(pixels: Pixels, quality: int) -> Pixels:
    """The pieces as JPEG files of this quality would show them, each alone: JPEG compresses blocks of 8 pixels."""
    size = pixels.shape[-1]
    room = -size % 8
    padded = F.pad(pixels, (0, room, 0, room), mode="replicate")
    file = io.BytesIO()
    to_image(padded.movedim(0, 1).flatten(1, 2)).save(file, "JPEG", quality=quality, subsampling=0)
    read = torch.from_numpy(np.array(Image.open(file))).movedim(-1, 0).float() / 255
    return read.unflatten(1, (len(pixels), -1)).movedim(1, 0)[..., :size, :size].contiguous()
