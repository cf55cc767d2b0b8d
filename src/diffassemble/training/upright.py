"""The task of learning which way is up."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import torch.nn.functional as F
from annotated_types import Interval, MultipleOf
from jaxtyping import Float
from torch import Tensor, nn

from diffassemble.core import Board
from diffassemble.core.limits import LIMITS
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Batch, Count, Fraction, Positive, Share, Weight
from diffassemble.io.pictures import to_levels
from diffassemble.network.upright import FROZEN, Upright, UprightConfig, Views, looked_at, resized, views_of
from diffassemble.training.config import Config, TrainingConfig
from diffassemble.training.data import cached, share_out, uniform
from diffassemble.training.loop import Task
from diffassemble.training.pictures import Levels, PictureConfig, load_picture, load_pictures, random_crop

Pictures = Float[Tensor, "b 3 H W"]
# Shapes of crops, one after the other, and turns of which one, at random, is to be distinguished from upright. Wide and
# tall ones are equally often in both roles: else shapes would reveal which way is up.
VARIANTS = (
    *(((1, 1), (1, 2, 3)), ((2, 3), (1, 3)), ((1, 1), (1, 2, 3)), ((3, 2), (2,))),
    *(((1, 1), (1, 2, 3)), ((3, 2), (1, 3)), ((1, 1), (1, 2, 3)), ((2, 3), (2,))),
)


@dataclass(frozen=True)
class Variation:
    """How far a varied picture may be from the given one."""

    smallest_crop: float = 0.9
    """smallest side of a crop, as a share of the picture's"""
    tilt: float = 5.0
    """largest tilt in degrees"""
    light: float = 0.2
    """strength of random brightness, contrast and colour"""
    holed_share: float = 0.5
    """share of pictures with missing cells"""


VARIATION = Variation()


@dataclass(frozen=True)
class UprightData(PictureConfig):
    """Which pictures, and how often they come again."""

    variants: Annotated[int, Interval(ge=0, le=LIMITS.cases), MultipleOf(len(VARIANTS))] = 0
    """variations of each picture, which then come again and again; 0: always others"""
    cache: Path | None = None
    """folder that keeps the features of such variations by the frozen part of the network"""
    smallest_crop: Positive = 0.8
    """smallest side of a random crop, as a share of the picture's"""
    coarse_share: Share = 0.2
    """share of variations of few pixels"""
    lost: Share = 0.3
    """share of 6×6 cells that pictures held apart lack in a second validation"""


@dataclass(frozen=True)
class UprightTraining(TrainingConfig):
    """How the upright classifier learns."""

    pictures: Batch = 32
    """pictures in a batch, over all processes, each upright and in another turn"""
    smoothing: Fraction = 0.03
    """label smoothing"""
    heats: Count = 40
    """temperatures of 1.03ⁿ for n from −`heats` to `heats` are tried"""
    heat_cost: Weight = 0.02
    """rise of the cross-entropy that is accepted for the highest temperature: rather underconfident than the reverse"""


