"""The task of learning the canonical orientation of objects."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core.poses import random_rotations
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Batch, Count, Fraction, Positive, Weight
from diffassemble.core.thresholds import LIKELY
from diffassemble.fragments.orientation import OrientationConfig, OrientationModel, centred, principal_axes
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.data import share_out, uniform
from diffassemble.training.fragments import STEPS, FragmentConfig, Pool, load_fractures
from diffassemble.training.loop import Task

UP = torch.tensor([0.0, 1.0, 0.0])


@dataclass(frozen=True)
class OrientationTraining(TrainingConfig):
    """How the network that turns objects upright learns."""

    objects: Batch = 64
    """objects in a batch, over all processes, whose front is learnt"""
    directed: Count = 4
    """of one in so many of them, up is learnt among about thirty directions"""
    front_weight: Weight = 0.3
    """weight of the front of objects, beside the direction that is up"""
    smoothing: Fraction = 0.02
    """label smoothing"""
    random_directions: Count = 14
    """random directions that up has to be distinguished from"""
    near_directions: Count = 8
    """directions near up that up has to be distinguished from"""
    nearest: Positive = 7.0
    """least angle of these, in degrees"""
    farthest: Positive = 30.0
    """largest angle of these, in degrees"""
    tilt: Weight = 4.0
    """typical tilt of the objects whose front is learnt, in degrees, as the network leaves them"""
    right: Positive = 15.0
    """largest angle of a right direction, in degrees; poses may be twice as far off"""


DEFAULT = OrientationTraining()


class OrientationTask(Task):
    """Upright objects, some of whose fragments are lost, against other directions; accuracy on objects held apart."""

    defaults = Config(OrientationConfig(), FragmentConfig(), OrientationTraining())
    network = OrientationModel
    unit = "objects"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.known, self.held_apart = load_fractures(config.data)

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        training = self.config.training
        numbers, weight = share_out(training.objects, rank, world)
        drawn = [self._object(seeded(training.seed, step, number)) for number in numbers]
        device = next(model.parameters()).device
        points, directions, tilted = (torch.stack(parts).to(device) for parts in zip(*drawn, strict=True))
        few = slice(None, None, training.directed)
        up, front = (
            F.cross_entropy(
                logits.float(),
                torch.zeros(len(logits), dtype=torch.long, device=device),
                label_smoothing=training.smoothing,
            )
            for logits in model(points[few], directions[few], tilted)
        )
        return weight * (up + training.front_weight * front)

    def _object(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Points of an upright object, directions, of which the first is up, and the points a little tilted."""
        data = self.config.data
        pool = self.known.draw(generator)
        lost = data.missing if uniform(0.0, 1.0, generator) > data.whole_share else 0.0
        points = partly(pool, lost, data.points, generator)
        stretch = 1 + data.stretch * (2 * torch.rand(3, generator=generator) - 1)
        points = centred((points * stretch)[None])[0]
        points = points + 0.01 * uniform(0.0, 1.0, generator) * torch.randn(points.shape, generator=generator)
        directions = candidates(points, generator, self.config.training)
        return points, directions, points @ tilt(self.config.training.tilt, generator).T

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Percent of held-apart objects, turned at random, that are put upright, and also with the right front.

        The score is the mean of both; "fronts" is the percentage for which a front is found, "fronts right" how many of
        these are right, given that the object is upright.
        """
        assert isinstance(model, OrientationModel)
        model.eval()
        scores: dict[str, float] = {}
        for after, lost in (("", 0.0), (", pieces lost", self.config.data.missing)):
            every = enumerate(self.held_apart)
            found = [self._turned_up(model, pool, lost, seeded(81, number)) for number, pool in every]
            up, pose, fronts = torch.tensor(found, dtype=torch.bool).view(-1, 3).unbind(1)
            columns = {"up": up, "pose": pose, "fronts": fronts, "fronts right": pose[fronts & up]}
            for name, right in columns.items():
                scores[name + after] = 100 * float(right.float().mean()) if len(right) else 0.0
        return {"score": (scores["up"] + scores["pose"]) / 2, **scores}

    def _turned_up(self, model: OrientationModel, pool: Pool, lost: float, generator: torch.Generator) -> list[bool]:
        """Whether up is found of an object turned at random, whether its pose is, and whether it has a front."""
        points = partly(pool, lost, self.config.data.points, generator)
        turn = random_rotations(1, generator)[0]
        found = model.canonical_rotation(points @ turn.mT) @ turn
        cosines = torch.stack([found[1, 1], (found.trace() - 1) / 2])  # of the errors of up and of the pose
        right = cosines.clamp(-1, 1).acos().rad2deg() < self.config.training.right * torch.tensor([1, 2])
        sure = model.facing(centred((points @ found.mT)[None])[0])[1]
        return [*right.tolist(), sure >= LIKELY]


def partly(pool: Pool, lost: float, count: int, generator: torch.Generator) -> Float[Tensor, "p 3"]:
    """Points of an upright object, drawn by area; up to a share `lost` of its fragments is missing."""
    share = uniform(0.0, lost, generator)
    order = torch.randperm(len(pool), generator=generator)
    areas = pool.areas.clone()
    gone = order[: int(share * len(pool))]
    areas[gone[gone != areas.argmax()]] = 0
    whose = torch.multinomial(areas, count, replacement=True, generator=generator)
    which = torch.randint(pool.steps.shape[1], (count,), generator=generator)
    return pool.steps[whose, which].float() / STEPS


def tilt(degrees: float, generator: torch.Generator) -> Float[Tensor, "3 3"]:
    """A rotation about some horizontal axis, by an angle of about so many degrees."""
    import roma

    return roma.rotvec_to_rotmat(math.radians(degrees) * torch.randn(3, generator=generator) * (1 - UP))


def candidates(
    points: Float[Tensor, "p 3"], generator: torch.Generator, config: OrientationTraining = DEFAULT
) -> Float[Tensor, "d 3"]:
    """Up, then others: down, directions near up, the axes of the shape and random ones."""
    others = F.normalize(torch.randn(config.random_directions, 3, generator=generator), dim=-1)
    sideways = F.normalize(torch.randn(config.near_directions, 3, generator=generator) * (1 - UP), dim=-1)
    angle = torch.deg2rad(
        config.nearest + (config.farthest - config.nearest) * torch.rand(len(sideways), 1, generator=generator)
    )
    near = angle.cos() * UP + angle.sin() * sideways
    tried = torch.cat([-UP[None], near, principal_axes(points), others])
    # What is too near to up is no wrong answer, and replaced by down.
    close = tried @ UP > math.cos(math.radians(config.nearest - 1))
    return torch.cat([UP[None], torch.where(close[:, None], -UP, tried)])
