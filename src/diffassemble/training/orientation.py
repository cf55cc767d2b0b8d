"""The task of learning how objects stand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core.poses import random_rotations
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Count, Fraction, Weight
from diffassemble.fragments.orientation import OrientationConfig, OrientationModel, centred, principal_axes
from diffassemble.training.config import Config, FragmentConfig, TrainingConfig
from diffassemble.training.fragment_data import Pool, PoolMixture, pool_of
from diffassemble.training.fragments import gather, known_fractures
from diffassemble.training.loop import Task
from diffassemble.training.pictures import share_out, uniform

UP = torch.tensor([0.0, 1.0, 0.0])
# Directions that up has to stand out from: at random, and near misses between these angles.
_RANDOM, _NEAR, _NEAREST, _FARTHEST = 14, 8, 7.0, 30.0
# A direction this near to up, in degrees, counts as up.
RIGHT = 15.0


@dataclass(frozen=True)
class OrientationTraining(TrainingConfig):
    """How the network that stands objects up learns."""

    objects: Count = 16
    """objects in a batch, over all processes; each is looked at from about thirty directions"""
    front_weight: Weight = 0.3
    """weight of which way objects face, beside which direction is up"""
    smoothing: Fraction = 0.02
    """share of doubt in what is taught"""


class OrientationTask(Task):
    """Objects, some of whose fragments are lost, against themselves lying down; accuracy on objects held apart."""

    defaults = Config(OrientationConfig(), FragmentConfig(), OrientationTraining())
    network = OrientationModel

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.objects, "objects"
        kinds, held_apart = gather(config.data)
        self.pools = PoolMixture([known_fractures(kind, None) for kind in kinds], config.data.shares)
        self.held_apart = [pool_of(fracture) for fracture in held_apart]

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        training = self.config.training
        numbers, weight = share_out(training.objects, rank, world)
        drawn = [self._object(seeded(training.seed, step, number)) for number in numbers]
        points, directions = (
            torch.stack(parts).to(next(model.parameters()).device) for parts in zip(*drawn, strict=True)
        )
        up, front = model(points, directions)
        target = torch.zeros(len(points), dtype=torch.long, device=points.device)
        smoothing = training.smoothing
        losses = [F.cross_entropy(logits.float(), target, label_smoothing=smoothing) for logits in (up, front)]
        return weight * (losses[0] + training.front_weight * losses[1])

    def _object(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Points of a standing object, a little tilted, and directions, of which the first is up."""
        data = self.config.data
        pool, _ = self.pools.draw(generator)
        lost = data.missing if uniform(0.0, 1.0, generator) > data.whole_share else 0.0
        points = partly(pool, lost, data.points, generator)
        stretch = 1 + data.stretch * (2 * torch.rand(3, generator=generator) - 1)
        mirror = 1 - 2 * torch.randint(0, 2, (3,), generator=generator) * torch.tensor([0, 0, 1])
        points = centred((points * stretch * mirror)[None])[0]
        points = points + 0.01 * uniform(0.0, 1.0, generator) * torch.randn(points.shape, generator=generator)
        return points, candidates(points, generator)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Percent of held-apart objects, turned at random, that stand up, and also face the right way."""
        assert isinstance(model, OrientationModel)
        model.eval()
        scores: dict[str, float] = {}
        for name, lost in (("up", 0.0), ("up, pieces lost", self.config.data.missing)):
            right = []
            for number, pool in enumerate(self.held_apart):
                generator = seeded(81, number)
                points = partly(pool, lost, self.config.data.points, generator)
                turn = random_rotations(1, generator)[0]
                answer = model.canonical_rotation(points @ turn.mT) @ turn
                cosines = torch.stack([answer[1, 1], (answer.trace() - 1) / 2])  # how far up is missed, and the pose
                right.append(cosines.clamp(-1, 1).acos().rad2deg() < torch.tensor([RIGHT, 2 * RIGHT]))
            shares = torch.stack(right).float().mean(0) if right else torch.zeros(2)
            scores[name], scores[name.replace("up", "pose")] = (100 * shares).tolist()
        return {"score": scores["up"], **scores}


def partly(pool: Pool, lost: float, count: int, generator: torch.Generator) -> Float[Tensor, "p 3"]:
    """Points of an object where it stands, drawn by area; up to a share `lost` of its fragments is not there."""
    share = uniform(0.0, lost, generator)
    order = torch.randperm(len(pool), generator=generator)
    areas = pool.areas.clone()
    gone = order[: int(share * len(pool))]
    areas[gone[gone != areas.argmax()]] = 0
    whose = torch.multinomial(areas, count, replacement=True, generator=generator)
    which = torch.randint(pool.steps.shape[1], (count,), generator=generator)
    return pool.points[whose, which]


def candidates(points: Float[Tensor, "p 3"], generator: torch.Generator) -> Float[Tensor, "d 3"]:
    """Up, then directions that are not: down, near misses, the axes of the shape and others at random."""
    others = F.normalize(torch.randn(_RANDOM, 3, generator=generator), dim=-1)
    sideways = F.normalize(torch.randn(_NEAR, 3, generator=generator) * (1 - UP), dim=-1)
    angle = torch.deg2rad(_NEAREST + (_FARTHEST - _NEAREST) * torch.rand(_NEAR, 1, generator=generator))
    near = angle.cos() * UP + angle.sin() * sideways
    tried = torch.cat([-UP[None], near, principal_axes(points), others])
    # What is too near to up is no wrong answer: down stands in for it.
    close = tried @ UP > math.cos(math.radians(_NEAREST - 1))
    return torch.cat([UP[None], torch.where(close[:, None], -UP, tried)])
