"""The task of learning which way is up."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import torch.nn.functional as F
from annotated_types import Interval, MultipleOf
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from diffassemble.core import Board
from diffassemble.core.limits import LIMITS
from diffassemble.core.seeds import seeded
from diffassemble.core.settings import Batch, Count, Fraction, Positive, Share, Weight
from diffassemble.network.upright import FROZEN, Upright, UprightConfig, Views, filled, looked_at, resized, views_of
from diffassemble.training.config import Config, PictureConfig, TrainingConfig
from diffassemble.training.loop import Task
from diffassemble.training.pictures import (
    UNKNOWN,
    Resized,
    Variation,
    load_pictures,
    load_thin,
    random_crop,
    share_out,
    uniform,
    vary,
)

# Shapes of crops, one after the other, and turns of which one, at random, is to be told from upright. Wide and tall
# ones come alike in both roles: else shapes would tell which way is up.
VARIANTS = (
    *(((1, 1), (1, 2, 3)), ((2, 3), (1, 3)), ((1, 1), (1, 2, 3)), ((3, 2), (2,))),
    *(((1, 1), (1, 2, 3)), ((3, 2), (1, 3)), ((1, 1), (1, 2, 3)), ((2, 3), (2,))),
)
VARIATION = Variation(smallest_crop=0.9, tilt=5.0, light=0.2, holed_share=0.5)


@dataclass(frozen=True)
class UprightData(PictureConfig):
    """Which pictures, and how often they come again."""

    variants: Annotated[int, Interval(ge=0, le=LIMITS.cases), MultipleOf(len(VARIANTS))] = 0
    """variations of each picture, which then come again and again; 0: always others"""
    cache: Path | None = None
    """folder that keeps what the frozen part of the network shows of such variations"""
    smallest_crop: Positive = 0.8
    """smallest side of a random crop, as a share of the picture's"""
    coarse_share: Share = 0.2
    """share of variations of few pixels"""
    lost: Share = 0.3
    """share of 6×6 cells without which pictures held apart are looked at, too"""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.cache and not self.variants:
            yield "cache", "empty without --data.variants: pictures that never come again need not be kept"


@dataclass(frozen=True)
class UprightTraining(TrainingConfig):
    """How the upright classifier learns."""

    pictures: Batch = 32
    """pictures in a batch, over all processes; each is looked at upright and in another turn"""
    smoothing: Fraction = 0.03
    """label smoothing"""
    heats: Count = 40
    """temperatures of 1.03ⁿ for n from −`heats` to `heats` are tried"""
    heat_cost: Weight = 0.02
    """rise of the cross-entropy that is taken for the highest temperature: rather too modest than too sure"""