class UprightTask(Task):
    """Upright pictures against their own other turns; accuracy on pictures held apart, whole and with holes."""

    defaults = Config(UprightConfig(), UprightData(), UprightTraining())
    network = Upright
    unit = "pictures"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.pictures, self.held_apart = load_pictures(config.data, partial(load_thin, side=5 * config.model.side // 4))
        self.held_views: dict[str, list[Views]] = {}

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, Upright)
        seed, variants = self.config.training.seed, self.config.data.variants
        numbers, weight = share_out(self.config.training.pictures, rank, world)
        # Pictures of a batch have the same shape, which follows from the number of the variant.
        variant = int(torch.randint(variants, (), generator=seeded(seed, step))) if variants else step
        drawn = [self.pictures.draw(seeded(seed, step, number)) for number in numbers]
        views = [self._views(picture, variant) for picture in drawn]
        device = next(model.parameters()).device
        logits = model.judged([torch.cat(view).to(device) for view in zip(*views, strict=True)])
        target = torch.zeros(len(views), dtype=torch.long, device=device)
        return weight * F.cross_entropy(logits.float(), target, label_smoothing=self.config.training.smoothing)

    def _views(self, picture: Levels, variant: int) -> Views:
        """Frozen features of a variation of a picture, upright and not; from the cache, or computed now."""
        side, (shape, others) = self.config.model.side, VARIANTS[variant % len(VARIANTS)]
        seed, cache = self.config.training.seed, self.config.data.cache
        of = hashlib.sha256(f"{variant} {seed} {side} {shape} {others} {VARIATION} {FROZEN}".encode())
        of.update(picture.numpy().tobytes())

        def make() -> dict[str, Tensor]:
            generator = seeded(int(of.hexdigest()[:8], 16))
            turns = 0, others[int(torch.randint(len(others), (), generator=generator))]
            views = views_of(varied(picture, shape, side, generator, self.config.data), side, turns)
            return {str(number): view.half() if cache else view for number, view in enumerate(views)}

        path = None if cache is None else cache / f"{of.hexdigest()[:24]}.npz"
        return [view.float() for view in cached(path, make).values()]

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy in percent by folder, whole and with 30 % of 6×6 cells missing; fits the network's temperature.

        "score" is the probability given to the truth, in percent, in the geometric mean over all of these.
        """
        assert isinstance(model, Upright)
        model.eval().temperature.fill_(1)
        device = model.temperature.device
        found = {
            name: torch.cat([model.judged([view.to(device) for view in views]) for views in pictures]).cpu()
            for name, pictures in self._held_views().items()
        }
        if not found:
            return {"score": 0.0}
        training = self.config.training
        heats = [1.03**power for power in range(-training.heats, training.heats + 1)]
        losses = {heat: sum(_loss(logits / heat) for logits in found.values()) / len(found) for heat in heats}
        least = min(losses.values())
        model.temperature.fill_(max(heat for heat, loss in losses.items() if loss < least + training.heat_cost))
        scores = {name: 100 * float((logits.argmax(1) == 0).float().mean()) for name, logits in found.items()}
        return {"score": 100 * math.exp(-least), **scores}

    def _held_views(self) -> dict[str, list[Views]]:
        """Frozen features of the pictures held apart, by name; computed once."""
        side, lost = self.config.model.side, self.config.data.lost
        for name, pictures in self.held_apart if not self.held_views else ():
            colours = [picture.float() / 255 for picture in pictures]
            if colours:
                holed = [with_lost_cells(picture, number, lost) for number, picture in enumerate(colours)]
                self.held_views[name] = [views_of(picture[None], side) for picture in colours]
                self.held_views[f"{name} -30%"] = [views_of(picture[None], side) for picture in holed]
        return self.held_views


def _loss(logits: Float[Tensor, "n 4"]) -> float:
    return -float(logits.log_softmax(1)[:, 0].mean())


def load_thin(path: Path, side: int) -> Levels:
    """A picture in its own shape, its shorter side at most this long."""
    levels = load_picture(path)
    scale = side / min(levels.shape[-2:])
    if scale >= 1:
        return levels
    size = [max(side, round(length * scale)) for length in levels.shape[-2:]]
    return to_levels(F.interpolate(levels[None].float() / 255, size, mode="bilinear", antialias=True)[0])


def varied(
    picture: Levels, shape: tuple[int, int], side: int, generator: torch.Generator, config: UprightData
) -> Float[Tensor, "1 3 h w"]:
    """A random crop of this shape, at the network's size; mirrored, tilted, relit, coarse or with cells missing."""
    crop = random_crop(picture.float() / 255, Board(*shape), config.smallest_crop, generator)[None]
    if uniform(0.0, 1.0, generator) < config.coarse_share:
        crop = resized(crop, looked_at(*shape, round(side * uniform(0.2, 0.6, generator))))
    size = looked_at(*shape, side)
    crops = relit(tilted_crops(resized(crop, size), VARIATION, generator), VARIATION.light, generator)
    return with_holes(crops, VARIATION.holed_share, generator).nan_to_num(0.5)


def tilted_crops(pictures: Pictures, variation: Variation, generator: torch.Generator) -> Pictures:
    """Samples of random crops, slightly stretched and tilted, half of them mirrored left to right."""
    count = len(pictures)
    side = _between(count, variation.smallest_crop, 1.0, generator)
    stretch = torch.exp(_between(count, -0.12, 0.12, generator))
    across, down = (side * stretch).clamp(max=1), (side / stretch).clamp(max=1)
    left = _between(count, -1.0, 1.0, generator) * (1 - across)
    top = _between(count, -1.0, 1.0, generator) * (1 - down)
    mirror = torch.rand(count, generator=generator).lt(0.5) * 2.0 - 1
    angle = math.radians(variation.tilt) * _between(count, -1.0, 1.0, generator)
    cosine, sine = angle.cos(), angle.sin()
    first = torch.stack([mirror * across * cosine, -mirror * across * sine, left], 1)
    second = torch.stack([down * sine, down * cosine, top], 1)
    grid = F.affine_grid(torch.stack([first, second], 1), list(pictures.shape), align_corners=False)
    return F.grid_sample(pictures, grid, padding_mode="reflection", align_corners=False)


def relit(pictures: Pictures, strength: float, generator: torch.Generator) -> Pictures:
    """Other gamma, contrast, brightness, saturation and colour balance; one in ten is grey."""
    count = len(pictures)

    def around(middle: float, reach: float) -> Tensor:
        return _between(count, middle - reach, middle + reach, generator).view(-1, 1, 1, 1)

    pictures = pictures ** torch.exp(around(0.0, strength))
    mean = pictures.mean((1, 2, 3), keepdim=True)
    pictures = (pictures - mean) * around(1.0, strength) + mean + around(0.0, strength / 3)
    grey = pictures.mean(1, keepdim=True)
    saturation = around(1.0, 1.5 * strength) * torch.rand(count, 1, 1, 1, generator=generator).ge(0.1)
    pictures = (pictures - grey) * saturation + grey
    balance = 1 + 0.7 * strength * (torch.rand(count, 3, 1, 1, generator=generator) - 0.5)
    return (pictures * balance).clamp(0, 1)


def with_holes(pictures: Pictures, holed_share: float, generator: torch.Generator) -> Pictures:
    """Some pictures lose 5 to 50 % of the square cells of a grid, which has 4 to 8 of them along the shorter side."""
    count, cells = len(pictures), int(torch.randint(4, 9, (), generator=generator))
    rows, cols = (round(cells * length / min(pictures.shape[-2:])) for length in pictures.shape[-2:])
    missing = _between(count, 0.05, 0.5, generator) * torch.rand(count, generator=generator).lt(holed_share)
    return _without(pictures, torch.rand(count, 1, rows, cols, generator=generator) < missing.view(-1, 1, 1, 1))


def with_lost_cells(picture: Float[Tensor, "3 H W"], seed: int, share: float) -> Float[Tensor, "3 H W"]:
    """The picture without a share of its 6×6 cells, at random."""
    return _without(picture[None], torch.rand(1, 1, 6, 6, generator=seeded(79, seed)) < share)[0]


def _without(pictures: Pictures, lost: Tensor) -> Pictures:
    """Pictures with NaN where cells of a grid (b, 1, rows, cols) are lost."""
    # "nearest" would make cells of uneven width, always in the same order, which reveals which way is up.
    pixels = F.interpolate(lost.float(), pictures.shape[-2:], mode="nearest-exact")
    return torch.where(pixels > 0, torch.nan, pictures)


def _between(count: int, low: float, high: float, generator: torch.Generator) -> Float[Tensor, "b"]:
    return low + (high - low) * torch.rand(count, generator=generator)
