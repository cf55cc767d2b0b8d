"""Learning to denoise puzzles, whatever the pieces are: the losses of section 3.3."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from diffassemble.core import Board, Poses, Puzzle
from diffassemble.core.board import WAYS, Placement
from diffassemble.core.limits import check_memory
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Batch, Count, Share, Weight
from diffassemble.diffusion.rotations import angle_between
from diffassemble.network.batch import MatchFinder, PuzzleBatch, pack, with_matches
from diffassemble.network.denoiser import Condition, Denoiser, PoseNetwork, Prediction
from diffassemble.network.encoders.image import TURNS
from diffassemble.network.evidence import Estimates
from diffassemble.network.heads import Logits, verdict_loss
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.data import Portion
from diffassemble.training.loop import Task


def translation_loss(true: Poses, predicted: Poses, weight: Float[Tensor, "n"] | float = 1.0) -> Float[Tensor, ""]:
    """Section 3.3, L_tr: mean squared distance of the translations."""
    return (weight * (true.translation - predicted.translation).square().sum(-1)).mean()


def rotation_loss(true: Poses, predicted: Poses, weight: Float[Tensor, "n"] | float = 1.0) -> Float[Tensor, ""]:
    """Section 3.3, L_rt: ‖Rᵀ R̂ − I‖², which equals ‖R̂ − R‖² since R is orthogonal.

    R̂ is not forced to be orthogonal: where several turns are possible, the best answer is their mean.
    """
    return (weight * (predicted.rotation - true.rotation).square().sum((-1, -2))).mean()


def trust_loss(
    trust: Float[Tensor, "n k o"],
    estimates: Estimates,
    true: Poses,
    unit: Float[Tensor, "n"],
    near: tuple[float, float] = (0.15, 0.03),
) -> Float[Tensor, ""]:
    """Cross-entropy of trusting an estimate that is right, over pieces of which some estimates are right and some not.

    An estimate is right within `near`: an angle in radians, a distance in units.
    """
    rotation, place = (part.unflatten(0, (*trust.shape[:2], 1)) for part in (true.rotation, true.translation))
    far = (estimates.place - place).norm(dim=-1) / unit[:, None, None]
    right = (angle_between(estimates.rotation, rotation) < near[0]) & (far < near[1])
    mixed = right.any(-1) & ~right.all(-1)
    chosen = trust.log_softmax(-1).masked_fill(~right, -torch.inf)[mixed].logsumexp(-1)
    return -chosen.sum() / max(1, right[..., 0].numel())


def noise_weight(alpha_bar: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The less noise, the more an error counts: 1 / (1 − ᾱ + 0.05).

    Near time T much of the error is unavoidable, and unweighted it drowns the small errors that decide in the end.
    """
    return 1 / (1.05 - alpha_bar)


@dataclass(frozen=True)
class DenoisingTraining(TrainingConfig):
    """How the denoiser learns."""

    pieces: Batch = 288
    """pieces in a batch, over all processes; the number of puzzles follows from the grid"""
    noises: Batch = 2
    """noisy versions of each puzzle in a step; they share the encoder's work"""
    translation_weight: Weight = 2.0
    rotation_weight: Weight = 0.5
    weigh_noise: bool = True
    """count errors the more the less noise there is; off in the paper"""
    cells_weight: Weight = 1.0
    """cross-entropy over the cells and turns, with the head "cells\""""
    alone_weight: Weight = 0.3
    """the same from each piece alone, which teaches the encoder"""
    turns_weight: Weight = 1.0
    """cross-entropy over the grid of rotations, with the head "rotations\""""
    sides_weight: Weight = 0.3
    """cross-entropy over which sides are neighbours, with side heads"""
    trust_weight: Weight = 1.0
    """cross-entropy of which estimate to trust, where the network reads matches in space"""
    verdict_weight: Weight = 1.0
    """cross-entropy of which matches are true, where the network has verdicts"""
    noise_share: Share = 0.0
    """share of noisy versions that are nothing but noise; the others are of any time"""
    again_share: Share = 0.5
    """share of batches that get a first prediction of their own, as every step of solving but the first does"""
    bytes_each: Count = 220
    """memory of a step for each piece, noisy version, layer and number of a node"""