class UprightTask(Task):
    """Upright pictures against their own other turns; accuracy on pictures held apart, whole and with holes."""

    defaults = Config(UprightConfig(), UprightData(), UprightTraining())
    network = Upright

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.batch = config.training.pictures, "pictures"
        self.store, self.held_apart = load_pictures(config.data, partial(load_thin, side=5 * config.model.side // 4))
        self.held_views: dict[str, list[Views]] = {}

    def loss(self, model: nn.Module, step: int, rank: int, world: int) -> Tensor:
        assert isinstance(model, Upright)
        seed, variants = self.config.training.seed, self.config.data.variants
        numbers, weight = share_out(self.config.training.pictures, rank, world)
        # Pictures of a batch are alike in shape, which the number of the variant tells.
        variant = int(torch.randint(variants, (), generator=seeded(seed, step))) if variants else step
        views = []
        for number in numbers:
            folder, chosen = self.store.choose(seeded(seed, step, number))
            views.append(self._views(self.store.folders[folder][chosen], variant))
        device = next(model.parameters()).device
        logits = model.judged([torch.cat(view).to(device) for view in zip(*views, strict=True)])
        target = torch.zeros(len(views), dtype=torch.long, device=device)
        return weight * F.cross_entropy(logits.float(), target, label_smoothing=self.config.training.smoothing)

    def _views(self, picture: UInt8[Tensor, "3 H W"], variant: int) -> Views:
        """What the frozen part shows of a variation of a picture, upright and not; from the cache, or looked at now."""
        side, (shape, others) = self.config.model.side, VARIANTS[variant % len(VARIANTS)]
        seed, cache = self.config.training.seed, self.config.data.cache
        of = hashlib.sha256(f"{variant} {seed} {side} {shape} {others} {VARIATION} {FROZEN}".encode())
        of.update(picture.numpy().tobytes())
        path = None if cache is None else cache / f"{of.hexdigest()[:24]}.npz"
        if path is not None and path.exists():
            with np.load(path) as kept:
                return [torch.from_numpy(kept[name]).float() for name in kept]
        generator = seeded(int(of.hexdigest()[:8], 16))
        turns = 0, others[int(torch.randint(len(others), (), generator=generator))]
        views = views_of(varied(picture, shape, side, generator, self.config.data), side, turns)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.getpid()}.part.npz")
            np.savez(beside, *(view.half().numpy() for view in views))
            os.replace(beside, path)
        return views

    @torch.no_grad()
    def validate(self, model: nn.Module) -> dict[str, float]:
        """Accuracy in percent by folder, whole and with 30 % of 6×6 cells missing; fits the network's temperature.

        "score" is how probable the truth is told to be, in percent, in the geometric mean over all of these.
        """
        assert isinstance(model, Upright)
        model.eval().temperature.fill_(1)
        device = model.temperature.device
        told = {
            name: torch.cat([model.judged([view.to(device) for view in views]) for views in pictures]).cpu()
            for name, pictures in self._held_views().items()
        }
        if not told:
            return {"score": 0.0}
        training = self.config.training
        heats = [1.03**power for power in range(-training.heats, training.heats + 1)]
        losses = {heat: sum(_loss(logits / heat) for logits in told.values()) / len(told) for heat in heats}
        least = min(losses.values())
        model.temperature.fill_(max(heat for heat, loss in losses.items() if loss < least + training.heat_cost))
        scores = {name: 100 * float((logits.argmax(1) == 0).float().mean()) for name, logits in told.items()}
        return {"score": 100 * math.exp(-least), **scores}

    def _held_views(self) -> dict[str, list[Views]]:
        """By name what the frozen part shows of the pictures held apart; looked at once."""
        if not self.held_views:
            for name, pictures in self.held_apart:
                colours = [picture.float() / 255 for picture in pictures]
                holed = [
                    with_lost_cells(picture, number, self.config.data.lost) for number, picture in enumerate(colours)
                ]
                for title, shown in ((name, colours), (f"{name} -30%", holed)) if colours else ():
                    self.held_views[title] = [views_of(picture[None], self.config.model.side) for picture in shown]
        return self.held_views


def _loss(logits: Float[Tensor, "n 4"]) -> float:
    return -float(logits.log_softmax(1)[:, 0].mean())


def varied(
    picture: UInt8[Tensor, "3 H W"],
    shape: tuple[int, int],
    side: int,
    generator: torch.Generator,
    config: UprightData,
) -> Resized:
    """A random crop of this shape, as it is looked at; mirrored, tilted, relit, coarse or with cells missing."""
    crop = random_crop(picture.float() / 255, Board(*shape), config.smallest_crop, generator)[None]
    if uniform(0.0, 1.0, generator) < config.coarse_share:
        crop = resized(crop, looked_at(*shape, round(side * uniform(0.2, 0.6, generator))))
    size = looked_at(*shape, side)
    return filled(vary(resized(crop, size), size, VARIATION, generator))


def with_lost_cells(picture: Float[Tensor, "3 H W"], seed: int, share: float) -> Float[Tensor, "3 H W"]:
    """The picture without a share of its 6×6 cells, at random."""
    lost = torch.rand(1, 1, 6, 6, generator=seeded(79, seed)) < share
    return torch.where(F.interpolate(lost.float(), picture.shape[-2:], mode="nearest-exact")[0] > 0, UNKNOWN, picture)
