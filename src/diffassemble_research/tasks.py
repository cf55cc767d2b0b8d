"""Training tasks of the paper's own form for broken objects, which reads no matches, and of its baselines."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from diffassemble.core import InputError
from diffassemble.network.config import ModelConfig
from diffassemble.network.denoiser import Prediction
from diffassemble.training.config import Config
from diffassemble.training.data import Scored, uniform
from diffassemble.training.fragments import FragmentConfig, FragmentTask, FragmentTraining, Pool
from diffassemble_research.baselines import OneShot, OneShotConfig
from diffassemble_research.parts import RotationScores


class PaperFragmentTask(FragmentTask):
    """Puzzles of broken objects in varied shapes, without matches; absolute poses on objects held apart."""

    defaults = Config(
        ModelConfig(backbone="vn_dgcnn", features=48, edge_features=False, votes=False, space="so3", posed=True),
        FragmentConfig(),
        FragmentTraining(),
    )

    def check_model(self, model: Any) -> None:
        if model.space == "cos_sin":
            raise InputError("--model.space cos_sin: must be so3, six_d or quaternion, the poses of broken objects")
        if model.pairwise:
            raise InputError("--model.votes: must be off, as edge-features; the preset fragments reads matches")

    def draw(self, generator: torch.Generator) -> Pool:
        pool = super().draw(generator)
        return joined(pool, generator) if uniform(0.0, 1.0, generator) < self.config.data.joined else pool

    def puzzle(self, pool: Pool, missing: float, generator: torch.Generator) -> Scored:
        """A puzzle of a stretched object; nothing is mirrored: the side of handles and spouts can be learnt."""
        data = self.config.data
        stretch = 1 + data.stretch * (2 * torch.rand(3, generator=generator) - 1)
        return stretched(pool, stretch).scatter(generator, data.points, missing)

    def head_loss(self, prediction: Prediction, condition: Any, clean: Tensor) -> Tensor | float:
        """Cross-entropies of rotations, from all pieces together and from each alone; and each alone's position."""
        if prediction.turns is None:
            return 0.0
        training, true = self.config.training, clean[:, 0, 3:].unflatten(-1, (3, 3))
        loss = training.turns_weight * RotationScores.cross_entropy(prediction.turns, true)
        alone = RotationScores.cross_entropy(condition.alone.turns, true)
        place = (condition.alone.vectors - clean[:, :1]).square()[..., :3].sum(-1).mean()
        return loss + training.alone_weight * (training.turns_weight * alone + training.translation_weight * place)


class BaselineTask(PaperFragmentTask):
    """Broken objects, put together by a network that predicts all poses in one forward pass."""

    defaults = Config(OneShotConfig(), FragmentConfig(), FragmentTraining())
    network = OneShot

    def check_model(self, model: OneShotConfig) -> None:
        """Every baseline learns without matches."""


def stretched(pool: Pool, factors: Float[Tensor, "3"]) -> Pool:
    """The same fracture of an object stretched along the axes; a negative factor mirrors it."""
    places = pool.points * factors
    low, high = places.flatten(0, 1).amin(0), places.flatten(0, 1).amax(0)
    return Pool.of((places - (low + high) / 2) / (high - low).max(), pool.areas)


def joined(pool: Pool, generator: torch.Generator) -> Pool:
    """The same object in fewer pieces: some fragments, drawn at random, each join those nearest to them.

    A joined fragment has as many points as one of them had, drawn evenly by area.
    """
    centres, size = pool.points.mean(1), pool.steps.shape[1]
    count = int(torch.randint(1, len(pool) + 1, (), generator=generator))
    nuclei = torch.randperm(len(pool), generator=generator)[:count]
    groups = torch.cdist(centres, centres[nuclei]).argmin(1)
    members = [(groups == group).nonzero()[:, 0] for group in groups.unique()]
    steps = []
    for own in members:
        whose = own[torch.multinomial(pool.areas[own], size, replacement=True, generator=generator)]
        steps.append(pool.steps[whose, torch.randperm(size, generator=generator)])
    return Pool(torch.stack(steps), torch.stack([pool.areas[own].sum() for own in members]))