class Denoising(Task):
    """The loss of section 3.3; a task adds where puzzles come from and how they are scored."""

    network: ClassVar[type[PoseNetwork]] = Denoiser

    def check(self, config: Config) -> None:
        super().check(config)
        training, model = config.training, config.model
        needed = training.bytes_each * training.pieces * training.noises * getattr(model, "layers", 1) * model.width
        pieces = f"--training.pieces {training.pieces}, --training.noises {training.noises}: a step"
        check_memory(needed / training.devices, pieces, "learn from fewer pieces")

    @abstractmethod
    def portion(self, step: int, rank: int = 0, world: int = 1) -> Portion:
        """What process `rank` of `world` gets of the batch at `step`; together they get what one alone would."""

    def frozen(self, portion: Portion) -> Float[Tensor, "n 4 p"] | None:
        """Features of the pieces by a pretrained encoder, for tasks that have one."""
        return None

    def match_finder(self, model: PoseNetwork) -> MatchFinder | None:
        """What finds the matches that the network reads, where puzzles come without."""
        return None

    def head_loss(self, prediction: Prediction, condition: Any, clean: Tensor) -> Tensor | float:
        """What a task adds for its head, from the clean vectors of every piece's noisy versions."""
        return 0.0

    def further_loss(self, batch: PuzzleBatch, true: Poses, predicted: Poses) -> Tensor | float:
        """What a task adds; poses are those of every piece's noisy versions, piece by piece."""
        return 0.0

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, PoseNetwork)
        training = self.config.training
        device = next(model.parameters()).device
        # Half precision can't tell neighbouring shades or points apart: data are prepared with all digits.
        with torch.autocast("cpu", enabled=False):
            portion = self.portion(step, rank, world)
            packed = pack(portion.puzzles, self.match_finder(model))
            if portion.matches:
                packed = with_matches(packed, portion.matches)
            drawn = self._noise(model, portion.puzzles, step, portion.first)
            clean, noise, time = (part.to(device) for part in drawn)
            noisy = model.space.noisy(clean, time, model.schedule, noise)
        batch = replace(packed, frozen=self.frozen(portion)).to(device)
        condition = model.condition(batch, seeded(training.seed, step, portion.first, 2))
        prediction = self._predicted(model, noisy, time, condition, step)
        true = model.space.to_poses(clean.flatten(0, 1))
        poses = model.space.to_poses(prediction.vectors.float().flatten(0, 1))
        weight = noise_weight(model.schedule.alpha_bar.to(device)[time]).flatten() if training.weigh_noise else 1.0
        loss = training.translation_weight * translation_loss(true, poses, weight)
        loss = loss + training.rotation_weight * rotation_loss(true, poses, weight)
        if prediction.logits is not None:
            loss = loss + self._cells_loss(prediction.logits, condition, batch, portion.puzzles)
        loss = loss + self.head_loss(prediction, condition, clean)
        unit = batch.board[:, 2]
        if prediction.trust is not None and prediction.estimates is not None:
            loss = loss + training.trust_weight * trust_loss(prediction.trust, prediction.estimates, true, unit)
        if prediction.verdict is not None and batch.matches is not None:
            loss = loss + training.verdict_weight * verdict_loss(prediction.verdict, batch.matches, true, unit)
        return portion.weight * (loss + self.further_loss(batch, true, poses))

    def _predicted(self, model: PoseNetwork, noisy: Tensor, time: Tensor, condition: Any, step: int) -> Prediction:
        """The network's prediction, in a share of the batches given a first one, as in all steps of solving but one."""
        training, before = self.config.training, None
        again = float(torch.rand((), generator=seeded(training.seed, step, 3))) < training.again_share
        if again and isinstance(condition, Condition) and condition.boards != ():
            with torch.no_grad():
                before = model.predict(noisy, time, condition)
        return model.predict(noisy, time, condition, before)

    def _cells_loss(
        self, logits: Logits, condition: Condition, batch: PuzzleBatch, puzzles: list[Puzzle]
    ) -> Float[Tensor, ""]:
        """Cross-entropies of cells and turns, from all pieces together and from each alone, and of neighbours."""
        training = self.config.training
        places = [true_places(puzzle) for puzzle in puzzles]
        target = torch.cat([TURNS * cells + turns for cells, turns in places]).to(logits.device)
        assert condition.alone is not None
        assert condition.alone.logits is not None
        samples = logits.shape[1]
        loss = F.cross_entropy(logits.flatten(2).flatten(0, 1), target.repeat_interleave(samples))
        loss = training.cells_weight * loss
        loss = loss + training.alone_weight * F.cross_entropy(condition.alone.logits.flatten(2).flatten(0, 1), target)
        if condition.sides is None:
            return loss
        owner = batch.puzzle.repeat_interleave(TURNS)
        sides = [
            F.cross_entropy(found, right_neighbours(*place, puzzle.board).to(found.device))
            for found, place, puzzle in zip(condition.sides.logits(owner), places, puzzles, strict=True)
        ]
        return loss + training.sides_weight * torch.stack(sides).mean()

    def _noise(self, model: PoseNetwork, puzzles: list[Puzzle], step: int, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """Clean vectors, noise and times of all pieces; each puzzle has a generator and a time of its own."""
        noises = self.config.training.noises
        clean, noise, time = [], [], []
        for index, puzzle in enumerate(puzzles):
            assert puzzle.truth is not None
            generator = seeded(self.config.training.seed, step, first + index, 1)
            vector = model.space.to_vector(puzzle.truth)[:, None].expand(-1, noises, -1)
            clean.append(vector)
            noise.append(model.space.prior(vector.shape[:2], generator))
            drawn = torch.randint(1, model.schedule.times + 1, (1, noises), generator=generator)
            if share := self.config.training.noise_share:
                all_noise = torch.rand(1, noises, generator=generator) < share
                drawn = torch.where(all_noise, model.schedule.times, drawn)
            time.append(drawn.expand(len(puzzle), -1))
        return torch.cat(clean), torch.cat(noise), torch.cat(time)


def true_places(puzzle: Puzzle) -> Placement:
    """The true cell and turn of every piece."""
    assert puzzle.truth is not None
    return puzzle.board.snap(puzzle.truth)


def right_neighbours(cells: Int[Tensor, "n"], turns: Int[Tensor, "n"], board: Board) -> Int[Tensor, "v"]:
    """The view that is truly to the right of every view, or the number of all views where there is none.

    A view turned by d quarters beyond the truth has to its right what truly is d quarters back from there.
    """
    count = len(cells)
    owner = torch.full((board.rows + 2, board.cols + 2), -1)
    row, col = cells // board.cols + 1, cells % board.cols + 1
    owner[row, col] = torch.arange(count)
    beside = torch.stack([owner[row + y, col + x] for x, y in WAYS.tolist()], 1)
    beyond = (torch.arange(TURNS) - turns[:, None]) % TURNS
    other = beside.gather(1, -beyond % TURNS)
    view = TURNS * other + (turns[other.clamp(min=0)] + beyond) % TURNS
    return torch.where(other < 0, TURNS * count, view).flatten()
