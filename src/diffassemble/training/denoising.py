"""Learning to denoise puzzles, whatever the pieces are: the losses of section 3.3, on a stream of puzzles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import Poses, Puzzle
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count, Weight
from diffassemble.network.batch import MatchFinder, PuzzleBatch, pack
from diffassemble.network.denoiser import Denoiser, PoseNetwork
from diffassemble.training.config import TrainingConfig
from diffassemble.training.loop import Task
from diffassemble.training.pictures import Portion


def translation_loss(true: Poses, predicted: Poses, weight: Float[Tensor, "n"] | None = None) -> Float[Tensor, ""]:
    """Section 3.3, L_tr: mean squared distance of the translations."""
    squares = (true.translation - predicted.translation).square().sum(-1)
    return (squares if weight is None else weight * squares).mean()


def rotation_loss(true: Poses, predicted: Poses, weight: Float[Tensor, "n"] | None = None) -> Float[Tensor, ""]:
    """Section 3.3, L_rt: ‖Rᵀ R̂ − I‖², which equals ‖R̂ − R‖² since R is orthogonal.

    R̂ is not forced to be orthogonal: where several turns are possible, the best answer is their mean.
    """
    squares = (predicted.rotation - true.rotation).square().sum((-1, -2))
    return (squares if weight is None else weight * squares).mean()


def noise_weight(alpha_bar: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The less noise, the more an error counts: 1 / (1 − ᾱ + 0.05).

    Near time T much of the error can't be helped, and unweighted it drowns the small errors that decide in the end.
    """
    return 1 / (1.05 - alpha_bar)


@dataclass(frozen=True)
class DenoisingTraining(TrainingConfig):
    """How the denoiser learns."""

    pieces: Count = 288
    """pieces in a batch, over all processes; the number of puzzles follows from the grid"""
    noises: Count = 2
    """noisy versions of each puzzle in a step; they share the encoder's work"""
    translation_weight: Weight = 2.0
    rotation_weight: Weight = 0.5
    weigh_noise: bool = True
    """count errors the more the less noise there is; off in the paper"""


@runtime_checkable
class Stream(Protocol):
    """Where puzzles come from: every batch is a function of its step."""

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Portion: ...


class Denoising(Task):
    """The loss of section 3.3 on a stream of puzzles; a task adds where they come from and how it is scored."""

    stream: Stream
    network: ClassVar[type[PoseNetwork]] = Denoiser

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, PoseNetwork)
        training = self.config.training
        portion = self.stream.batch(step, rank, world)
        device = next(model.parameters()).device
        batch = pack(portion.puzzles, self.match_finder(model)).to(device)
        drawn = self._noise(model, portion.puzzles, step, portion.first)
        clean, noise, time = (part.to(device) for part in drawn)
        generator = seeded(training.seed, step, portion.first, 2)
        noisy = model.space.noisy(clean, time, model.schedule, noise)
        predicted = model(noisy, time, model.condition(batch, generator))
        true_poses = model.space.to_poses(clean.flatten(0, 1))
        poses = model.space.to_poses(predicted.float().flatten(0, 1))
        weight = noise_weight(model.schedule.alpha_bar.to(device)[time]).flatten() if training.weigh_noise else None
        loss = training.translation_weight * translation_loss(true_poses, poses, weight)
        loss = loss + training.rotation_weight * rotation_loss(true_poses, poses, weight)
        return portion.weight * (loss + self.further_loss(batch, true_poses, poses))

    def match_finder(self, model: PoseNetwork) -> MatchFinder | None:
        """Who finds the matches that the network hears; nobody, if a task does not say."""
        return None

    def further_loss(self, batch: PuzzleBatch, true: Poses, predicted: Poses) -> Float[Tensor, ""]:
        """What a task adds; poses are those of every piece's noisy versions, piece by piece."""
        return true.translation.new_zeros(())

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
            time.append(drawn.expand(len(puzzle), -1))
        return torch.cat(clean), torch.cat(noise), torch.cat(time)
